// Colours that colour-blind readers can tell apart: the palette of Okabe and Ito for categories, viridis for quantities.
const darkMode = matchMedia("(prefers-color-scheme: dark)");
const KINDS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];
const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
const LEVELS = 48;
const grey = () => (darkMode.matches ? "#6b7178" : "#a9adb2");
const strong = () => (darkMode.matches ? "#f2f2f2" : "#111111");
const faint = () => (darkMode.matches ? "#4b5258" : "#cfd3d6");

/** Colour and shape of a class: eight colours, then the same with another shape. */
function kind(c) {
  if (c < 0) return { colour: grey(), shape: 0 };
  const at = c % (KINDS.length + 1);
  return { colour: at < KINDS.length ? KINDS[at] : strong(), shape: Math.floor(c / (KINDS.length + 1)) % 4 };
}

/** Viridis without the end that would vanish in the background; share from 0 to 1. */
function amount(share) {
  const x = (darkMode.matches ? 0.18 + 0.82 * share : 0.93 * share) * (VIRIDIS.length - 1);
  const at = Math.min(Math.floor(x), VIRIDIS.length - 2);
  const [from, to] = [VIRIDIS[at], VIRIDIS[at + 1]].map((hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)));
  return `rgb(${from.map((value, k) => Math.round(value + (x - at) * (to[k] - value))).join(",")})`;
}

/** Outline of a marker: circle, square, triangle, diamond, cross. */
function trace(context, shape, x, y, r) {
  context.beginPath();
  if (shape === 0) context.arc(x, y, r, 0, 2 * Math.PI);
  else if (shape === 1) context.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
  else {
    const corners = [
      [[0, -1.15], [1.1, 0.85], [-1.1, 0.85]],
      [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
      [[0, -0.5], [0.6, -1.1], [1.1, -0.6], [0.5, 0], [1.1, 0.6], [0.6, 1.1], [0, 0.5], [-0.6, 1.1], [-1.1, 0.6], [-0.5, 0], [-1.1, -0.6], [-0.6, -1.1]],
    ][shape - 2];
    corners.forEach(([dx, dy], k) => (k ? context.lineTo(x + r * dx, y + r * dy) : context.moveTo(x + r * dx, y + r * dy)));
    context.closePath();
  }
}

function swatch(colour, shape) {
  const canvas = el("canvas", { width: 28, height: 28, class: "swatch", "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  context.fillStyle = colour;
  trace(context, shape, 14, 14, 10);
  context.fill();
  return canvas;
}

/** Colourings. Each maps a node to an index in a list of styles; quantities have a range, and -1 where undefined. */
const kinds = (name, title, looks, of) => ({ name, title, looks, of });
const amounts = (name, title, of, high, missing) => ({
  name, title, high, missing,
  looks: () => [...Array.from({ length: LEVELS }, (_, k) => ({ colour: amount(k / (LEVELS - 1)), shape: 0 })), { colour: grey(), shape: 0 }],
  of: (i) => (Number.isFinite(of(i)) ? Math.max(0, Math.min(LEVELS - 1, Math.floor((of(i) / high) * LEVELS))) : LEVELS),
});

function colourings() {
  const several = graph.runs.length > 1;
  const ways = [
    amounts("homophily", "local homophily h", (i) => graph.homophily[i], 1, "no labelled neighbour"),
    amounts("entropy", "label entropy S", (i) => graph.entropy[i], Math.log(Math.max(2, numClasses)), "no labelled neighbour"),
    kinds("class", "class", () => [...classNames.map((name, c) => ({ ...kind(c), name })), { ...kind(-1), name: "unknown" }],
      (i) => (graph.label[i] < 0 ? numClasses : graph.label[i])),
  ];
  graph.runs.forEach((run, r) => {
    const of = several ? ` of ${run.name}` : "";
    ways.push(kinds(`correctness-${r}`, `correctness${of}`, () => [
      { colour: darkMode.matches ? "#56b4e9" : "#0072b2", shape: 0, name: "right" },
      { colour: "#d55e00", shape: 4, name: "wrong" },
      { colour: grey(), shape: 0, name: "class unknown" },
    ], (i) => (graph.label[i] < 0 ? 2 : isRight(r, i) ? 0 : 1)));
    ways.push(amounts(`confidence-${r}`, `confidence${of}`, (i) => run.confidence[i], 1, ""));
  });
  if (several) ways.push(kinds("comparison", "comparison of both", () => [
    { colour: darkMode.matches ? "#56b4e9" : "#0072b2", shape: 0, name: `only ${graph.runs[0].name} is right` },
    { colour: "#e69f00", shape: 2, name: `only ${graph.runs[1].name} is right` },
    { colour: faint(), shape: 0, name: "both are right" },
    { colour: darkMode.matches ? "#8a9198" : "#6b7178", shape: 4, name: "both are wrong" },
    { colour: grey(), shape: 0, name: "class unknown" },
  ], (i) => (graph.label[i] < 0 ? 4 : isRight(0, i) ? (isRight(1, i) ? 2 : 0) : isRight(1, i) ? 1 : 3)));
  ways.push(kinds("part", "part of the split", () => page.parts.map((name, p) => (
    { ...(p ? kind(p - 1) : kind(-1)), shape: [0, 0, 1, 2, 3][p], name: p ? name : "in no part" })), (i) => graph.part[i]));
  return ways;
}
