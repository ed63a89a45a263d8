"""Train on one graph and predict on another that shares no node with it.

A generated graph is divided into two halves, each with the edges between its own nodes. The model
is trained on the first half. Then it predicts on the second half alone, and on the whole graph,
where unseen nodes also have their edges to seen ones.
"""

import torch

from nfgnn import NodeClassifier, load_dataset, split

whole = load_dataset("mixed", num_nodes=3000)
first = torch.arange(whole.num_nodes) < 1500

seen = split(load_dataset(whole.subgraph(first)), protocol="stratified", seed=0)
unseen = load_dataset(whole.subgraph(~first))
print(f"trained on {seen.num_nodes} nodes and {seen.num_edges // 2} edges")

clf = NodeClassifier("NFGNN", K=5, alpha=0.5, seed=0).fit(seen)
print(f"test nodes of the graph it was trained on     {100 * clf.score(seen):.1f} %")

every_node = torch.ones(unseen.num_nodes, dtype=torch.bool)
unseen_score = clf.score(unseen, every_node)
print(f"another graph, {unseen.num_nodes} nodes never seen          {100 * unseen_score:.1f} %")
print(f"the same nodes within the whole graph         {100 * clf.score(whole, ~first):.1f} %")

clf.save("inductive-model")
loaded = NodeClassifier.load("inductive-model")
print("five predictions of the saved model:", loaded.predict(unseen)[:5].tolist())
