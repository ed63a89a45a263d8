// A node among its neighbours: filled by class, with a ring in the colour of the predicted class if it differs.
function egoSays(i) {
  const says = graph.runs.map((run) => `${run.name} says ${className(run.predicted[i])}`).join(", ");
  return `${nodeTitle(i)}: ${graph.label[i] < 0 ? "class unknown" : className(graph.label[i])}; ${says}`;
}

/** The SVG outline of a marker as `trace` draws it on a canvas. */
function outline(shape, x, y, r) {
  const steps = [];
  const pen = {
    beginPath() {}, closePath() { steps.push("Z"); },
    moveTo(u, v) { steps.push(`M${u} ${v}`); }, lineTo(u, v) { steps.push(`L${u} ${v}`); },
    arc(u, v, q) { steps.push(`M${u - q} ${v}a${q} ${q} 0 1 0 ${2 * q} 0a${q} ${q} 0 1 0 ${-2 * q} 0Z`); },
    rect(u, v, w, h) { steps.push(`M${u} ${v}h${w}v${h}h${-w}Z`); },
  };
  trace(pen, shape, x, y, r);
  return steps.join("");
}

function egoMarker(i, x, y, r) {
  const look = kind(graph.label[i]), said = graph.runs[0].predicted[i];
  const marker = [svg("title", {}, egoSays(i)), svg("path", { d: outline(look.shape, x, y, r), fill: look.colour })];
  if (said !== graph.label[i]) {
    marker.push(svg("circle", { cx: x, cy: y, r: r + 3.5, fill: "none", stroke: kind(said).colour, "stroke-width": 2.5, "stroke-dasharray": "4 2.5" }));
  }
  return [...marker, svg("circle", { class: "ring", cx: x, cy: y, r: r + 6 })];
}

/** Edges among the neighbours, as far as the page has their lists of neighbours. */
function linksAmong(around) {
  const place = new Map(around.map((j, k) => [j, k])), links = [];
  around.forEach((j, k) => {
    if (j >= graph.size) return;
    for (const other of neighboursOf(j)) {
      const at = place.get(other);
      if (at !== undefined && (at > k || other >= graph.size)) links.push([k, at]);
      else if (at !== undefined && !neighboursOf(other).includes(j)) links.push([at, k]);
    }
  });
  return links;
}

function egoChart(i, onNode) {
  const around = Array.from(neighboursOf(i)).sort((a, b) => graph.label[a] - graph.label[b] || a - b);
  const says = el("p", { class: "note", "aria-live": "polite" });
  const tell = (j) => { says.textContent = egoSays(j); };
  tell(i);
  const draw = (width) => {
    const height = 300, cx = width / 2, cy = height / 2, reach = Math.min(width / 2, cy) - 20;
    const root = svg("svg", { class: "chart", height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Neighbours of the node" });
    const spots = around.map((_, k) => [cx + reach * Math.sin((2 * Math.PI * k) / around.length), cy - reach * Math.cos((2 * Math.PI * k) / around.length)]);
    for (const [a, b] of linksAmong(around)) root.append(svg("line", { class: "axis", x1: spots[a][0], y1: spots[a][1], x2: spots[b][0], y2: spots[b][1] }));
    for (const [x, y] of spots) root.append(svg("line", { x1: cx, y1: cy, x2: x, y2: y, stroke: "var(--soft)", "stroke-width": 1.2 }));
    const groups = around.map((j, k) => svg("g", {
      class: "ego-node", role: "button", "aria-label": egoSays(j) + (j < graph.size ? ". Show it." : ""),
      onclick: () => j < graph.size && onNode(j), onpointerenter: () => tell(j), onfocus: () => tell(j),
    }, ...egoMarker(j, ...spots[k], 7)));
    const centre = svg("g", { onpointerenter: () => tell(i) }, ...egoMarker(i, cx, cy, 11));
    root.append(...groups, centre);
    roving(groups);
    return root;
  };
  const classes = [...new Set([i, ...around].flatMap((j) => [graph.label[j], graph.runs[0].predicted[j]]))].sort((a, b) => a - b);
  const keys = classes.map((c) => el("span", { class: "key" }, swatch(kind(c).colour, kind(c).shape), className(c)));
  return el("div", {}, chart(draw), el("div", { class: "keys" }, ...keys), says, el("p", { class: "note" }, egoNote(i, around)));
}

function egoNote(i, around) {
  const cut = (j) => j >= graph.size || graph.starts[j + 1] - graph.starts[j] < graph.degree[j];
  const number = around.length < graph.degree[i] ? `${around.length} of its ${count(graph.degree[i])} neighbours, drawn at random` : plural(around.length, "neighbour");
  const unsure = around.some(cut) ? " Links between them may be missing." : "";
  return `${number}. Colour: class; dashed ring: ${graph.runs[0].name} predicts the class of the ring's colour instead.${unsure}`;
}
