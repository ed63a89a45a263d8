// Colours that colour-blind readers can tell apart, with a contrast of 3:1 to the card: a palette
// for categories (dark: Okabe and Ito; light: darker colours), viridis for quantities.
const darkMode = matchMedia("(prefers-color-scheme: dark)");
const PALETTE = {
  light: ["#1560aa", "#c98500", "#2ea186", "#9f2955", "#1d9ed2", "#8a4301", "#27107a", "#111111"],
  dark: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#f2f2f2"],
};
const VIRIDIS = [
  "#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725",
];
const VIRIDIS_RANGE = { light: [0, 0.59], dark: [0.4, 1] };
const LEVELS = 48;
const SHAPES = 5;
const HOLLOW = 5; // added to a shape that is drawn as an outline
const scheme = () => (darkMode.matches ? "dark" : "light");
const grey = () => (darkMode.matches ? "#7d848b" : "#878d94");
const strong = () => (darkMode.matches ? "#f2f2f2" : "#111111");
const faint = () => (darkMode.matches ? "#43494f" : "#d3d7da");

/** Colour and shape of a class: eight colours in five shapes, filled and then hollow. */
function kind(c) {
  if (c < 0) return { colour: grey(), shape: 0 };
  const colours = PALETTE[scheme()];
  const shape = Math.floor(c / colours.length) % (2 * SHAPES);
  return { colour: colours[c % colours.length], shape };
}

/** Stroke of the curve of a class: the colour of the class, and a dash pattern for its shape. */
function classLine(c) {
  const dashes = [null, "7 3", "2 3", "9 3 2 3", "4 2"];
  return {
    stroke: kind(c).colour, "stroke-width": 2, "stroke-dasharray": dashes[kind(c).shape % SHAPES],
  };
}

/** Viridis without the end that would vanish in the background; share from 0 to 1. */
function amount(share) {
  const [low, high] = VIRIDIS_RANGE[scheme()];
  const x = (low + (high - low) * share) * (VIRIDIS.length - 1);
  const at = Math.min(Math.floor(x), VIRIDIS.length - 2);
  const [from, to] = [VIRIDIS[at], VIRIDIS[at + 1]].map(
    (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)));
  const mixed = from.map((value, k) => Math.round(value + (x - at) * (to[k] - value)));
  return `rgb(${mixed.join(",")})`;
}

const CORNERS = [
  [[0, -1.15], [1.1, 0.85], [-1.1, 0.85]],
  [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
  [[0, -0.5], [0.6, -1.1], [1.1, -0.6], [0.5, 0], [1.1, 0.6], [0.6, 1.1], [0, 0.5], [-0.6, 1.1],
    [-1.1, 0.6], [-0.5, 0], [-1.1, -0.6], [-0.6, -1.1]],
];

/** Outline of a marker: circle, square, triangle, diamond, cross. */
function trace(context, shape, x, y, r) {
  const form = shape % SHAPES;
  context.beginPath();
  if (form === 0) context.arc(x, y, r, 0, 2 * Math.PI);
  else if (form === 1) context.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
  else {
    CORNERS[form - 2].forEach(([dx, dy], k) => (
      k ? context.lineTo(x + r * dx, y + r * dy) : context.moveTo(x + r * dx, y + r * dy)));
    context.closePath();
  }
}

/** Draw a marker, filled or hollow. */
function paint(context, { colour, shape }, x, y, r) {
  context.fillStyle = context.strokeStyle = colour;
  if (shape < HOLLOW) {
    trace(context, shape, x, y, r);
    context.fill();
  } else {
    context.lineWidth = Math.max(1, 0.45 * r);
    trace(context, shape, x, y, 0.85 * r);
    context.stroke();
  }
}

function swatch(look) {
  const canvas = el("canvas", { width: 28, height: 28, class: "swatch", "aria-hidden": "true" });
  paint(canvas.getContext("2d"), look, 14, 14, 10);
  return canvas;
}

/**
 * Colourings. Each maps a node to an index in a list of looks; quantities have a range. Looks with
 * `front` are drawn above the others.
 */
const kinds = (name, title, looks, of) => ({ name, title, looks, of });
const amounts = (name, title, of, high, missing) => ({
  name, title, high, missing,
  looks: () => [
    ...Array.from({ length: LEVELS }, (_, k) => ({ colour: amount(k / (LEVELS - 1)), shape: 0 })),
    { colour: grey(), shape: 0 },
  ],
  of: (i) => (Number.isFinite(of(i))
    ? Math.max(0, Math.min(LEVELS - 1, Math.floor((of(i) / high) * LEVELS))) : LEVELS),
});

function colourings() {
  const several = graph.runs.length > 1, none = "no labelled neighbour";
  const entropies = Math.log(Math.max(2, numClasses));
  const ways = [
    amounts("homophily", "local homophily h", (i) => graph.homophily[i], 1, none),
    amounts("entropy", "label entropy S", (i) => graph.entropy[i], entropies, none),
    kinds("class", "class", () => [
      ...classNames.map((name, c) => ({ ...kind(c), name })), { ...kind(-1), name: "unknown" },
    ], (i) => (graph.label[i] < 0 ? numClasses : graph.label[i])),
  ];
  graph.runs.forEach((run, r) => {
    const of = several ? ` of ${run.name}` : "";
    ways.push(kinds(`correctness-${r}`, `correctness${of}`, () => [
      { ...kind(0), name: "correct" },
      { colour: darkMode.matches ? "#f08a4b" : "#c24f00", shape: 4, name: "wrong", front: true },
      { colour: grey(), shape: 0, name: "class unknown" },
    ], (i) => (graph.label[i] < 0 ? 2 : isRight(r, i) ? 0 : 1)));
    ways.push(amounts(`confidence-${r}`, `confidence${of}`, (i) => run.confidence[i], 1, ""));
    if (run.filters && !run.filters.oneForAll) {
      const high = run.filters.distance.reduce((most, value) => Math.max(most, value), 1e-9);
      ways.push(amounts(`distance-${r}`, `filter distance${of}`,
        (i) => run.filters.distance[i], high, ""));
    }
  });
  if (several) ways.push(comparison());
  ways.push(kinds("part", "part of the split", () => page.parts.map((name, p) => (
    { ...(p ? kind(p - 1) : kind(-1)), shape: [0, 0, 1, 2, 3][p], name: p ? name : "in no part" })),
  (i) => graph.part[i]));
  return ways;
}

/** Where two runs disagree: nodes with different predictions stand out from the others. */
function comparison() {
  const [first, second] = graph.runs.map((run) => run.name);
  const third = () => ({ colour: PALETTE[scheme()][3], shape: 3 });
  return kinds("comparison", "disagreement", () => [
    { ...kind(darkMode.matches ? 4 : 0), name: `only ${first} is correct`, front: true },
    { colour: PALETTE[scheme()][1], shape: 2, name: `only ${second} is correct`, front: true },
    { ...third(), name: "both are wrong and disagree", front: true },
    { ...third(), shape: 3 + HOLLOW, name: "class unknown, and they disagree", front: true },
    { colour: faint(), shape: 0, name: "both are correct" },
    { colour: grey(), shape: 4, name: "both predict the same wrong class" },
    { colour: faint(), shape: HOLLOW, name: "class unknown, and they agree" },
  ], (i) => {
    const agree = !disagree(i);
    if (graph.label[i] < 0) return agree ? 6 : 3;
    if (isRight(0, i)) return agree ? 4 : 0;
    if (isRight(1, i)) return 1;
    return agree ? 5 : 2;
  });
}
