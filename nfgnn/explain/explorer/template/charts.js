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

/** An empty chart. */
const chartRoot = (width, height, description, role = "img") => svg("svg", {
  class: "chart", height, viewBox: `0 0 ${width} ${height}`, role, "aria-label": description,
});
const textAt = (x, y, text, anchor = "start") => svg("text", { x, y, "text-anchor": anchor }, text);
const horizontal = (name, box, y) => svg("line", {
  class: name, x1: box.left, x2: box.right, y1: y, y2: y,
});
const pathThrough = (points) => points
  .map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/** About `wanted` round numbers between low and high. */
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= 0.7 * rough) * power;
  const list = [], last = high + 1e-9 * step;
  for (let k = Math.ceil(low / step - 1e-9); k * step <= last; k++) list.push(k * step);
  return { list, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

const tickLabel = (value, digits) => (
  digits ? fixed(value, digits) : count(value || 0).replace("-", "−"));
const scaleTo = (low, high, from, to) => (
  (value) => from + ((value - low) / (high - low || 1)) * (to - from));

/** The range of values including 0, with a small margin. */
function rangeOf(values) {
  const low = Math.min(0, ...values), high = Math.max(0, ...values);
  const air = 0.06 * (high - low) || 1;
  return [low < 0 ? low - air : 0, high > 0 ? high + air : air];
}

/** Grid and ticks of the vertical axis; returns its scale. */
function verticalAxis(root, box, [low, high]) {
  const y = scaleTo(low, high, box.bottom, box.top), { list, digits } = ticks(low, high, 4);
  for (const value of list) {
    root.append(horizontal("grid", box, y(value)));
    root.append(textAt(box.left - 7, y(value) + 4, tickLabel(value, digits), "end"));
  }
  return y;
}

/** Frame, grid and ticks on both axes; returns the scales. */
function frame(root, box, [lowX, highX], [lowY, highY], label) {
  const x = scaleTo(lowX, highX, box.left, box.right), y = verticalAxis(root, box, [lowY, highY]);
  const { list, digits } = ticks(lowX, highX, 4);
  for (const value of list) {
    root.append(textAt(x(value), box.bottom + 17, tickLabel(value, digits), "middle"));
  }
  if (lowY < 0) root.append(horizontal("axis", box, y(0)));
  root.append(horizontal("axis", box, box.bottom));
  root.append(textAt((box.left + box.right) / 2, box.bottom + 35, label, "middle"));
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
    const root = chartRoot(width, height, description);
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
    root.append(textAt(0, 12, (chosen() ? "difference in response" : "response") + factor));
    const paths = shown.map(({ line, category }, s) => svg("path", {
      d: pathThrough(values[s].map(([f, r]) => [to.x(f), to.y(r)])),
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
    const root = chartRoot(width, height, "Filter coefficients by order; the numbers follow");
    const y = verticalAxis(root, box, rangeOf(sets.flatMap(({ values }) => values)));
    const step = (box.right - box.left) / orders, bar = (0.72 * step) / sets.length;
    root.append(horizontal("axis", box, y(0)));
    const every = Math.ceil(24 / step);
    for (let k = 0; k < orders; k++) {
      const left = box.left + step * (k + 0.14);
      sets.forEach(({ values, colour }, s) => {
        if (k >= values.length) return;
        const top = Math.min(y(0), y(values[k])), high = Math.abs(y(values[k]) - y(0));
        root.append(svg("rect", {
          x: left + s * bar, width: Math.max(1, bar - 1), y: top, height: Math.max(1, high),
          fill: colour,
        }));
      });
      if (k % every === 0) {
        root.append(textAt(box.left + step * (k + 0.5), box.bottom + 17, `${k}`, "middle"));
      }
    }
    root.append(textAt((box.left + box.right) / 2, box.bottom + 35, "order k", "middle"));
    return root;
  };
  const keys = sets.map(({ name, colour }) => key({ stroke: colour, "stroke-width": 8 }, name));
  return el("div", {}, chart(draw), el("div", { class: "keys" }, ...keys));
}

const FEW = 10; // an accuracy on fewer nodes than this is hardly one
const RUN_COLOURS = ["var(--first)", "var(--second)"];
const runLine = (r) => ({
  stroke: RUN_COLOURS[r], "stroke-width": 2, "stroke-dasharray": r ? "5 3" : null,
});

/**
 * Bars: nodes per interval of h; lines: test accuracy of every run. `chosen(b)` is the selected
 * share of interval b.
 */
function binChart(chosen, onBin) {
  const most = Math.max(1, ...page.bins.map((bin) => bin.nodes));
  const draw = (width) => {
    const height = 236, box = { left: 52, right: width - 44, top: 26, bottom: height - 42 };
    const root = chartRoot(width, height, "Intervals of local homophily", "group");
    const { x, y } = frame(root, box, [0, 1], [0, most * 1.06], "local homophily h");
    root.append(textAt(0, 12, "nodes"), textAt(width, 12, "test accuracy", "end"));
    const score = scaleTo(0, 1, box.bottom, box.top);
    for (const value of [0, 0.5, 1]) {
      root.append(textAt(box.right + 7, score(value) + 4, `${100 * value} %`));
    }
    const groups = page.bins.map((bin, b) => {
      const left = x(bin.low) + 1, wide = x(bin.high) - x(bin.low) - 2;
      const full = box.bottom - y(bin.nodes), part = full * chosen(b);
      const scores = graph.runs.map((run, r) => `${run.name} ${percent(bin.accuracy[r])}`);
      const nodes = `${plural(bin.nodes, "node")}, ${count(bin.tested)} tested`;
      const label = `h from ${bin.low} to ${bin.high}: ${nodes}: ${scores.join(", ")}`;
      const bar = { x: left, width: wide };
      return svg("g", {
        class: "bin", role: "button", "aria-label": `${label}. Select them.`,
        onclick: () => onBin(b),
      },
      svg("title", {}, label),
      svg("rect", { ...bar, y: y(bin.nodes), height: full, class: "bar" }),
      svg("rect", { ...bar, y: box.bottom - part, height: part, fill: "var(--soft)" }),
      svg("rect", {
        class: "ring", x: left - 1, width: wide + 2, rx: 3,
        y: box.top, height: box.bottom - box.top,
      }));
    });
    root.append(...groups);
    roving(groups);
    graph.runs.forEach((_, r) => {
      const dots = page.bins.filter((bin) => bin.tested).map((bin) => (
        [x((bin.low + bin.high) / 2), score(bin.accuracy[r]), bin.tested < FEW]));
      root.append(svg("path", {
        d: pathThrough(dots), fill: "none", "pointer-events": "none", ...runLine(r),
      }));
      for (const [u, v, few] of dots) {
        const style = {
          fill: few ? "var(--card)" : RUN_COLOURS[r], stroke: RUN_COLOURS[r],
          "stroke-width": 1.6, "pointer-events": "none",
        };
        root.append(r
          ? svg("rect", { x: u - 3.5, y: v - 3.5, width: 7, height: 7, ...style })
          : svg("circle", { cx: u, cy: v, r: 3.8, ...style }));
      }
    });
    return root;
  };
  const keys = [
    key({ stroke: "var(--edge)", "stroke-width": 8 }, "all nodes"),
    key({ stroke: "var(--soft)", "stroke-width": 8 }, "selected"),
    ...graph.runs.map((run, r) => key(runLine(r), `test accuracy of ${run.name}`)),
  ];
  return el("div", {}, chart(draw), el("div", { class: "keys" }, ...keys));
}
