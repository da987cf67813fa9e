// Where nodes stand: links pull, all nodes push each other away, until it comes to rest.

class Layout {
  constructor() {
    this.places = new Map();
    this.heat = 0;
    this.aspect = 1;  // how much wider than high it is to be
  }

  // Nodes and links from now on. New nodes begin beside a neighbour.
  update(nodes, links) {
    const wanted = new Set(nodes);
    let changed = false;
    for (const index of [...this.places.keys()]) {
      if (!wanted.has(index)) { this.places.delete(index); changed = true; }
    }
    const neighbours = new Map(nodes.map((index) => [index, []]));
    for (const [u, v] of links) { neighbours.get(u)?.push(v); neighbours.get(v)?.push(u); }
    nodes.forEach((index, at) => {
      if (this.places.has(index)) { return; }
      const beside = neighbours.get(index).map((peer) => this.places.get(peer)).find((place) => place);
      const angle = index * 2.399963, far = beside ? 30 : 18 * Math.sqrt(at + 1);
      this.places.set(index, { x: (beside?.x || 0) + far * Math.cos(angle), y: (beside?.y || 0) + far * Math.sin(angle), vx: 0, vy: 0 });
      changed = true;
    });
    const stamp = links.map(([u, v]) => `${u}-${v}`).sort().join();
    if (stamp !== this.stamp) { this.stamp = stamp; changed = true; }
    this.list = nodes.map((index) => this.places.get(index));
    this.pairs = links.map(([u, v]) => [this.places.get(u), this.places.get(v)]).filter(([a, b]) => a && b);
    if (changed) { this.heat = this.places.size && this.heat < 0.02 && this.settled ? 0.35 : Math.max(this.heat, this.settled ? 0.35 : 1); }
  }

  // To be so much wider than high. A window that was turned has the nodes move.
  fit(aspect) {
    if (Math.abs(aspect - this.aspect) > 0.3 && this.settled) { this.heat = Math.max(this.heat, 0.5); }
    this.aspect = aspect;
  }

  get isMoving() { return this.heat > 0.02; }

  settle(steps) {
    for (let step = 0; step < steps && this.isMoving; step += 1) { this.step(); }
  }

  step() {
    const all = this.list, heat = this.heat, near = 60, reach = near * near * 25;
    for (let i = 0; i < all.length; i += 1) {
      const a = all[i];
      for (let j = i + 1; j < all.length; j += 1) {
        const b = all[j];
        let dx = a.x - b.x, dy = a.y - b.y;
        let far = dx * dx + dy * dy;
        if (far > reach) { continue; }
        if (far < 1) { dx = (i - j) % 7 || 1; dy = (i * 3 - j) % 5; far = 1 + dx * dx + dy * dy; }
        const push = heat * near * near / far * 0.5;
        a.vx += dx * push / near; a.vy += dy * push / near;
        b.vx -= dx * push / near; b.vy -= dy * push / near;
      }
      a.vx -= a.x * 0.013 / this.aspect * heat; a.vy -= a.y * 0.013 * this.aspect * heat;
    }
    for (const [a, b] of this.pairs) {
      const dx = b.x - a.x, dy = b.y - a.y, far = Math.sqrt(dx * dx + dy * dy) || 1;
      const pull = heat * 0.06 * (far - near) / far;
      a.vx += dx * pull; a.vy += dy * pull; b.vx -= dx * pull; b.vy -= dy * pull;
    }
    for (const place of all) {
      const speed = Math.hypot(place.vx, place.vy), most = 12;
      const held = speed > most ? most / speed : 1;
      place.x += place.vx * held; place.y += place.vy * held;
      place.vx *= 0.6; place.vy *= 0.6;
    }
    this.heat *= 0.985;
    if (!this.isMoving) { this.settled = true; }
  }

  // The rectangle that everything fits in.
  bounds() {
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { x, y } of this.places.values()) {
      left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
    }
    return left > right ? { left: -1, right: 1, top: -1, bottom: 1 } : { left, right, top, bottom };
  }
}
