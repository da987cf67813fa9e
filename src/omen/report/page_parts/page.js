"use strict";
(function () {
  const byId = (id) => document.getElementById(id);

  /* The ledger: rows are in the page, filters only hide them. */
  const rows = Array.from(document.querySelectorAll("#claims tbody tr"));
  const filters = ["paper", "verdict"];

  function filterClaims() {
    const words = byId("words").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = filters.every((name) => !byId(name).value || row.dataset[name] === byId(name).value)
        && words.every((word) => text.includes(word));
      row.hidden = !fits;
      count += fits ? 1 : 0;
    }
    byId("shown").textContent = count + " of " + rows.length + " claims";
  }

  filters.forEach((name) => byId(name).addEventListener("change", filterClaims));
  byId("words").addEventListener("input", filterClaims);
  filterClaims();

  /* The overlay: what is shown follows from the topic chosen, the node lost and the step. */
  const run = JSON.parse(byId("run").textContent);
  const canvas = byId("overlay");
  const state = { topic: null, lost: null, step: 0 };
  const SVG = "http://www.w3.org/2000/svg";
  let timer = null;

  const key = (link) => link[0] + "-" + link[1];

  function lastStep() {
    if (state.lost === null) { return 0; }
    const loss = run.losses[state.lost];
    return 2 + loss.added.length + (dropped(loss).length ? 1 : 0);
  }

  function dropped(loss) {
    return loss.removed.filter((link) => !link.includes(state.lost));
  }

  /* Links there are at the present step, those made by the repair marked. */
  function linksNow() {
    if (state.lost === null || state.step === 0) { return run.links.map((ends) => ({ ends, made: false })); }
    const loss = run.losses[state.lost];
    const made = loss.added.slice(0, Math.max(0, state.step - 2));
    const gone = new Set(state.step === lastStep() ? dropped(loss).map(key) : []);
    return run.links.filter((ends) => !ends.includes(state.lost) && !gone.has(key(ends)))
      .map((ends) => ({ ends, made: false }))
      .concat(made.map((ends) => ({ ends, made: true })));
  }

  function isGone(node) { return state.lost === node && state.step > 0; }

  function wants(node, topic) { return run.nodes[node].topics.includes(topic); }

  /* Topics whose present subscribers are not one piece of the present links. */
  function splitTopics() {
    const links = linksNow();
    return run.topics.map((_, topic) => topic).filter((topic) => {
      const members = run.nodes.map((_, node) => node).filter((node) => wants(node, topic) && !isGone(node));
      if (members.length < 2) { return false; }
      const seen = new Set([members[0]]);
      const edge = [members[0]];
      while (edge.length) {
        const here = edge.pop();
        for (const { ends } of links) {
          const there = ends[0] === here ? ends[1] : ends[1] === here ? ends[0] : null;
          if (there !== null && !seen.has(there) && wants(there, topic)) { seen.add(there); edge.push(there); }
        }
      }
      return seen.size < members.length;
    });
  }

  function element(name, attributes, parent) {
    const made = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach(([attribute, value]) => made.setAttribute(attribute, value));
    parent.appendChild(made);
    return made;
  }

  const linkLayer = element("g", { "aria-hidden": "true" }, canvas);
  const nodeLayer = element("g", {}, canvas);
  const nodeMarks = run.nodes.map((node, place) => {
    const mark = element("g", { class: "node", tabindex: "0", role: "button", "data-node": place,
      transform: "translate(" + node.x + " " + node.y + ")" }, nodeLayer);
    element("circle", { r: 17 }, mark);
    element("text", {}, mark).textContent = place;
    mark.addEventListener("click", () => lose(place));
    mark.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); lose(place); }
    });
    return mark;
  });

  function isLit(ends) { return state.topic !== null && ends.every((node) => wants(node, state.topic)); }

  function draw() {
    linkLayer.replaceChildren();
    for (const { ends, made } of linksNow()) {
      const [one, other] = ends.map((node) => run.nodes[node]);
      const words = ["link"].concat(isLit(ends) ? ["lit"] : [], made ? ["new"] : []);
      element("line", { class: words.join(" "), "data-link": key(ends), x1: one.x, y1: one.y, x2: other.x, y2: other.y },
        linkLayer);
    }
    const shadow = new Set(state.lost !== null && state.step >= 2 ? run.losses[state.lost].shadow : []);
    nodeMarks.forEach((mark, node) => {
      const gone = isGone(node);
      const lit = !gone && state.topic !== null && wants(node, state.topic);
      const words = ["node"].concat(lit ? ["lit"] : [], gone ? ["lost"] : [], shadow.has(node) ? ["shadow"] : []);
      mark.setAttribute("class", words.join(" "));
      const topics = run.nodes[node].topics.map((topic) => run.topics[topic]).join(", ");
      mark.setAttribute("aria-label", "node " + node + (gone ? ", lost" : "") + ", wants topics " + topics
        + (shadow.has(node) ? ", in the shadow set" : ""));
    });
    tell();
  }

  function tell() {
    const words = [];
    if (state.topic !== null) {
      const members = run.nodes.filter((_, node) => wants(node, state.topic) && !isGone(node)).length;
      words.push("Topic " + run.topics[state.topic] + ": " + members + " subscribers, "
        + linksNow().filter(({ ends }) => isLit(ends)).length + " links among them.");
    }
    if (state.lost !== null) { words.push("Step " + state.step + " of " + lastStep() + ": " + stepWords()); }
    const split = splitTopics();
    words.push(split.length
      ? "Split topics: " + split.map((topic) => run.topics[topic]).join(", ") + "."
      : "Every topic is connected.");
    byId("state").textContent = words.join(" ");
    byId("back").disabled = state.lost === null || state.step === 0;
    byId("forward").disabled = state.lost === null || state.step === lastStep();
    byId("play").disabled = state.lost === null;
  }

  function stepWords() {
    const loss = run.losses[state.lost];
    if (state.step === 0) { return "all is well; node " + state.lost + " is about to be lost."; }
    if (state.step === 1) { return "node " + state.lost + " is lost, and its links with it."; }
    const took = state.step === lastStep() ? " The repair took " + loss.microseconds + " microseconds." : "";
    if (state.step === 2) {
      return "its former neighbours and backups, " + loss.shadow.length + " nodes, are the shadow set (ringed): they repair."
        + took;
    }
    if (state.step - 2 <= loss.added.length) {
      const [one, other] = loss.added[state.step - 3];
      return "link " + one + " to " + other + " is made (dashed)." + took;
    }
    return "links that serve nobody any more are dropped." + took;
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    byId("play").setAttribute("aria-pressed", "false");
    byId("play").textContent = "Play";
  }

  function lose(node) {
    stop();
    state.lost = node;
    state.step = node === null ? 0 : 1;
    byId("lose").value = node === null ? "" : String(node);
    draw();
  }

  function stepBy(steps) {
    state.step = Math.min(lastStep(), Math.max(0, state.step + steps));
    draw();
    if (state.step === lastStep()) { stop(); }
  }

  function option(select, value, text) {
    const made = document.createElement("option");
    made.value = value;
    made.textContent = text;
    select.appendChild(made);
  }

  option(byId("topic"), "", "none");
  run.topics.forEach((label, topic) => option(byId("topic"), String(topic), label));
  option(byId("lose"), "", "none");
  run.nodes.forEach((_, node) => option(byId("lose"), String(node), String(node)));
  const chosen = (select) => (select.value === "" ? null : Number(select.value));
  byId("topic").addEventListener("change", (event) => { state.topic = chosen(event.target); draw(); });
  byId("lose").addEventListener("change", (event) => lose(chosen(event.target)));
  byId("back").addEventListener("click", () => { stop(); stepBy(-1); });
  byId("forward").addEventListener("click", () => { stop(); stepBy(1); });
  byId("reset").addEventListener("click", () => {
    state.topic = null;
    byId("topic").value = "";
    lose(null);
  });
  byId("play").addEventListener("click", () => {
    if (timer) { stop(); return; }
    if (state.step === lastStep()) { state.step = 0; draw(); }
    byId("play").setAttribute("aria-pressed", "true");
    byId("play").textContent = "Pause";
    timer = setInterval(() => stepBy(1), 900);
  });
  byId("recorded").textContent = "Recorded: " + run.made + ".";
  draw();
}());
