// Unpacked arrays, and helpers for elements and numbers.
const page = JSON.parse(document.getElementById("data").textContent);

function bytes(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

function unpack(packed) {
  const kind = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array }[packed.type];
  const codes = new kind(bytes(packed.data).buffer);
  if (!packed.low) return codes;
  const columns = packed.low.length, numbers = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) {
    const k = i % columns;
    numbers[i] = codes[i] === 65535 ? NaN : packed.low[k] + packed.step[k] * codes[i];
  }
  return numbers;
}

const graph = {
  size: page.shown,
  node: unpack(page.node),
  label: Int32Array.from(unpack(page.label), (code) => code - 1), // -1: not known
  part: unpack(page.part),
  degree: unpack(page.degree),
  homophily: unpack(page.homophily),
  bin: Int32Array.from(unpack(page.bin), (code) => code - 1), // -1: in no interval
  entropy: unpack(page.entropy),
  starts: unpack(page.starts),
  neighbours: unpack(page.neighbours),
  places: page.layouts.map((layout) => unpack(layout.place)),
  runs: page.runs.map((run) => ({
    ...run,
    predicted: unpack(run.predicted),
    confidence: unpack(run.confidence),
    filters: run.filters && {
      ...run.filters,
      orders: run.filters.mean.length,
      psi: unpack(run.filters.psi),
      distance: unpack(run.filters.distance),
    },
  })),
};
// Unobserved nodes, which come after the test nodes, are tested as well.
const isTested = (i) => graph.part[i] >= page.parts.indexOf("test");
const numClasses = page.classNames.length;

const classNames = page.classNames.map((name) => (/^-?\d+$/.test(name) ? `class ${name}` : name));
const className = (c) => (c < 0 ? "unknown" : classNames[c]);
const nodeName = (i) => (page.ids ? page.ids[i] : `${graph.node[i]}`);
const nodeTitle = (i) => (
  page.ids ? `${page.ids[i]} (node ${graph.node[i]})` : `Node ${graph.node[i]}`);
const neighboursOf = (i) => graph.neighbours.subarray(graph.starts[i], graph.starts[i + 1]);
const isRight = (run, i) => graph.runs[run].predicted[i] === graph.label[i];
const disagree = (i) => graph.runs[0].predicted[i] !== graph.runs[1].predicted[i];

/** Ψ of a node in a run, as a plain array. */
function coefficientsOf(run, i) {
  const { psi, orders, oneForAll } = graph.runs[run].filters;
  const row = oneForAll ? 0 : i;
  return Array.from(psi.subarray(row * orders, (row + 1) * orders));
}

/** The points [λ, response] of a filter with these coefficients. */
function responseOf(filters, coefficients) {
  return filters.frequencies.map((frequency, p) => [
    frequency,
    filters.terms[p].reduce((sum, term, k) => sum + term * coefficients[k], 0),
  ]);
}

const count = (n) => n.toLocaleString("en-GB");
const fixed = (x, digits = 3) => (Number.isFinite(x) ? x.toFixed(digits).replace("-", "−") : "–");
const percent = (x) => (x === null || !Number.isFinite(x) ? "–" : `${(100 * x).toFixed(1)} %`);
/** Keep a number and its percent sign on one line. */
const unbroken = (text) => text.replaceAll(" %", "\u00a0%");
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}
/** An HTML element; strings among the children become text, never markup. */
const el = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const byId = (id) => document.getElementById(id);

/** Arrow keys move the focus within a group of elements, of which one is in the tab order. */
function roving(elements) {
  elements.forEach((element, at) => {
    element.setAttribute("tabindex", at === 0 ? "0" : "-1");
    element.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) {
        const next = elements[(at + step + elements.length) % elements.length];
        element.setAttribute("tabindex", "-1");
        next.setAttribute("tabindex", "0");
        next.focus();
        event.preventDefault();
      } else if (event.key === "Enter" || event.key === " ") {
        element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        event.preventDefault();
      }
    });
  });
}
