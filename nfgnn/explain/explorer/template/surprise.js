// Lists of surprising nodes. The first of them is shown until the user chooses a node.
const reasonOf = (i) => page.surprising.flatMap(({ nodes, reasons }) => {
  const at = nodes.indexOf(i);
  return at < 0 ? [] : [reasons[at]];
}).join(" ");

const mostSurprising = () => (page.surprising.length ? page.surprising[0].nodes[0] : null);

/** The lists as buttons. */
function listSurprising(body, onNode) {
  const button = (i, reason) => el("button", {
    type: "button", title: reason, "data-node": i, onclick: () => onNode(i),
  }, nodeName(i));
  const lists = page.surprising.map(({ title, nodes, reasons }) => el("div", { class: "surprise" },
    el("h3", {}, title),
    el("div", { class: "chips" }, ...nodes.map((i, k) => button(i, reasons[k])))));
  body.replaceChildren(...lists);
}

/** Mark the node that is shown. */
function markSurprising(shown, body) {
  for (const button of body.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", `${button.dataset.node === `${shown}`}`);
  }
}
