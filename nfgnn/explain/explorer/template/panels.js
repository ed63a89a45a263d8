// Panels about a node, about a selection, and, if nothing is selected, about all nodes.
const LINE = {
  first: { stroke: "var(--first)", "stroke-width": 2.6 },
  second: { stroke: "var(--second)", "stroke-width": 2.6, "stroke-dasharray": "9 3" },
  global: { stroke: "var(--mean)", "stroke-width": 1.8, "stroke-dasharray": "6 4" },
  group: { stroke: "var(--ink)", "stroke-width": 1.8, "stroke-dasharray": "2 3" },
};
const withFilters = graph.runs.flatMap((run, r) => (run.filters ? [r] : []));
/** The run whose filters differ from node to node, else the first one that has any. */
const leading = withFilters.find((r) => !graph.runs[r].filters.oneForAll) ?? withFilters[0];

const note = (text) => el("p", { class: "note" }, text);
const facts = (rows) => el("dl", {}, ...rows.flatMap(
  ([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
const noFilters = () => {
  const names = graph.runs.map((run) => run.name).join(" and ");
  const have = graph.runs.length > 1 ? "have" : "has";
  return note(`${names} ${have} no polynomial filter, so there are no coefficients and no `
    + "frequency responses to show.");
};

const meanSeries = ({ filters, name }, line) => (
  { name: `mean of all nodes, ${name}`, points: responseOf(filters, filters.mean), line });

/** The reference filter: that of a run with one filter for all nodes, else the mean of all. */
function globalSeries() {
  const single = withFilters.find((r) => graph.runs[r].filters.oneForAll);
  if (single === undefined) return meanSeries(graph.runs[leading], LINE.global);
  const { name, filters } = graph.runs[single];
  return {
    name: `${name}: one filter for all`, points: responseOf(filters, filters.mean),
    line: single === leading ? LINE.global : LINE.second,
  };
}

const MOST_CURVES = 12;

/** The mean filters of the classes; of many classes, those that differ most from the mean. */
function classSeries(filters) {
  const mean = responseOf(filters, filters.mean).map(([, r]) => r);
  const series = filters.classMeans.flatMap((coefficients, c) => {
    if (!coefficients) return [];
    const points = responseOf(filters, coefficients);
    const apart = rms(points.map(([, r], p) => r - mean[p]));
    return [{ name: className(c), points, line: classLine(c), category: c, apart }];
  });
  const kept = [...series].sort((a, b) => b.apart - a.apart).slice(0, MOST_CURVES);
  return series.filter((one) => kept.includes(one));
}

/** Size and test accuracy of every class; a row greys out the other classes and selects its own. */
function classTable({ onClass, onSelect }) {
  const columns = ["class", "nodes", ...graph.runs.map((run) => (
    graph.runs.length > 1 ? `${run.name} accuracy` : "test accuracy"))];
  const rows = page.classes.map(({ nodes, accuracy }, c) => {
    const select = () => onSelect((i) => graph.label[i] === c, `class: ${className(c)}`);
    const name = el("button", {
      type: "button", class: "plain", title: "Select these nodes", onclick: select,
      onfocus: () => onClass(c), onblur: () => onClass(null),
    }, swatch(kind(c)), className(c));
    return el("tr", {
      "data-class": c, onpointerenter: () => onClass(c), onpointerleave: () => onClass(null),
    }, el("th", { scope: "row" }, name), el("td", {}, count(nodes)),
    ...accuracy.map((value) => el("td", {}, percent(value))));
  });
  const head = el("tr", {}, ...columns.map((name) => el("th", { scope: "col" }, name)));
  return el("div", { class: "wide tall" },
    el("table", { id: "classes" }, el("thead", {}, head), el("tbody", {}, ...rows)));
}

/** All nodes: the classes, disagreements of two runs, and the mean filters of the classes. */
function showAll(body, { onClass, onSelect }) {
  const parts = [], left = el("div", {}, classTable({ onClass, onSelect }));
  if (page.disagreements) {
    const select = () => onSelect(disagree, "the runs disagree");
    left.append(el("div", { class: "steps" }, el("button", { type: "button", onclick: select },
      "Select the nodes on which the runs disagree")));
  }
  left.append(note("To select nodes, drag a rectangle on the map, choose an interval of homophily, "
    + "or choose an entry of the legend."));
  parts.push(left);
  if (withFilters.length) {
    const { filters } = graph.runs[leading], global = globalSeries();
    const mean = meanSeries(graph.runs[leading], LINE.group);
    const classes = filters.oneForAll ? [] : classSeries(filters);
    const known = filters.classMeans.filter((one) => one).length;
    const series = filters.oneForAll ? [global] : [mean, ...classes];
    if (!filters.oneForAll && global.name !== mean.name) series.push({ ...global, whole: true });
    const base = filters.oneForAll ? global : mean;
    const title = filters.oneForAll ? "Frequency response" : "Mean frequency response by class";
    const description = "Mean frequency response of all nodes and of the classes";
    const right = el("div", {}, el("h3", {}, title),
      responseChart(series, base, description, onClass));
    if (classes.length && classes.length < known) {
      right.append(note(`The ${classes.length} of ${known} classes whose mean differs most from `
        + "that of all nodes."));
    }
    parts.push(right);
  }
  body.replaceChildren(...parts);
}

function showNode(i, title, body, onNode) {
  title.textContent = nodeTitle(i);
  const label = graph.label[i];
  const verdict = (r) => (label < 0 ? "" : isRight(r, i) ? ", correct" : ", wrong");
  const distances = graph.runs.flatMap(({ name, filters }) => {
    if (!filters || filters.oneForAll) return [];
    const term = graph.runs.length > 1 ? `filter distance, ${name}` : "filter distance";
    return [[term, percent(filters.distance[i])]];
  });
  const parts = [facts([
    ["class", className(label)],
    ...graph.runs.map((run, r) => [`predicted by ${run.name}`,
      `${className(run.predicted[i])} (${percent(run.confidence[i])})${verdict(r)}`]),
    ["part of the split", page.parts[graph.part[i]]],
    ["neighbours", count(graph.degree[i])],
    ["local homophily h", fixed(graph.homophily[i])],
    ["label entropy S", fixed(graph.entropy[i])],
    ...distances,
  ])];
  parts.push(...(withFilters.length ? nodeFilters(i, label) : [noFilters()]));
  parts.push(el("h3", {}, "Neighbours"));
  parts.push(graph.degree[i] ? egoChart(i, onNode) : note("This node has no neighbours."));
  body.replaceChildren(...parts);
}

function nodeFilters(i, label) {
  const own = withFilters.filter((r) => !graph.runs[r].filters.oneForAll);
  const series = own.map((r) => ({
    name: own.length > 1 ? `this node, ${graph.runs[r].name}` : "this node",
    points: responseOf(graph.runs[r].filters, coefficientsOf(r, i)),
    line: r ? LINE.second : LINE.first,
  }));
  const base = globalSeries();
  series.push(base);
  const { filters, name } = graph.runs[leading];
  if (label >= 0 && filters.classMeans[label] && !filters.oneForAll) {
    const points = responseOf(filters, filters.classMeans[label]);
    series.push({ name: `mean of ${className(label)}`, points, line: LINE.group });
  }
  const sets = withFilters.map((r) => (
    { name: graph.runs[r].name, values: coefficientsOf(r, i), colour: RUN_COLOURS[r] }));
  sets.push({ name: `mean of all nodes, ${name}`, values: filters.mean, colour: "var(--edge)" });
  const bases = [...new Set(withFilters.map((r) => graph.runs[r].filters.basis))].join(" and ");
  return [
    el("h3", {}, "Frequency response"),
    responseChart(series, base, `Frequency response of ${nodeTitle(i)}`),
    el("h3", {}, `Coefficients (${bases})`), coefficientChart(sets), coefficientTable(sets),
  ];
}

function coefficientTable(sets) {
  const orders = Math.max(...sets.map(({ values }) => values.length));
  const rows = Array.from({ length: orders }, (_, k) => el("tr", {},
    el("th", { scope: "row" }, `${k}`),
    ...sets.map(({ values }) => el("td", {}, fixed(values[k], 4)))));
  const names = ["k", ...sets.map(({ name }) => name)];
  const head = el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, name)));
  const table = el("table", { id: "coefficients" },
    el("thead", {}, head), el("tbody", {}, ...rows));
  return el("details", {}, el("summary", {}, "as numbers"), el("div", { class: "wide" }, table));
}

/** Statistics of a selection; means exclude nodes without a value. */
function statistics(selection) {
  const nodes = [];
  for (let i = 0; i < graph.size; i++) if (selection[i]) nodes.push(i);
  const mean = (list) => list.reduce((sum, x) => sum + x, 0) / list.length;
  const known = (values) => mean(nodes.map((i) => values[i]).filter(Number.isFinite));
  const tested = nodes.filter(isTested);
  const classes = new Map();
  for (const i of nodes) classes.set(graph.label[i], (classes.get(graph.label[i]) ?? 0) + 1);
  return {
    nodes, tested, classes: [...classes].sort((a, b) => b[1] - a[1]),
    homophily: known(graph.homophily), entropy: known(graph.entropy),
    accuracy: graph.runs.map((_, r) => mean(tested.map((i) => Number(isRight(r, i))))),
  };
}

function meanCoefficients(run, nodes) {
  const { psi, orders, oneForAll, mean } = graph.runs[run].filters;
  if (oneForAll) return mean;
  const sum = new Float64Array(orders);
  for (const i of nodes) for (let k = 0; k < orders; k++) sum[k] += psi[i * orders + k];
  return Array.from(sum, (value) => value / nodes.length);
}

function showSelection(selection, name, body, { onStep, onClear }) {
  const found = statistics(selection), most = 6;
  const largest = found.classes.slice(0, most).map(([c, n]) => `${className(c)}: ${count(n)}`);
  const accuracy = (r) => (found.tested.length
    ? `${percent(found.accuracy[r])} of ${plural(found.tested.length, "test node")}`
    : "no test nodes");
  const list = facts([
    ["selected", `${plural(found.nodes.length, "node")} (${name})`],
    ...graph.runs.map((run, r) => [`test accuracy of ${run.name}`, accuracy(r)]),
    ["mean homophily h", fixed(found.homophily)],
    ["mean entropy S", fixed(found.entropy)],
    ["classes", largest.join(", ") + (found.classes.length > most ? ", …" : "")],
  ]);
  const none = found.nodes.length === 0;
  const button = (text, onclick, disabled = null) => (
    el("button", { type: "button", onclick, disabled }, text));
  const step = (text, by) => button(text, () => onStep(found.nodes, by), none ? "" : null);
  const buttons = el("div", { class: "steps" },
    step("Previous node", -1), step("Next node", 1), button("Clear", onClear));
  const parts = [el("div", {}, list, buttons)];
  if (withFilters.length && !none) {
    const series = withFilters.filter((r) => !graph.runs[r].filters.oneForAll).map((r) => ({
      name: `mean of the selection, ${graph.runs[r].name}`,
      points: responseOf(graph.runs[r].filters, meanCoefficients(r, found.nodes)),
      line: r ? LINE.second : LINE.first,
    }));
    const base = globalSeries();
    const description = "Mean frequency response of the selection";
    parts.push(el("div", {}, responseChart([...series, base], base, description)));
  }
  body.replaceChildren(...parts);
}
