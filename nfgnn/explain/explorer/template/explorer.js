// The page: one state, and the parts that are updated when it changes.
const ways = colourings();
const look = {
  layout: page.startLayout, colouring: startColouring(), part: 0, current: null,
  suggested: mostSurprising(), selection: null, selectionName: "", emphasis: null,
};
const map = new NodeMap(look, {
  clicked: choose,
  brushed: (inside) => select(inside, "rectangle on the map"),
  cleared: () => select(null),
});
const oneColumn = matchMedia("(max-width: 999px)");
const stillness = matchMedia("(prefers-reduced-motion: reduce)");
let cameFrom = 0; // where the page was scrolled to before it moved to the node

/** Two runs: where they disagree. Else homophily on a map of filters, classes on one of edges. */
function startColouring() {
  const name = graph.runs.length > 1 ? "comparison" : page.startLayout ? "homophily" : "class";
  return ways.find((way) => way.name === name);
}

function choose(i) {
  look.current = i;
  showCurrent();
  map.reveal(i);
  if (!oneColumn.matches) return;
  cameFrom = window.scrollY;
  scroll(() => byId("node").getBoundingClientRect().top + window.scrollY - 8);
}

function scroll(top) {
  window.scrollTo({ top: top(), behavior: stillness.matches ? "auto" : "smooth" });
}

/** The chosen node, or the most surprising one. */
function showCurrent() {
  const i = look.current ?? look.suggested;
  markSurprising(i, byId("surprising-body"));
  byId("back").hidden = look.current === null;
  byId("node-kind").hidden = look.current !== null || i === null;
  byId("node-reason").textContent = i === null ? "" : unbroken(reasonOf(i));
  if (i !== null) showNode(i, byId("node-title"), byId("node-body"), choose);
  else {
    byId("node-title").textContent = "Node";
    const hint = el("p", { class: "note" }, "Select a node on the map, or find it by its id.");
    byId("node-body").replaceChildren(hint, ...(withFilters.length ? [] : [noFilters()]));
  }
}

/** Grey out the other nodes while the pointer or the focus is on a class; null ends it. */
function emphasise(test, category = null) {
  look.emphasis = test;
  for (const mark of document.querySelectorAll("[data-class]")) {
    mark.classList.toggle("faded", category !== null && mark.dataset.class !== `${category}`);
  }
  map.redraw();
}

const emphasiseClass = (c) => emphasise(c === null ? null : (i) => graph.label[i] === c, c);

/** Select the nodes for which `test` holds; `null` ends the selection. */
function select(test, name = "") {
  look.selection = test && Uint8Array.from({ length: graph.size }, (_, i) => Number(test(i)));
  look.selectionName = name;
  byId("interval").value = "0";
  const body = byId("selection-body"), focused = body.contains(document.activeElement);
  emphasise(null); // the element under the pointer may be about to disappear
  body.classList.toggle("two", withFilters.length > 0);
  byId("selection-title").textContent = test ? "Selection" : "All nodes";
  const onClear = () => select(null);
  if (test) showSelection(look.selection, name, body, { onStep: walk, onClear });
  else showAll(body, { onClass: emphasiseClass, onSelect: select });
  if (focused) body.focus({ preventScroll: true });
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
  const focused = byId("bins").contains(document.activeElement);
  byId("bins").replaceChildren(binChart((b) => (all[b] ? chosen[b] / all[b] : 0), selectBin));
  if (!focused) return;
  const refocus = () => byId("bins").querySelectorAll(".bin")[look.focusBin ?? 0]?.focus();
  requestAnimationFrame(() => requestAnimationFrame(refocus)); // after the chart has been drawn
}

const binName = (b) => `h from ${page.bins[b].low} to ${page.bins[b].high}`;

function selectBin(b) {
  look.focusBin = b;
  select((i) => graph.bin[i] === b, binName(b));
  byId("interval").value = `${b + 1}`;
}

function showLegend() {
  const { colouring } = look, looks = colouring.looks();
  if (colouring.high) {
    const bar = el("canvas", { width: LEVELS, height: 1, "aria-hidden": "true" });
    const context = bar.getContext("2d");
    looks.slice(0, LEVELS).forEach(({ colour }, k) => {
      context.fillStyle = colour;
      context.fillRect(k, 0, 1, 1);
    });
    const values = [0, colouring.high / 2, colouring.high];
    const labels = values.map((value) => el("span", {}, fixed(value, 2)));
    const incomplete = graph.node.some((_, i) => i < graph.size && colouring.of(i) === LEVELS);
    const unknown = [swatch({ colour: grey(), shape: 0 }), colouring.missing];
    const rest = incomplete ? [el("span", { class: "key" }, ...unknown)] : [];
    const label = `${colouring.title} from 0 to ${fixed(colouring.high, 2)}`;
    const scale = { class: "scale", role: "img", "aria-label": label };
    byId("legend").replaceChildren(el("div", scale, bar, ...labels), ...rest);
    return;
  }
  const size = new Array(looks.length).fill(0);
  for (let i = 0; i < graph.size; i++) size[colouring.of(i)] += 1;
  const entries = looks.flatMap((style, k) => {
    if (!size[k]) return [];
    const test = (i) => colouring.of(i) === k, category = colouring.name === "class" ? k : null;
    const start = () => emphasise(test, category), end = () => emphasise(null);
    return [el("button", {
      type: "button", title: "Select these nodes",
      onclick: () => select(test, `${colouring.title}: ${style.name}`),
      onpointerenter: start, onpointerleave: end, onfocus: start, onblur: end,
    }, swatch(style), `${style.name} (${count(size[k])})`)];
  });
  byId("legend").replaceChildren(...entries);
}

/** Nodes by the user's own id, or by number; a `#` before it always means the number. */
function find(text) {
  const wanted = text.trim(), number = wanted.replace(/^#/, "");
  if (page.ids && !wanted.startsWith("#")) {
    const exact = page.ids.indexOf(wanted);
    if (exact >= 0) return [exact];
    const lower = wanted.toLowerCase(), like = [];
    for (let i = 0; i < graph.size && like.length < 8; i++) {
      if (page.ids[i].toLowerCase().includes(lower)) like.push(i);
    }
    if (like.length) return like;
  }
  const exact = /^\d+$/.test(number) ? graph.node.indexOf(Number(number)) : -1;
  return exact >= 0 ? [exact] : [];
}

function search(event) {
  event.preventDefault();
  const text = byId("query").value.trim();
  const found = text ? find(text).filter((i) => i < graph.size) : [];
  const show = (i) => { byId("found").replaceChildren(); choose(i); };
  const button = (i) => el("button", { type: "button", onclick: () => show(i) }, nodeName(i));
  if (found.length === 1) show(found[0]);
  else if (found.length) byId("found").replaceChildren("Which one?", ...found.map(button));
  else if (text) byId("found").replaceChildren(`There is no node “${text}” on this page.`);
  else byId("found").replaceChildren("Enter the id of a node, or # and its number.");
}

function options(id, names, onChange, start = 0) {
  byId(id).replaceChildren(...names.map((name, k) => el("option", { value: k }, name)));
  byId(id).value = `${start}`;
  byId(id).addEventListener("change", (event) => onChange(Number(event.target.value)));
}

function placeNodes(layout) {
  look.layout = layout;
  const { name, note } = page.layouts[layout];
  map.fit();
  map.place();
  const outside = `${plural(map.outliers, "node")} outside of the frame`;
  const triangles = map.outliers ? ` Triangles at the border point to ${outside}.` : "";
  byId("placed").textContent = `Layout “${name}”: ${note}.${triangles}`;
}

function colourNodes(way) {
  look.colouring = ways[way];
  showLegend();
  map.redraw();
}

/** The main numbers, next to the title. */
function showTiles() {
  const tile = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
  const tiles = graph.runs.map((run) => tile(`${run.name} test accuracy`, percent(run.accuracy)));
  if (page.disagreements !== null) {
    tiles.push(tile("runs disagree on", percent(page.disagreements / page.numNodes)));
  }
  byId("tiles").replaceChildren(...tiles);
}

function start() {
  const names = graph.runs.map((run) => run.name).join(" and ");
  byId("title").textContent = `${names} on ${page.dataset}`;
  byId("subtitle").textContent = [
    plural(page.numNodes, "node"), plural(page.numEdges, "edge"), `${count(numClasses)} classes`,
    `protocol ${page.protocol}`, `seed ${page.seed}`,
  ].join(" · ");
  showTiles();
  byId("insight").hidden = !page.filterSummary;
  byId("insight").textContent = unbroken(page.filterSummary);
  if (page.shown < page.numNodes) {
    byId("notice").hidden = false;
    byId("notice").textContent = `This page shows a sample of ${count(page.shown)} of `
      + `${count(page.numNodes)} nodes: the surprising nodes and others chosen at random. The map, `
      + "the search and the selections refer to the sample; the intervals of homophily, the "
      + "classes, their accuracies and the mean filters refer to all nodes.";
  }
  const missing = page.numWithoutHomophily
    ? ` In no interval: ${plural(page.numWithoutHomophily, "node")} without a label or without `
      + "labelled neighbours." : "";
  byId("bins-note").textContent = "Bars count all nodes; accuracies are those of test nodes. "
    + `Hollow marks are based on fewer than ${FEW} test nodes.${missing}`;
  byId("query").placeholder = page.ids ? "id, or #number" : "number";
  options("layout", page.layouts.map((layout) => layout.name), placeNodes, page.startLayout);
  options("colour", ways.map((way) => way.title), colourNodes, ways.indexOf(look.colouring));
  const parts = page.parts.map((_, part) => part);
  const used = parts.filter((part) => !part || graph.part.includes(part));
  options("part", used.map((part) => (part ? page.parts[part] : "all")), (k) => {
    look.part = used[k];
    map.redraw();
  });
  const intervals = page.bins.map((bin, b) => `${binName(b)}: ${plural(bin.nodes, "node")}`);
  options("interval", ["none", ...intervals], (k) => (k ? selectBin(k - 1) : select(null)));
  byId("search").addEventListener("submit", search);
  byId("zoom-in").addEventListener("click", () => map.zoomBy(1.5));
  byId("zoom-out").addEventListener("click", () => map.zoomBy(1 / 1.5));
  byId("zoom-fit").addEventListener("click", () => map.fit());
  byId("back").addEventListener("click", () => scroll(() => cameFrom));
  byId("surprising").hidden = !page.surprising.length;
  listSurprising(byId("surprising-body"), choose);
  showCurrent();
  placeNodes(look.layout);
  showLegend();
  select(null);
  darkMode.addEventListener("change", () => {
    showLegend();
    showCurrent();
    if (!look.selection) select(null);
    map.redraw();
  });
}

start();
/** For scripts that drive the page: the position of a node in pixels of the map. */
window.explorer = {
  place: (node) => {
    const i = graph.node.indexOf(node);
    return [map.x(i), map.y(i)];
  },
  state: look,
};
