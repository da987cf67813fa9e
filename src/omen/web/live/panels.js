// Lists and tables: what the graph shows, and more, in words. Text from outside is only ever set as text.

const ROWS = 200;
const WORDS = {
  peer_suspected: ["bad", (e, n) => `${n(e.peer)} suspected by ${told(e, n)}`],
  suspicion_refuted: ["good", (e, n) => `${n(e.peer)} is heard of again by ${told(e, n)} ${e.detail}`],
  peer_declared_failed: ["bad", (e, n) => `${n(e.peer)} declared failed by ${told(e, n)}${e.detail ? `: ${e.detail}` : ""}`],
  peer_left: ["", (e, n) => `${n(e.peer)} has left, as ${told(e, n)} heard`],
  peer_banned: ["bad", (e, n) => `${n(e.peer)} is dropped by ${told(e, n)}: ${e.detail}`],
  node_joined: ["good", (e, n) => `${n(e.by[0])} has joined`],
  node_rejoined: ["bad", (e, n) => `${n(e.by[0])} had been declared failed, and has joined again`],
  node_left: ["", (e, n) => `${n(e.by[0])} has left`],
  node_stood_still: ["bad", (e, n) => `${n(e.by[0])} stood still ${e.detail}`],
  repair_begun: ["", (e, n) => `${n(e.by[0])} begins a repair: ${e.detail} of ${n(e.peer)}`],
  repair_finished: ["good", (e, n) => `${n(e.by[0])} has finished a repair: ${repaired(e, n)}`],
  split_topics_linked: ["good", (e, n) => `the audit at ${n(e.by[0])} has linked split topics: ${e.detail}`],
  window_cut: ["bad", (e, n) => `a window at ${n(e.by[0])} was cut short: ${e.detail}`],
};

function told(event, name) {
  return event.by.length > 2 ? `${event.by.length} nodes` : event.by.map(name).join(" and ");
}

function repaired(event, name) {
  const [kind, links] = event.detail.split(", links ");
  return `${kind} of ${name(event.peer)}${links === undefined ? "" : `, ${count(Number(links), "new link")}`}`;
}

function phrase(event, name) {
  const [mood, words] = WORDS[event.what] || ["", (e, n) => `${n(e.by[0])}: ${e.what.replaceAll("_", " ")} ${e.peer ? n(e.peer) : ""}`];
  return [mood, words(event, name)];
}

function make(kind, text, kinds) {
  const element = document.createElement(kind);
  if (text !== undefined) { element.textContent = text; }
  if (kinds) { element.className = kinds; }
  return element;
}

function button(text, act) {
  const made = make("button", text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

const inOrder = new Intl.Collator("en", { numeric: true }).compare;
const seconds = (value) => (value === null || value === undefined ? "" : value < 1 ? `${Math.round(value * 1e4) / 10} ms` : `${value} s`);
const bytes = (value) => (value < 1e4 ? `${value} B` : value < 1e7 ? `${Math.round(value / 1e3)} kB` : `${Math.round(value / 1e6)} MB`);
const clock = (time) => new Date(time).toTimeString().slice(0, 8);
const count = (number, one, many) => `${number} ${number === 1 ? one : many || `${one}s`}`;

function summarise(view) {
  const there = view.there(), split = view.split(), names = (all) => all.slice(0, 3).join(", ") + (all.length > 3 ? " and more" : "");
  const by = (state) => view.shown().filter((index) => view.state(index) === state).map((index) => view.name(index)).sort(inOrder);
  const parts = [`${count(there.length, "node")}, ${count(view.links.size, "link")}`];
  const stalled = [...view.topics.values()].filter((one) => one.stalled).map((one) => view.picture.topics.get(one.topic) || "");
  for (const state of ["failed", "silent", "suspected", "joining", "stalled"]) {
    const found = by(state);
    if (found.length) { parts.push(`${state}: ${names(found)}`); }
  }
  parts.push(split.length ? `split topics: ${names(split.map((one) => view.picture.topics.get(one.topic) || ""))}`
    : stalled.length ? `stalled topics: ${names(stalled)}` : "every topic is connected");
  const slow = there.filter((index) => (view.nodes.get(index).slow || []).length).length;
  if (slow) { parts.push(`slow consumers at ${count(slow, "node")}`); }
  const rate = (field) => Math.round(there.reduce((sum, index) => sum + (view.nodes.get(index)[field] || 0), 0) * 10) / 10;
  parts.push(`per second ${rate("out")} published, ${rate("into")} delivered`);
  return { text: parts.join("; "), bad: Boolean(split.length || stalled.length || by("failed").length || by("silent").length) };
}

function showTopics(list, said, view, { filter, topic, choose }) {
  const rank = (one) => (one.pieces > 1 ? 0 : one.stalled ? 1 : 2);
  const name = (one) => view.picture.topics.get(one.topic) || "";
  const found = [...view.topics.values()].filter((one) => name(one).toLowerCase().includes(filter))
    .sort((a, b) => rank(a) - rank(b) || inOrder(name(a), name(b)));
  said.textContent = `${count(found.length, "topic")}${found.length > ROWS ? `, the first ${ROWS} are listed` : ""}`;
  keepFocus(list, found.slice(0, ROWS).map((one) => {
    const item = make("li", undefined, rank(one) < 2 ? "bad" : "");
    const act = button("", () => choose(one.topic === topic ? null : one.topic));
    act.dataset.key = one.topic;
    act.setAttribute("aria-pressed", String(one.topic === topic));
    const trouble = one.pieces > 1 ? `split, ${one.pieces} pieces; ` : one.stalled ? `stalled at ${count(one.stalled, "node")}; ` : "";
    act.append(make("span", name(one)), make("span", `${trouble}${count(one.subscribers, "subscriber")}`));
    item.append(act);
    return item;
  }));
}

// New items in the place of the old ones, where they differ; the focus stays on the one it was on.
const texts = new WeakMap();

function keepFocus(list, items) {
  const key = list.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  while (list.children.length > items.length) { list.lastElementChild.remove(); }
  items.forEach((item, at) => {
    const text = item.outerHTML, former = list.children[at];
    if (former && texts.get(former) === text) { return; }
    texts.set(item, text);
    if (former) { former.replaceWith(item); } else { list.append(item); }
  });
  if (key !== undefined) {
    const again = list.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (again !== document.activeElement) { again?.focus({ preventScroll: true }); }
  }
}

function showNodes(body, said, view, { filter, order, chosen, choose }) {
  const topics = (node) => node.topics.map((topic) => view.picture.topics.get(topic) || "");
  const text = (index) => [view.name(index), view.state(index), ...topics(view.nodes.get(index))].join(" ").toLowerCase();
  const by = {
    trouble: (a, b) => view.isTroubled(b) - view.isTroubled(a), name: () => 0,
    links: (a, b) => view.nodes.get(b).links.length - view.nodes.get(a).links.length,
    into: (a, b) => (view.nodes.get(b).into || 0) - (view.nodes.get(a).into || 0),
    p99: (a, b) => (view.nodes.get(b).p99 || 0) - (view.nodes.get(a).p99 || 0),
  }[order];
  const found = view.shown().filter((index) => filter.split(/\s+/).every((word) => text(index).includes(word)))
    .sort((a, b) => by(a, b) || inOrder(view.name(a), view.name(b)));
  said.textContent = `${count(found.length, "node")}${found.length > ROWS ? `, the first ${ROWS} are listed: narrow them by the filter` : ""}`;
  keepFocus(body, found.slice(0, ROWS).map((index) => {
    const node = view.nodes.get(index), row = make("tr", undefined, index === chosen ? "chosen" : ""), head = make("th");
    head.scope = "row";
    const act = button(view.name(index), () => choose(index));
    act.dataset.key = index;
    head.append(act);
    const state = view.state(index), stalled = (node.stalled || []).length, slow = (node.slow || []).join(", ");
    row.append(head, make("td", state, state === "ok" ? "" : "bad"));
    for (const value of [node.links.length, node.topics.length, node.out, node.into, seconds(node.p50), seconds(node.p99)]) {
      row.append(make("td", String(value ?? ""), "number"));
    }
    row.append(make("td", slow, slow ? "bad" : ""), make("td", stalled ? count(stalled, "stream") : "", stalled ? "bad" : ""));
    return row;
  }));
}

function showDetail(place, view, index, choose) {
  const node = view.nodes.get(index), list = make("dl");
  const fact = (name, value, bad) => {
    const held = make("dd", undefined, bad ? "bad" : "");
    held.append(...[value].flat());
    list.append(make("dt", name), held);
  };
  const named = (all) => all.map((peer) => view.name(peer)).sort(inOrder);
  const peers = (all) => [...all].sort((a, b) => inOrder(view.name(a), view.name(b))).map((peer) => {
    const act = button(view.name(peer), () => choose(peer));
    act.dataset.key = `peer-${peer}`;
    return act;
  });
  const names = (all) => all.map((topic) => view.picture.topics.get(topic) || "").sort(inOrder).join(", ");
  const state = view.state(index);
  fact("state", state + (node.repairing ? `, coordinates a repair (${node.repairing[0]}, ${view.name(node.repairing[1])})` : ""), state !== "ok");
  if ((node.warnings || []).length) { fact("warnings", node.warnings.join(", ").replaceAll("_", " ")); }
  fact("links", peers(node.links));
  const hidden = (node.topics_hidden || 0) + (node.carried_hidden || 0);
  fact("subscribes to", names(node.topics) + (hidden ? ` and ${hidden} that access rules hide` : ""));
  if (node.carried.length) { fact("carries for others", names(node.carried)); }
  fact("publications", `${node.out} published, ${node.into} delivered per second; ${count(node.gaps || 0, "gap")}`);
  if (node.p99 !== null && node.p99 !== undefined) { fact("latency", `half within ${seconds(node.p50)}, 99% within ${seconds(node.p99)}`); }
  if (node.window) { fact("windows", `${node.window[0]} publications, ${bytes(node.window[1])} of ${bytes(node.window[2])}`); }
  fact("to be sent", bytes(node.queue || 0));
  if ((node.suspected || []).length) { fact("suspects", named(node.suspected).join(", "), true); }
  if ((node.slow || []).length) { fact("slow consumers", node.slow.join(", "), true); }
  for (const [topic, publisher, missing, waits] of node.stalled || []) {
    fact("stalled", `${view.picture.topics.get(topic) || ""} by ${publisher}: ${missing} missing for ${seconds(waits)}`, true);
  }
  fact("incarnation", String(node.incarnation));
  if (/^[\w.:[\]-]+$/.test(node.http || "")) {
    const link = make("a", node.http);
    link.href = `http://${node.http}/`;
    link.rel = "noreferrer";
    link.dataset.key = "page";
    fact("its own page", link);
  }
  keepFocus(place, [list]);
}

function showEvents(list, model, view, moment, jump) {
  const shown = model.events.slice(-300).reverse();
  const name = (index) => view.name(index);
  let isFound = false;
  keepFocus(list, shown.map((event) => {
    const [mood, text] = phrase(event, name), item = make("li"), act = button("", () => jump(event.time));
    const here = moment !== null && !isFound && event.time <= moment;
    isFound = isFound || here;
    act.className = `${mood} ${here ? "now" : ""}`.trim();
    act.dataset.key = `${event.time}-${event.what}-${event.peer}-${event.by[0]}`;
    const time = make("time", clock(event.time));
    time.dateTime = new Date(event.time).toISOString();
    act.append(time, make("span", text));
    item.append(act);
    return item;
  }));
}
