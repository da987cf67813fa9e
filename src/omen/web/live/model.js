// The cluster as it was told: a picture, then ticks. Everything before is kept, so that any moment can be shown again.
// A node is never changed in place: a moment of the past may still show it.

const HISTORY = { ticks: 6000, every: 50, drop: 1000 };
const FADE_MS = 4000;
const GONE_MS = 30000;

function newPicture() {
  return { time: 0, topics: new Map(), nodes: new Map() };
}

function applied(picture, tick) {
  picture.time = tick.time;
  for (const [topic, name] of Object.entries(tick.topics || {})) { picture.topics.set(+topic, name); }
  for (const [index, changed] of Object.entries(tick.nodes || {})) {
    if (changed === null) { picture.nodes.delete(+index); continue; }
    const since = "fate" in changed ? { fateTime: tick.time } : {};
    picture.nodes.set(+index, { links: [], topics: [], carried: [], ...picture.nodes.get(+index), ...changed, ...since });
  }
  return picture;
}

// Topics only ever become more, so that all moments share them.
function copied(picture) {
  return { time: picture.time, topics: picture.topics, nodes: new Map(picture.nodes) };
}

class Model {
  constructor() {
    this.me = 0;
    this.about = {};
    this.live = newPicture();
    this.ticks = [];
    this.checkpoints = [newPicture()];
    this.events = [];
    this.names = new Map();  // also of nodes that are forgotten, for events about them
  }

  // A new picture: another node tells it, or this page was away for too long. The timeline begins again.
  begin(told) {
    this.me = told.me;
    this.about = told;
    const picture = applied(newPicture(), told);
    this.live = picture;
    this.ticks = [];
    this.events = [];
    this.checkpoints = [copied(picture)];
    this.remember(told);
  }

  remember(told) {
    for (const [index, changed] of Object.entries(told.nodes || {})) {
      if (changed?.name) { this.names.set(+index, changed.name); }
    }
  }

  take(tick) {
    applied(this.live, tick);
    this.remember(tick);
    this.ticks.push(tick);
    if (this.ticks.length % HISTORY.every === 0) { this.checkpoints.push(copied(this.live)); }
    for (const event of tick.events || []) { this.note(event); }
    if (this.ticks.length > HISTORY.ticks) {
      this.ticks.splice(0, HISTORY.drop);
      this.checkpoints.splice(0, HISTORY.drop / HISTORY.every);
    }
  }

  // What several nodes say of one thing is one event.
  note([time, by, what, peer, detail]) {
    for (let at = this.events.length - 1; at >= 0 && this.events[at].time > time - 15000; at -= 1) {
      const one = this.events[at];
      if (one.what === what && one.peer === peer && (peer !== null || one.by[0] === by) && what.startsWith("peer")) {
        if (!one.by.includes(by)) { one.by.push(by); }
        return;
      }
    }
    const event = { time, by: [by], what, peer, detail };
    let at = this.events.length;
    while (at > 0 && this.events[at - 1].time > time) { at -= 1; }
    this.events.splice(at, 0, event);
    if (this.events.length > 2000) { this.events.splice(0, 500); }
  }

  get begun() { return this.checkpoints[0].time; }

  // The picture after all ticks up to a moment.
  at(time) {
    let number = 0;
    for (let low = 0, high = this.ticks.length; low < high;) {
      const middle = (low + high) >> 1;
      if (this.ticks[middle].time <= time) { low = middle + 1; } else { high = middle; }
      number = low;
    }
    const checkpoint = Math.min(Math.floor(number / HISTORY.every), this.checkpoints.length - 1);
    const picture = copied(this.checkpoints[checkpoint]);
    for (let one = checkpoint * HISTORY.every; one < number; one += 1) { applied(picture, this.ticks[one]); }
    picture.time = time;
    return picture;
  }
}

// What follows from a picture: which nodes are there, which links, which topics are split. Looked at once per picture.
class View {
  constructor(picture, names) {
    this.picture = picture;
    this.names = names;
    this.time = picture.time;
    this.nodes = picture.nodes;
    this.suspected = new Set();
    for (const node of this.nodes.values()) {
      if (!node.fate) { for (const peer of node.suspected || []) { this.suspected.add(peer); } }
    }
    this.links = new Map();
    for (const [index, node] of this.nodes) {
      if (!this.isThere(index)) { continue; }
      for (const peer of node.links) {
        if (this.isThere(peer)) { this.links.set(index < peer ? `${index}-${peer}` : `${peer}-${index}`, [index, peer]); }
      }
    }
    this.topics = this.findTopics();
  }

  isThere(index) {
    const node = this.nodes.get(index);
    return node !== undefined && !node.fate && node.name !== undefined;
  }

  // Nodes of the overlay: those there, and for a while those that have just gone. One that only watches is none.
  shown() {
    return [...this.nodes].filter(([, node]) => node.name !== undefined && !(node.role && !node.links.length)
      && (!node.fate || this.time - node.fateTime < GONE_MS)).map(([index]) => index);
  }

  there() { return this.shown().filter((index) => this.isThere(index)); }

  name(index) { return this.names.get(index) || (index ? `node ${index}` : ""); }

  state(index) {
    const node = this.nodes.get(index);
    if (!node) { return "unknown"; }
    if (node.fate) { return node.fate; }
    if (this.suspected.has(index)) { return "suspected"; }
    return node.state;
  }

  isTroubled(index) {
    const node = this.nodes.get(index);
    return this.state(index) !== "ok" || (node.slow || []).length > 0 || (node.stalled || []).length > 0;
  }

  members(topic) {
    return [...this.nodes.keys()].filter((index) => this.isThere(index)
      && (this.nodes.get(index).topics.includes(topic) || this.nodes.get(index).carried.includes(topic)));
  }

  // Each topic with its subscribers, its pieces, and streams that wait for something.
  findTopics() {
    const found = new Map();
    const of = (topic) => {
      if (!found.has(topic)) { found.set(topic, { topic, subscribers: 0, members: [], pieces: 0, stalled: 0, parent: new Map() }); }
      return found.get(topic);
    };
    for (const [index, node] of this.nodes) {
      if (!this.isThere(index)) { continue; }
      for (const topic of node.topics) { of(topic).subscribers += 1; }
      for (const topic of [...node.topics, ...node.carried]) { of(topic).members.push(index); of(topic).parent.set(index, index); }
      for (const [topic] of node.stalled || []) { of(topic).stalled += 1; }
    }
    const root = (parent, index) => {
      let at = index;
      while (parent.get(at) !== at) { parent.set(at, parent.get(parent.get(at))); at = parent.get(at); }
      return at;
    };
    for (const one of found.values()) { one.pieces = one.members.length; }
    for (const [u, v] of this.links.values()) {
      const mine = this.nodes.get(u), other = new Set([...this.nodes.get(v).topics, ...this.nodes.get(v).carried]);
      for (const topic of [...mine.topics, ...mine.carried]) {
        if (!other.has(topic)) { continue; }
        const one = found.get(topic), a = root(one.parent, u), b = root(one.parent, v);
        if (a !== b) { one.parent.set(a, b); one.pieces -= 1; }
      }
    }
    return found;
  }

  split() { return [...this.topics.values()].filter((one) => one.pieces > 1); }

  // To whom publications of a topic went lately, link by link.
  tree(topic) {
    const found = new Set();
    for (const [index, node] of this.nodes) {
      for (const peer of this.isThere(index) ? (node.tree || {})[topic] || [] : []) { found.add(`${index}-${peer}`); }
    }
    return found;
  }
}
