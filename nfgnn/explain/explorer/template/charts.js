// Small charts as SVG, drawn to fit their width and redrawn when it changes.

/** A chart in a block of its own: `draw(width)` gives the SVG. */
function chart(draw) {
  const block = el("div");
  let width = 0;
  block.redraw = () => block.replaceChildren(draw(width));
  new ResizeObserver(() => {
    if (!block.clientWidth || block.clientWidth === width) return;
    width = block.clientWidth;
    block.redraw();
  }).observe(block);
  return block;
}

/** About `wanted` round numbers between low and high. */
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= 0.7 * rough) * power;
  const list = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) list.push(k * step);
  return { list, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

const tickLabel = (value, digits) => (
  digits ? fixed(value, digits) : count(value || 0).replace("-", "−"));
const scaleTo = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

/** The range of values including 0, with a small margin. */
function rangeOf(values) {
  const low = Math.min(0, ...values), high = Math.max(0, ...values), air = 0.06 * (high - low) || 1;
  return [low < 0 ? low - air : 0, high > 0 ? high + air : air];
}

/** Frame, grid and ticks on both axes; returns the scales. */
function frame(root, box, [lowX, highX], [lowY, highY], label) {
  const x = scaleTo(lowX, highX, box.left, box.right), y = scaleTo(lowY, highY, box.bottom, box.top);
  const rows = ticks(lowY, highY, 4);
  for (const value of rows.list) {
    root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }));
    root.append(svg("text", { x: box.left - 7, y: y(value) + 4, "text-anchor": "end" }, tickLabel(value, rows.digits)));
  }
  const columns = ticks(lowX, highX, 4);
  for (const value of columns.list) {
    root.append(svg("text", { x: x(value), y: box.bottom + 17, "text-anchor": "middle" }, tickLabel(value, columns.digits)));
  }
  if (lowY < 0) root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: y(0), y2: y(0) }));
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  root.append(svg("text", { x: (box.left + box.right) / 2, y: box.bottom + 35, "text-anchor": "middle" }, label));
  return { x, y };
}

const key = (line, name, attributes = {}) => el("span", { class: "key", ...attributes },
  svg("svg", { width: 26, height: 10, "aria-hidden": "true" },
    svg("line", { x1: 1, x2: 25, y1: 5, y2: 5, ...line })), name);

const CLOSE = 0.05; // responses that differ by less than this share are hard to tell apart
let differences = null; // whether to show differences; null: where the responses nearly coincide

const rms = (values) => Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length);

/** The largest difference between a curve and the base, relative to the base. */
function largestDifference(series, base) {
  const scale = rms(base.points.map(([, r]) => r)) || 1;
  return Math.max(...series.map(
    ({ points }) => rms(points.map(([, r], p) => r - base.points[p][1])) / scale));
}

const superscript = (n) => `${n}`.replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);

/**
 * Frequency responses: series of {name, points, line, category, whole}. `line` holds attributes of
 * the stroke, `category` is the class that a curve belongs to, and curves with `whole` are left out
 * of differences. `base` is the curve that the others are compared with.
 */
function responseChart(series, base, description, onClass) {
  const all = series.filter(({ points }) => points);
  const related = all.filter(({ whole }) => !whole);
  const alike = related.every(({ points }) => points.every(([f], p) => f === base.points[p][0]));
  const possible = related.length > 1 && alike;
  const apart = possible ? largestDifference(related, base) : 0;
  const coincide = apart > 1e-6 && apart < CLOSE;
  const chosen = () => possible && (differences ?? coincide);
  const ofClass = (category) => (category === undefined ? {} : {
    "data-class": category,
    onpointerenter: () => onClass(category),
    onpointerleave: () => onClass(null),
  });
  const draw = (width) => {
    const height = 226, box = { left: 48, right: width - 10, top: 24, bottom: height - 42 };
    const root = svg("svg", {
      class: "chart", height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description,
    });
    const shown = chosen() ? related : all;
    const values = shown.map(({ points }) => (
      points.map(([f, r], p) => [f, chosen() ? r - base.points[p][1] : r])));
    const flat = values.flat(), highest = Math.max(...flat.map(([f]) => f));
    // Small numbers are shown in units of a power of ten, which leaves short labels on the axis.
    const power = Math.floor(Math.log10(Math.max(...flat.map(([, r]) => Math.abs(r)), 1e-12)));
    const unit = power < -2 ? 10 ** power : 1;
    for (const point of flat) point[1] /= unit;
    const to = frame(root, box, [0, highest], rangeOf(flat.map(([, r]) => r)), "frequency λ");
    const factor = unit < 1 ? ` in units of 10${superscript(power)}` : "";
    root.append(svg("text", { x: 0, y: 12 }, (chosen() ? "difference in response" : "response") + factor));
    const paths = shown.map(({ line, category }, s) => svg("path", {
      d: values[s].map(([f, r], k) => `${k ? "L" : "M"}${to.x(f).toFixed(1)} ${to.y(r).toFixed(1)}`).join(""),
      fill: "none", "stroke-linejoin": "round", ...line, ...ofClass(category),
    }));
    root.append(...paths.reverse());
    return root;
  };
  const block = chart(draw), keys = el("div", { class: "keys" });
  const showKeys = () => keys.replaceChildren(...(chosen() ? related : all).map(
    ({ name, line, category }) => key(line, name, ofClass(category))));
  const tick = el("input", {
    type: "checkbox",
    onchange: (event) => { differences = event.target.checked; block.redraw(); showKeys(); },
  });
  tick.checked = chosen();
  showKeys();
  const toggle = el("label", { class: "toggle" }, tick, ` difference from “${base.name}”`);
  const size = apart < 1e-3 ? "less than 0.1 %" : `at most ${percent(apart)}`;
  const note = `These responses differ by ${size}, so the chart shows the differences.`;
  return el("div", {}, block, keys, possible ? toggle : null,
    coincide && differences === null ? el("p", { class: "note coincide" }, note) : null);
}

/** Coefficients as bars, one group per order; sets of {name, values, colour}. */
function coefficientChart(sets) {
  const orders = Math.max(...sets.map(({ values }) => values.length));
  const draw = (width) => {
    const height = 168, box = { left: 48, right: width - 10, top: 8, bottom: height - 42 };
    const root = svg("svg", { class: "chart", height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Filter coefficients by order; the numbers follow" });
    const [low, high] = rangeOf(sets.flatMap(({ values }) => values));
    const y = scaleTo(low, high, box.bottom, box.top), step = (box.right - box.left) / orders, bar = (0.72 * step) / sets.length;
    const rows = ticks(low, high, 4);
    for (const value of rows.list) {
      root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }));
      root.append(svg("text", { x: box.left - 7, y: y(value) + 4, "text-anchor": "end" }, tickLabel(value, rows.digits)));
    }
    root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: y(0), y2: y(0) }));
    const every = Math.ceil(24 / step);
    for (let k = 0; k < orders; k++) {
      const left = box.left + step * (k + 0.14);
      sets.forEach(({ values, colour }, s) => {
        if (k < values.length) root.append(svg("rect", { x: left + s * bar, width: Math.max(1, bar - 1), y: Math.min(y(0), y(values[k])), height: Math.max(1, Math.abs(y(values[k]) - y(0))), fill: colour }));
      });
      if (k % every === 0) root.append(svg("text", { x: box.left + step * (k + 0.5), y: box.bottom + 17, "text-anchor": "middle" }, `${k}`));
    }
    root.append(svg("text", { x: (box.left + box.right) / 2, y: box.bottom + 35, "text-anchor": "middle" }, "order k"));
    return root;
  };
  const keys = sets.map(({ name, colour }) => key({ stroke: colour, "stroke-width": 8 }, name));
  return el("div", {}, chart(draw), el("div", { class: "keys" }, ...keys));
}

const FEW = 10; // an accuracy on fewer nodes than this is hardly one
const RUN_COLOURS = ["var(--first)", "var(--second)"];

/** Bars: nodes per interval of h; lines: test accuracy of every run. `chosen(b)` is the selected share of interval b. */
function binChart(chosen, onBin) {
  const most = Math.max(1, ...page.bins.map((bin) => bin.nodes));
  const draw = (width) => {
    const height = 236, box = { left: 52, right: width - 44, top: 26, bottom: height - 42 };
    const root = svg("svg", { class: "chart", height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Intervals of local homophily" });
    const { x, y } = frame(root, box, [0, 1], [0, most * 1.06], "local homophily h");
    root.append(svg("text", { x: 0, y: 12 }, "nodes"), svg("text", { x: width, y: 12, "text-anchor": "end" }, "test accuracy"));
    const score = scaleTo(0, 1, box.bottom, box.top);
    for (const value of [0, 0.5, 1]) root.append(svg("text", { x: box.right + 7, y: score(value) + 4 }, `${100 * value} %`));
    const groups = page.bins.map((bin, b) => {
      const left = x(bin.low) + 1, wide = x(bin.high) - x(bin.low) - 2, full = box.bottom - y(bin.nodes), part = full * chosen(b);
      const scores = graph.runs.map((run, r) => `${run.name} ${percent(bin.accuracy[r])}`).join(", ");
      const label = `h from ${bin.low} to ${bin.high}: ${plural(bin.nodes, "node")}, ${count(bin.tested)} tested: ${scores}`;
      const group = svg("g", { class: "bin", role: "button", "aria-label": `${label}. Select them.`, onclick: () => onBin(b) },
        svg("title", {}, label),
        svg("rect", { x: left, width: wide, y: y(bin.nodes), height: full, class: "bar" }),
        svg("rect", { x: left, width: wide, y: box.bottom - part, height: part, fill: "var(--soft)" }),
        svg("rect", { class: "ring", x: left - 1, width: wide + 2, y: box.top, height: box.bottom - box.top, rx: 3 }));
      return group;
    });
    root.append(...groups);
    roving(groups);
    graph.runs.forEach((run, r) => {
      const line = { stroke: RUN_COLOURS[r], "stroke-width": 2, "stroke-dasharray": r ? "5 3" : null, "pointer-events": "none" };
      const dots = page.bins.flatMap((bin) => (bin.tested ? [[x((bin.low + bin.high) / 2), score(bin.accuracy[r]), bin.tested < FEW]] : []));
      root.append(svg("path", { d: dots.map(([u, v], k) => `${k ? "L" : "M"}${u.toFixed(1)} ${v.toFixed(1)}`).join(""), fill: "none", ...line }));
      for (const [u, v, few] of dots) {
        const paint = { fill: few ? "var(--card)" : RUN_COLOURS[r], stroke: RUN_COLOURS[r], "stroke-width": 1.6, "pointer-events": "none" };
        root.append(r ? svg("rect", { x: u - 3.5, y: v - 3.5, width: 7, height: 7, ...paint }) : svg("circle", { cx: u, cy: v, r: 3.8, ...paint }));
      }
    });
    return root;
  };
  const keys = graph.runs.map((run, r) => key({ stroke: RUN_COLOURS[r], "stroke-width": 2, "stroke-dasharray": r ? "5 3" : null }, `test accuracy of ${run.name}`));
  return el("div", {}, chart(draw), el("div", { class: "keys" }, key({ stroke: "var(--edge)", "stroke-width": 8 }, "all nodes"), key({ stroke: "var(--soft)", "stroke-width": 8 }, "selected"), ...keys));
}
