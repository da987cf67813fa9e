// What belongs together: the stream of events, what is chosen, and the moment that is shown.

const find = (id) => document.getElementById(id);
const model = new Model();
const chosen = { node: null, topic: null, moment: null };
const token = new URLSearchParams(location.hash.slice(1)).get("token") || "";
const BUSY = 100;
let source = null, renderedAt = 0, last = "", arrived = 0, isDue = false, playing = null, saidAt = 0;

const graph = new Graph(find("graph"), (index) => chooseNode(index));

function chooseNode(index) { chosen.node = index; find("lines").textContent = ""; render(); }

function chooseTopic(topic) { chosen.topic = topic; connect(); render(); }

// The tree of a topic is only gathered while a page looks at it: which topic stands in the address of the stream.
function connect() {
  source?.close();
  const asked = new URLSearchParams(chosen.topic === null ? { last } : { last, topic: chosen.topic });
  source = new EventSource(`events?${asked}`);
  source.addEventListener("open", () => { find("connection").textContent = "live"; });
  source.addEventListener("error", () => {
    find("connection").textContent = "the node does not answer; trying again";
    if (source.readyState === EventSource.CLOSED) { setTimeout(connect, 2000); }
  });
  source.addEventListener("picture", (event) => {
    last = event.lastEventId;
    model.begin(JSON.parse(event.data));
    Object.assign(chosen, { node: null, moment: null });
    stop();
    find("cluster").textContent = `cluster ${model.about.cluster || ""}`;
    soon();
  });
  source.addEventListener("tick", (event) => {
    last = event.lastEventId;
    model.take(JSON.parse(event.data));
    arrived = performance.now();
    soon();
  });
}

// Several events of one moment are shown together.
function soon() {
  if (!isDue) { isDue = true; setTimeout(() => { isDue = false; render(false); }, 60); }
}

function present() {
  const picture = copied(model.live);
  picture.time += performance.now() - arrived;
  return picture;
}

function render(asked = true) {
  const isLive = chosen.moment === null;
  const view = new View(isLive ? present() : model.at(chosen.moment), model.names);
  if (chosen.node !== null && !view.nodes.has(chosen.node)) { chosen.node = null; }
  const tooMany = view.shown().length > LARGEST_GRAPH;
  find("graph").hidden = find("legend").hidden = find("keys").hidden = tooMany;
  find("too-many").hidden = !tooMany;
  if (!tooMany) { graph.show(view, chosen.topic, chosen.node, isLive); }
  renderSummary(view, isLive);
  renderTime(view, isLive);
  if (view.shown().length > BUSY && isLive && !asked && performance.now() - renderedAt < 1000) { return; }
  renderedAt = performance.now();
  renderTables(view);
}

// With many nodes the tables follow once per second, and at once when they are used.
function renderTables(view) {
  const filter = (id) => find(id).value.trim().toLowerCase();
  showTopics(find("topics"), find("topics-said"), view, { filter: filter("topic-filter"), topic: chosen.topic, choose: chooseTopic });
  showNodes(find("nodes"), find("nodes-said"), view,
    { filter: filter("node-filter"), order: find("node-order").value, chosen: chosen.node, choose: chooseNode });
  showEvents(find("events"), model, view, chosen.moment, jump);
  renderNode(view);
}

// A screen reader is told at most every other second.
function renderSummary(view, isLive) {
  const { text, bad } = summarise(view), said = find("summary");
  const whole = model.live.nodes.size === 0 ? "Waiting for the first nodes." : `${isLive ? "" : `At ${clock(chosen.moment)}: `}${text}.`;
  const now = performance.now(), isOther = bad !== said.classList.contains("bad") || said.dataset.live !== String(isLive);
  if (said.textContent !== whole && (now - saidAt > 2000 || isOther || !isLive)) {
    said.textContent = whole;
    said.dataset.live = isLive;
    saidAt = now;
  }
  said.classList.toggle("bad", bad);
}

function renderTime(view, isLive) {
  const slider = find("moment"), begun = model.begun, until = Math.max(model.live.time, begun + 1000);
  slider.min = begun;
  slider.max = until;
  slider.value = isLive ? until : chosen.moment;
  slider.setAttribute("aria-valuetext", isLive ? "now" : clock(chosen.moment));
  find("clock").textContent = isLive ? "now" : clock(chosen.moment);
  find("live").setAttribute("aria-pressed", String(isLive));
  find("play").setAttribute("aria-pressed", String(playing !== null));
  const marks = find("marks"), pen = marks.getContext("2d"), style = getComputedStyle(document.documentElement);
  marks.width = marks.clientWidth;
  marks.height = marks.clientHeight;
  for (const event of model.events) {
    const [mood] = phrase(event, () => "");
    pen.fillStyle = style.getPropertyValue(mood === "bad" ? "--orange" : mood === "good" ? "--green" : "--soft");
    if (event.time >= begun) { pen.fillRect(8 + (event.time - begun) / (until - begun) * (marks.width - 16) - 1, 0, 2, marks.height); }
  }
}

function renderNode(view) {
  const node = chosen.node;
  find("detail-title").textContent = node === null ? "Node" : `Node ${view.name(node)}`;
  if (node === null) { keepFocus(find("detail"), [make("p", "Choose a node in the graph or in the table.", "small")]); }
  else { showDetail(find("detail"), view, node, chooseNode); }
  find("inside").hidden = !(node !== null && node === model.me && model.about.has_token);
  renderControls(view);
}

// The timeline: a moment, or now. While it is replayed the moment goes on by itself.

function stop() { clearInterval(playing); playing = null; }

function jump(moment) {
  chosen.moment = Math.min(Math.max(moment, model.begun), model.live.time);
  render();
}

function replay() {
  if (playing !== null) { stop(); render(); return; }
  if (chosen.moment === null) { chosen.moment = Math.max(model.begun, model.live.time - 60000); }
  playing = setInterval(() => {
    if (chosen.moment >= model.live.time) { stop(); chosen.moment = null; render(); return; }
    jump(chosen.moment + 400);
  }, 100);
  render();
}

// Only in a cluster that was brought up to be tried, and only with its token.

const ACTIONS = [["kill", "Kill"], ["freeze", "Freeze"], ["thaw", "Thaw"], ["start", "Start"]];

function renderControls(view) {
  const may = Boolean(model.about.controls && token);
  find("controls").hidden = !may || chosen.node === null;
  find("cut").hidden = find("controls").hidden;
  find("publish").hidden = !may || chosen.topic === null;
  if (find("controls").hidden) { return; }
  renderCut(view);
  const gone = Boolean(view.nodes.get(chosen.node)?.fate);
  keepFocus(find("controls"), ACTIONS.map(([action, name]) => {
    const act = button(name, () => command({ action, node: view.name(chosen.node) }));
    act.dataset.key = `${action}-${view.name(chosen.node)}`;
    act.disabled = gone !== (action === "start") && action !== "thaw";
    return act;
  }));
}

// From which other node, neighbours first, or from all: what was chosen stays chosen.
function renderCut(view) {
  const links = new Set(view.nodes.get(chosen.node).links), list = find("cut-from"), former = list.value;
  const others = view.there().filter((index) => index !== chosen.node)
    .sort((a, b) => links.has(b) - links.has(a) || inOrder(view.name(a), view.name(b)));
  const names = ["", ...others.map((index) => view.name(index))];
  if (names.join("\n") === Array.from(list.options, (option) => option.value).join("\n")) { return; }
  list.replaceChildren(...names.map((name) => new Option(name || "all others", name)));
  list.value = names.includes(former) ? former : "";
}

async function command(wanted) {
  find("done").textContent = `${wanted.action} ${wanted.node || ""}: asked`;
  try {
    const answer = await fetch("control", { method: "POST", body: JSON.stringify(wanted), headers: { Authorization: `Bearer ${token}` } });
    find("done").textContent = (await answer.text()).trim();
  } catch (error) {
    find("done").textContent = `${wanted.action}: ${error.message}`;
  }
}

async function unlock(event) {
  event.preventDefault();
  const answer = await fetch("node", { headers: { Authorization: `Bearer ${find("token").value || token}` } });
  if (!answer.ok) { find("lines").textContent = await answer.text(); return; }
  const told = await answer.json();
  find("lines").textContent = `${told.log.join("\n")}\n\n${JSON.stringify(told.settings, null, 1)}`;
}

find("live").addEventListener("click", () => { stop(); chosen.moment = null; render(); });
find("play").addEventListener("click", replay);
find("moment").addEventListener("input", () => { stop(); jump(+find("moment").value); });
for (const id of ["topic-filter", "node-filter", "node-order"]) { find(id).addEventListener("input", () => render()); }
find("unlock").addEventListener("submit", unlock);
const nameOfChosen = () => model.names.get(chosen.node);
find("cut").addEventListener("submit", (event) => {
  event.preventDefault();
  command({ action: "cut", node: nameOfChosen(), other: find("cut-from").value, seconds: find("cut-seconds").value });
});
find("heal").addEventListener("click", () => command({ action: "heal", node: nameOfChosen() }));
find("publish").addEventListener("submit", (event) => {
  event.preventDefault();
  command({ action: "publish", topic: model.live.topics.get(chosen.topic), text: find("payload").value });
});
setInterval(() => { if (chosen.moment === null && !document.hidden) { render(); } }, 3000);
connect();
