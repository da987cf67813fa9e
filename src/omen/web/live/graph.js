// The overlay on a canvas. It is drawn again only when something moves, fades or is chosen.

const LARGEST_GRAPH = 500;
const NAMED = 60;
const COLOURS = ["ink", "soft", "paper", "wash", "blue", "orange", "green"];

class Graph {
  constructor(canvas, choose) {
    this.canvas = canvas;
    this.choose = choose;
    this.layout = new Layout();
    this.view = null;
    this.topic = null;
    this.chosen = null;
    this.hovered = null;
    this.ages = new Map();  // links: since when they are there, or no more
    this.frames = 0;
    this.colours = {};
    this.isDue = false;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    canvas.addEventListener("click", (event) => choose(this.under(event)));
    canvas.addEventListener("mousemove", (event) => this.hover(this.under(event)));
    canvas.addEventListener("mouseleave", () => this.hover(null));
    canvas.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(view, topic, chosen, isLive) {
    const first = this.view === null;
    const links = [...view.links.values()];
    this.noteLinks(view, first || !isLive);
    this.view = view;
    this.topic = topic;
    this.chosen = chosen;
    this.members = topic === null ? null : new Set(view.members(topic));
    this.tree = topic === null ? new Set() : view.tree(topic);
    this.layout.fit(Math.min(Math.max(this.canvas.clientWidth / (this.canvas.clientHeight || 1), 0.6), 2.2));
    this.layout.update(view.shown(), links);
    if (first || this.calm.matches) { this.layout.settle(300); }
    this.tell();
    this.draw();
  }

  noteLinks(view, quietly) {
    const now = performance.now();
    for (const [key, ends] of view.links) {
      const age = this.ages.get(key);
      if (!age || age.lost) { this.ages.set(key, { since: quietly ? -Infinity : now, lost: false, ends }); }
    }
    for (const [key, age] of this.ages) {
      if (!view.links.has(key)) {
        if (quietly || (age.lost && now - age.since > FADE_MS)) { this.ages.delete(key); }
        else if (!age.lost) { this.ages.set(key, { since: now, lost: true, ends: age.ends }); }
      }
    }
  }

  tell() {
    const troubled = this.view.shown().filter((index) => this.view.isTroubled(index)).map((index) => `${this.view.name(index)} ${this.view.state(index)}`);
    const chosen = this.chosen === null ? "" : ` Chosen: ${this.view.name(this.chosen)}, ${this.view.state(this.chosen)}.`;
    this.canvas.setAttribute("aria-label", `The overlay as a graph: ${this.view.there().length} nodes, ${this.view.links.size} links.`
      + (troubled.length ? ` ${troubled.slice(0, 5).join(", ")}.` : "") + chosen);
  }

  press(event) {
    const nodes = this.view ? this.view.shown().sort((a, b) => this.view.name(a).localeCompare(this.view.name(b), "en", { numeric: true })) : [];
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") { this.choose(null); }
    if (!step || !nodes.length) { return; }
    event.preventDefault();
    const at = nodes.indexOf(this.chosen);
    this.choose(nodes[at < 0 ? 0 : (at + step + nodes.length) % nodes.length]);
  }

  hover(index) {
    if (index !== this.hovered) { this.hovered = index; this.canvas.style.cursor = index === null ? "" : "pointer"; this.draw(); }
  }

  under(event) {
    if (!this.scale) { return null; }
    const box = this.canvas.getBoundingClientRect();
    let best = null, nearest = 20 ** 2;
    for (const [index, place] of this.layout.places) {
      const { x, y } = this.spot(place);
      const far = (x - event.clientX + box.left) ** 2 + (y - event.clientY + box.top) ** 2;
      if (far < nearest) { nearest = far; best = index; }
    }
    return best;
  }

  spot(place) { return { x: this.left + place.x * this.scale, y: this.top + place.y * this.scale }; }

  draw() {
    if (!this.isDue) { this.isDue = true; requestAnimationFrame(() => this.frame()); }
  }

  frame() {
    this.isDue = false;
    if (!this.view || this.canvas.hidden) { return; }
    this.canvas.dataset.frames = this.frames += 1;  // for benchmarks
    if (this.layout.isMoving) { this.layout.step(); }
    const fades = this.paint();
    if (this.layout.isMoving || fades) { this.draw(); }
  }

  fit(width, height) {
    const { left, right, top, bottom } = this.layout.bounds(), edge = 34;
    const scale = Math.min((width - 2 * edge) / Math.max(right - left, 60), (height - 2 * edge) / Math.max(bottom - top, 60), 2.2);
    this.scale = Math.max(scale, 0.01);
    this.left = width / 2 - (left + right) / 2 * this.scale;
    this.top = height / 2 - (top + bottom) / 2 * this.scale;
  }

  paint() {
    const canvas = this.canvas, ratio = Math.min(devicePixelRatio || 1, 2);
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const style = getComputedStyle(document.documentElement);
    for (const name of COLOURS) { this.colours[name] = style.getPropertyValue(`--${name}`); }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.fit(width, height);
    const fades = this.paintLinks(pen);
    this.paintNodes(pen, Math.max(4, Math.min(11, 9 * this.scale)));
    return fades;
  }

  paintLinks(pen) {
    const now = performance.now(), lots = { plain: [], within: [], tree: [], made: [], lost: [] };
    let fades = false;
    for (const [key, age] of this.ages) {
      const [u, v] = age.ends, a = this.layout.places.get(u), b = this.layout.places.get(v);
      if (!a || !b) { continue; }
      const young = now - age.since < FADE_MS;
      fades = fades || young;
      if (age.lost) { if (young) { lots.lost.push([a, b]); } continue; }
      const lit = this.members && this.members.has(u) && this.members.has(v);
      const carries = this.tree.has(`${u}-${v}`) || this.tree.has(`${v}-${u}`);
      lots[young ? "made" : lit && carries ? "tree" : lit ? "within" : "plain"].push([a, b]);
    }
    const looks = [["plain", "soft", 1.2, this.members ? 0.25 : 0.5, []], ["within", "blue", 2, this.tree.size ? 0.45 : 0.9, []],
      ["lost", "orange", 2, 0.8, [3, 5]], ["made", "green", 3, 1, [8, 4]], ["tree", "blue", 3.5, 1, []]];
    for (const [lot, colour, width, alpha, dashes] of looks) {
      pen.strokeStyle = this.colours[colour];
      pen.globalAlpha = alpha;
      pen.lineWidth = width;
      pen.setLineDash(dashes);
      for (const [a, b] of lots[lot]) {  // one by one: a path of a thousand lines takes many times longer to fill
        const from = this.spot(a), to = this.spot(b);
        pen.beginPath();
        pen.moveTo(from.x, from.y);
        pen.lineTo(to.x, to.y);
        pen.stroke();
      }
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    return fades;
  }

  paintNodes(pen, size) {
    const few = this.layout.places.size <= NAMED;
    for (const [index, place] of this.layout.places) {
      const { x, y } = this.spot(place), state = this.view.state(index), gone = Boolean(this.view.nodes.get(index)?.fate);
      const lit = this.members?.has(index), troubled = this.view.isTroubled(index);
      pen.beginPath();
      pen.arc(x, y, size, 0, 7);
      pen.globalAlpha = this.members && !lit && !gone ? 0.55 : 1;
      pen.fillStyle = this.colours[lit ? "blue" : "paper"];
      pen.fill();
      pen.lineWidth = troubled ? 3 : 1.6;
      pen.setLineDash(gone || state === "suspected" ? [3, 3] : []);
      pen.strokeStyle = this.colours[troubled ? "orange" : lit ? "blue" : "soft"];
      pen.stroke();
      pen.setLineDash([]);
      if (gone) { this.cross(pen, x, y, size * 0.6); }
      if (index === this.chosen) {
        pen.beginPath();
        pen.arc(x, y, size + 5, 0, 7);
        pen.lineWidth = 3;
        pen.strokeStyle = this.colours["ink"];
        pen.stroke();
      }
      if (few || index === this.chosen || index === this.hovered || gone) {
        this.label(pen, x, y - size - (index === this.chosen ? 10 : 5), this.view.name(index), gone);
      }
      pen.globalAlpha = 1;
    }
  }

  cross(pen, x, y, size) {
    pen.beginPath();
    pen.moveTo(x - size, y - size); pen.lineTo(x + size, y + size);
    pen.moveTo(x + size, y - size); pen.lineTo(x - size, y + size);
    pen.lineWidth = 2;
    pen.stroke();
  }

  // A long name near an edge moves inwards, so that all of it can be read.
  label(pen, middle, above, text, gone) {
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "center";
    const half = pen.measureText(text).width / 2 + 3, width = this.canvas.clientWidth;
    const x = 2 * half > width ? width / 2 : Math.min(Math.max(middle, half), width - half), y = Math.max(above, 14);
    pen.lineWidth = 3;
    pen.strokeStyle = this.colours["wash"];
    pen.strokeText(text, x, y);
    pen.fillStyle = this.colours[gone ? "orange" : "ink"];
    pen.fillText(text, x, y);
  }
}
