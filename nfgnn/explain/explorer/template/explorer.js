// The page: one state, and the parts that are updated when it changes.
const ways = colourings();
const look = { layout: 0, colouring: ways[0], part: 0, current: null, selection: null, selectionName: "" };
const map = new NodeMap(look, { clicked: choose, brushed: (inside) => select(inside, "rectangle on the map"), cleared: () => select(null) });

function choose(i) {
  look.current = i;
  showNode(i, byId("node-title"), byId("node-body"), choose);
  map.reveal(i);
}

/** Select the nodes for which `test` holds; `null` ends the selection. */
function select(test, name = "") {
  look.selection = test && Uint8Array.from({ length: graph.size }, (_, i) => Number(test(i)));
  look.selectionName = name;
  showSelection(look.selection, name, byId("selection-body"), { onStep: walk, onClear: () => select(null) });
  showBins();
  map.redraw();
}

/** The node before or after the current one within a list. */
function walk(nodes, by) {
  const at = nodes.indexOf(look.current);
  choose(nodes[at < 0 ? (by > 0 ? 0 : nodes.length - 1) : (at + by + nodes.length) % nodes.length]);
}

function showBins() {
  const all = new Array(page.bins.length).fill(0), chosen = new Array(page.bins.length).fill(0);
  for (let i = 0; i < graph.size; i++) {
    if (graph.bin[i] < 0) continue;
    all[graph.bin[i]] += 1;
    if (look.selection) chosen[graph.bin[i]] += look.selection[i];
  }
  const name = (b) => `h from ${page.bins[b].low} to ${page.bins[b].high}`;
  const focused = byId("bins").contains(document.activeElement);
  byId("bins").replaceChildren(binChart((b) => (all[b] ? chosen[b] / all[b] : 0), (b) => {
    look.focusBin = b;
    select((i) => graph.bin[i] === b, name(b));
  }));
  if (focused) requestAnimationFrame(() => requestAnimationFrame(() => byId("bins").querySelectorAll(".bin")[look.focusBin ?? 0]?.focus()));
}

function showLegend() {
  const { colouring } = look, looks = colouring.looks();
  if (colouring.high) {
    const bar = el("canvas", { width: LEVELS, height: 1, "aria-hidden": "true" }), context = bar.getContext("2d");
    looks.slice(0, LEVELS).forEach(({ colour }, k) => { context.fillStyle = colour; context.fillRect(k, 0, 1, 1); });
    const labels = [0, colouring.high / 2, colouring.high].map((value) => el("span", {}, fixed(value, 2)));
    const rest = colouring.missing ? [el("span", { class: "key" }, swatch(grey(), 0), colouring.missing)] : [];
    byId("legend").replaceChildren(el("div", { class: "scale", role: "img", "aria-label": `${colouring.title} from 0 to ${fixed(colouring.high, 2)}` }, bar, ...labels), ...rest);
    return;
  }
  const size = new Array(looks.length).fill(0);
  for (let i = 0; i < graph.size; i++) size[colouring.of(i)] += 1;
  byId("legend").replaceChildren(...looks.flatMap(({ colour, shape, name }, k) => (size[k] ? [el("button",
    { type: "button", title: "Select these nodes", onclick: () => select((i) => colouring.of(i) === k, `${colouring.title}: ${name}`) },
    swatch(colour, shape), `${name} (${count(size[k])})`)] : [])));
}

/** Nodes by the user's own id, or by number; a `#` before it always means the number. */
function find(text) {
  const wanted = text.trim(), number = wanted.replace(/^#/, "");
  if (page.ids && !wanted.startsWith("#")) {
    const exact = page.ids.indexOf(wanted);
    if (exact >= 0) return [exact];
    const lower = wanted.toLowerCase(), like = [];
    for (let i = 0; i < graph.size && like.length < 8; i++) if (page.ids[i].toLowerCase().includes(lower)) like.push(i);
    if (like.length) return like;
  }
  const exact = /^\d+$/.test(number) ? graph.node.indexOf(Number(number)) : -1;
  return exact >= 0 ? [exact] : [];
}

function search(event) {
  event.preventDefault();
  const text = byId("query").value, found = text.trim() ? find(text).filter((i) => i < graph.size) : [];
  const show = (i) => { byId("found").replaceChildren(); choose(i); };
  if (found.length === 1) show(found[0]);
  else if (found.length) byId("found").replaceChildren("Which one?", ...found.map((i) => el("button", { type: "button", onclick: () => show(i) }, nodeName(i))));
  else byId("found").replaceChildren(text.trim() ? `There is no node “${text.trim()}” on this page.` : "Enter the id of a node, or # and its number.");
}

function options(id, names, onChange) {
  byId(id).replaceChildren(...names.map((name, k) => el("option", { value: k }, name)));
  byId(id).addEventListener("change", (event) => onChange(Number(event.target.value)));
}

function placeNodes(layout) {
  look.layout = layout;
  byId("placed").textContent = `Placed by ${page.layouts[layout].name}: ${page.layouts[layout].note}.`;
  map.fit();
  map.place();
}

function start() {
  const names = graph.runs.map((run) => run.name).join(" and ");
  byId("title").textContent = `${names} on ${page.dataset}`;
  byId("subtitle").textContent = [`protocol ${page.protocol}, seed ${page.seed}`, plural(page.numNodes, "node"), plural(page.numEdges, "link"), `${count(numClasses)} classes`].join(" · ");
  if (page.shown < page.numNodes) {
    byId("notice").hidden = false;
    byId("notice").textContent = `This page shows a random sample of ${count(page.shown)} of ${count(page.numNodes)} nodes. The map, the search and the selections refer to the sample; the intervals of homophily, their accuracies and the mean filters refer to all nodes.`;
  }
  const missing = page.numWithoutHomophily ? ` Nodes without a label or labelled neighbours, which belong to no interval: ${count(page.numWithoutHomophily)}.` : "";
  byId("bins-note").textContent = `Bars count all nodes; accuracies are those of test nodes. Hollow marks are based on fewer than ${FEW} test nodes.${missing}`;
  byId("query").placeholder = page.ids ? "id, or #number" : "number";
  options("layout", page.layouts.map((layout) => layout.name), placeNodes);
  options("colour", ways.map((way) => way.title), (k) => { look.colouring = ways[k]; showLegend(); map.redraw(); });
  const parts = page.parts.map((_, part) => part).filter((part) => !part || graph.part.includes(part));
  options("part", parts.map((part) => (part ? page.parts[part] : "all")), (k) => { look.part = parts[k]; map.redraw(); });
  byId("search").addEventListener("submit", search);
  byId("zoom-in").addEventListener("click", () => map.zoomBy(1.5));
  byId("zoom-out").addEventListener("click", () => map.zoomBy(1 / 1.5));
  byId("zoom-fit").addEventListener("click", () => map.fit());
  showGraph(byId("node-title"), byId("node-body"));
  placeNodes(0);
  showLegend();
  select(null);
  darkMode.addEventListener("change", () => {
    showLegend();
    map.redraw();
    look.current === null ? showGraph(byId("node-title"), byId("node-body")) : choose(look.current);
  });
}

start();
/** For scripts that drive the page: the position of a node in pixels of the map. */
window.explorer = { place: (node) => { const i = graph.node.indexOf(node); return [map.x(i), map.y(i)]; }, state: look };
