// Lists of surprising nodes. The first of them is shown until the user chooses a node.
const reasonOf = (i) => page.surprising.flatMap(({ nodes, reasons }) => {
  const at = nodes.indexOf(i);
  return at < 0 ? [] : [reasons[at]];
}).join(" ");

const mostSurprising = () => (page.surprising.length ? page.surprising[0].nodes[0] : null);

/** The lists as buttons, with the node that is shown marked. */
function showSurprising(shown, body, onNode) {
  const button = (i, reason) => el("button", {
    type: "button", title: reason, "aria-pressed": `${i === shown}`, onclick: () => onNode(i),
  }, nodeName(i));
  const lists = page.surprising.map(({ title, nodes, reasons }) => el("div", { class: "surprise" },
    el("h3", {}, title),
    el("div", { class: "chips" }, ...nodes.map((i, k) => button(i, reasons[k])))));
  body.replaceChildren(...lists);
}
