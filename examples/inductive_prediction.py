"""Train on one graph and predict on another that shares no node with it.

A generated graph is divided into two halves, each with the edges between its own nodes. The model
is trained on the first half. Then it predicts on the second half alone, and on the whole graph,
where unseen nodes also have their edges to seen ones. Writes ``inductive.png``.
"""

import matplotlib.pyplot as plt
import torch

from nfgnn import NodeClassifier, load_dataset, split

# %% Divide a graph into two halves
whole = load_dataset("mixed", num_nodes=3000)
first = torch.arange(whole.num_nodes) < 1500

seen = split(load_dataset(whole.subgraph(first)), protocol="stratified", seed=0)
unseen = load_dataset(whole.subgraph(~first))
print(f"trained on {seen.num_nodes} nodes and {seen.num_edges // 2} edges")

# %% Train on the first half, and predict nodes that the model has never seen
clf = NodeClassifier("NFGNN", K=5, alpha=0.5, seed=0).fit(seen)
every_node = torch.ones(unseen.num_nodes, dtype=torch.bool)
scores = {
    "test nodes of the training graph": clf.score(seen),
    "another graph, nodes never seen": clf.score(unseen, every_node),
    "the same nodes in the whole graph": clf.score(whole, ~first),
}
for name, score in scores.items():
    print(f"{name:35} {100 * score:.1f} %")

# %% Draw the scores
figure, axes = plt.subplots(figsize=(7, 2.2), layout="constrained")
bars = axes.barh(list(scores), [100 * score for score in scores.values()], color="tab:blue")
axes.bar_label(bars, fmt="%.1f", padding=3)
axes.set(xlim=(0, 100), xlabel="accuracy, %", title="Seen and unseen nodes")
axes.invert_yaxis()
figure.savefig("inductive.png", dpi=120)

# %% Save the model and load it again
clf.save("inductive-model")
loaded = NodeClassifier.load("inductive-model")
print("five predictions of the saved model:", loaded.predict(unseen)[:5].tolist())
