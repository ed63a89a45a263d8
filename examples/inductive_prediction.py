"""Train on one graph and predict on another that shares no node with it.

A generated graph is cut into two: the first half of the nodes with the links among them, and the second half. The model
sees the first only. Then the whole graph is given, so that unseen nodes also have their links to seen ones.
"""

import torch

from nfgnn import NodeClassifier, load_dataset, split

whole = load_dataset("mixed", num_nodes=3000)
first = torch.arange(whole.num_nodes) < 1500

seen = split(load_dataset(whole.subgraph(first)), protocol="stratified", seed=0)
unseen = load_dataset(whole.subgraph(~first))
print(f"trained on {seen.num_nodes} nodes and {seen.num_edges // 2} links")

clf = NodeClassifier("NFGNN", K=5, alpha=0.5, seed=0).fit(seen)
print(f"test nodes of the graph it was trained on     {100 * clf.score(seen):.1f} %")

every_node = torch.ones(unseen.num_nodes, dtype=torch.bool)
print(
    f"another graph, {unseen.num_nodes} nodes never seen          {100 * clf.score(unseen, every_node):.1f} %"
)
print(f"the same nodes within the whole graph         {100 * clf.score(whole, ~first):.1f} %")

clf.save("inductive-model")
loaded = NodeClassifier.load("inductive-model")
print("five predictions of the saved model:", loaded.predict(unseen)[:5].tolist())
