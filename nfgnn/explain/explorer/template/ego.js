// A node among its neighbours: filled by class, with a ring in the colour of the predicted class if
// it differs.
function describe(i) {
  const predictions = graph.runs.map(
    (run) => `${run.name} predicts ${className(run.predicted[i])}`);
  const label = graph.label[i] < 0 ? "class unknown" : className(graph.label[i]);
  return `${nodeTitle(i)}: ${label}; ${predictions.join(", ")}`;
}

/** The SVG outline of a marker as `trace` draws it on a canvas. */
function outline(shape, x, y, r) {
  const steps = [];
  const pen = {
    beginPath() {}, closePath() { steps.push("Z"); },
    moveTo(u, v) { steps.push(`M${u} ${v}`); }, lineTo(u, v) { steps.push(`L${u} ${v}`); },
    arc(u, v, q) {
      steps.push(`M${u - q} ${v}a${q} ${q} 0 1 0 ${2 * q} 0a${q} ${q} 0 1 0 ${-2 * q} 0Z`);
    },
    rect(u, v, w, h) { steps.push(`M${u} ${v}h${w}v${h}h${-w}Z`); },
  };
  trace(pen, shape, x, y, r);
  return steps.join("");
}

function egoMarker(i, x, y, r) {
  const { colour, shape } = kind(graph.label[i]), predicted = graph.runs[0].predicted[i];
  const hollow = { fill: "none", stroke: colour, "stroke-width": 0.4 * r };
  const style = shape < HOLLOW ? { fill: colour } : hollow;
  const marker = [
    svg("title", {}, describe(i)), svg("path", { d: outline(shape, x, y, r), ...style }),
  ];
  if (predicted !== graph.label[i]) {
    marker.push(svg("circle", {
      cx: x, cy: y, r: r + 3.5, fill: "none", stroke: kind(predicted).colour,
      "stroke-width": 2.5, "stroke-dasharray": "4 2.5",
    }));
  }
  return [...marker, svg("circle", { class: "ring", cx: x, cy: y, r: r + 6 })];
}

/** Edges among the neighbours, as far as the page has their lists of neighbours. */
function edgesAmong(around) {
  const place = new Map(around.map((j, k) => [j, k])), edges = [];
  around.forEach((j, k) => {
    if (j >= graph.size) return;
    for (const other of neighboursOf(j)) {
      const at = place.get(other);
      if (at !== undefined && (at > k || other >= graph.size)) edges.push([k, at]);
      else if (at !== undefined && !neighboursOf(other).includes(j)) edges.push([at, k]);
    }
  });
  return edges;
}

function egoChart(i, onNode) {
  const around = Array.from(neighboursOf(i));
  around.sort((a, b) => graph.label[a] - graph.label[b] || a - b);
  const caption = el("p", { class: "note", "aria-live": "polite" });
  const show = (j) => { caption.textContent = describe(j); };
  show(i);
  const draw = (width) => {
    const height = 300, cx = width / 2, cy = height / 2, reach = Math.min(width / 2, cy) - 20;
    const root = chartRoot(width, height, "Neighbours of the node", "group");
    const spots = around.map((_, k) => {
      const angle = (2 * Math.PI * k) / around.length;
      return [cx + reach * Math.sin(angle), cy - reach * Math.cos(angle)];
    });
    const edge = ([x1, y1], [x2, y2], style) => (
      root.append(svg("line", { x1, y1, x2, y2, ...style })));
    for (const [a, b] of edgesAmong(around)) edge(spots[a], spots[b], { class: "axis" });
    for (const spot of spots) edge([cx, cy], spot, { stroke: "var(--soft)", "stroke-width": 1.2 });
    const groups = around.map((j, k) => svg("g", {
      class: "ego-node", role: "button",
      "aria-label": describe(j) + (j < graph.size ? ". Show it." : ""),
      onclick: () => j < graph.size && onNode(j),
      onpointerenter: () => show(j), onfocus: () => show(j),
    }, ...egoMarker(j, ...spots[k], 7)));
    const centre = svg("g", { onpointerenter: () => show(i) }, ...egoMarker(i, cx, cy, 11));
    root.append(...groups, centre);
    roving(groups);
    return root;
  };
  const { predicted } = graph.runs[0];
  const classes = [...new Set([i, ...around].flatMap((j) => [graph.label[j], predicted[j]]))];
  classes.sort((a, b) => a - b);
  const keys = classes.map((c) => el("span", { class: "key" }, swatch(kind(c)), className(c)));
  return el("div", {}, chart(draw), el("div", { class: "keys" }, ...keys), caption,
    el("p", { class: "note" }, egoNote(i, around)), neighbourList(around, onNode));
}

/** The neighbours as buttons: large targets for fingers, and text for screen readers. */
function neighbourList(around, onNode) {
  const rows = around.map((j) => el("li", {}, j < graph.size
    ? el("button", { type: "button", onclick: () => onNode(j) }, describe(j)) : describe(j)));
  return el("details", {}, el("summary", {}, "as a list"), el("ul", { class: "list" }, ...rows));
}

function egoNote(i, around) {
  const cut = (j) => j >= graph.size || graph.starts[j + 1] - graph.starts[j] < graph.degree[j];
  const number = around.length < graph.degree[i]
    ? `${around.length} of its ${count(graph.degree[i])} neighbours, chosen at random`
    : plural(around.length, "neighbour");
  const unsure = around.some(cut) ? " Edges between them may be missing." : "";
  const ring = `${graph.runs[0].name} predicts the class of the ring's colour instead`;
  return `${number}. Colour: class; dashed ring: ${ring}.${unsure}`;
}
