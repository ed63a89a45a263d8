"""Train NFGNN and one global filter on the built-in graph, and compare both kinds of nodes.

Homophilic nodes of this graph have mostly neighbours of their own class, heterophilic nodes have
none. ``data.pattern`` marks them; the models do not see it. Writes ``quickstart.png``.
"""

import matplotlib.pyplot as plt

from nfgnn import NodeClassifier, load_dataset, split

# %% Load a graph and divide its nodes
data = split(load_dataset("mixed", num_nodes=1500), protocol="full", seed=0)
print(data)

# %% Train three models and score both kinds of nodes
figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
for name in ("MLP", "PolyGNN", "NFGNN"):
    clf = NodeClassifier(name, seed=0).fit(data)  # hyper-parameters: the preset of this graph
    homophilic = clf.score(data, data.test_mask & (data.pattern == 0))
    heterophilic = clf.score(data, data.test_mask & (data.pattern == 1))
    print(
        f"{name:8} test {100 * clf.score(data):.1f} %   "
        f"homophilic nodes {100 * homophilic:.1f} %   "
        f"heterophilic nodes {100 * heterophilic:.1f} %   ({clf.history_.epochs} epochs)"
    )
    axes.plot([100 * homophilic, 100 * heterophilic], marker="o", label=name)

# %% Look at the result
axes.set_xticks([0, 1], ["homophilic nodes", "heterophilic nodes"])
axes.set(xlim=(-0.3, 1.3), ylabel="test accuracy, %", title="Accuracy by the kind of node")
axes.legend()
figure.savefig("quickstart.png", dpi=120)
print("probabilities of node 0:", [round(p, 3) for p in clf.predict_proba(data)[0].tolist()])
print("filter coefficients of all nodes:", tuple(clf.coefficients(data).shape))

# %% Save the model and load it again
clf.save("quickstart-model")  # classifier.json and weights.safetensors
again = NodeClassifier.load("quickstart-model")
assert again.predict(data).equal(clf.predict(data))
