"""Draw the frequency responses that single nodes have learned, and their mean per kind of node.

Writes ``filters.png``. A filter that is high on the left passes what neighbours have in common. One
that is high on the right passes what they differ in.
"""

import matplotlib.pyplot as plt

from nfgnn import NodeClassifier, load_dataset, split

# %% Train a model
data = split(load_dataset("mixed", num_nodes=1500), protocol="full", seed=0)
clf = NodeClassifier("NFGNN", rank=3, seed=0).fit(data)
print(f"test accuracy {100 * clf.score(data):.1f} %")

# %% Compute the filter of every node
frequencies, curves = clf.response(data)  # λ [points] and one curve per node [num_nodes, points]
print(f"{curves.shape[0]} filters at {curves.shape[1]} frequencies, basis {clf.model_.prop.basis}")

# %% Draw the filters by the kind of node
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for pattern, name, colour in ((0, "homophilic", "tab:orange"), (1, "heterophilic", "tab:blue")):
    nodes = (data.pattern == pattern).nonzero().flatten()
    for node in nodes[:100]:
        left.plot(frequencies, curves[node], color=colour, lw=0.5, alpha=0.3)
    left.plot([], [], color=colour, label=f"{name} nodes")
    deviation = curves[nodes] - curves.mean(0)
    right.plot(frequencies, deviation.mean(0), color=colour)
    size = deviation.abs().max(1).values.mean()
    print(
        f"{name:12} nodes differ from the mean filter by {size:.2f} at most, on average over nodes"
    )
left.set(title="learned filters", xlabel="frequency λ", ylabel="response")
right.set(title="mean difference from all nodes", xlabel="frequency λ")
left.legend()
figure.savefig("filters.png", dpi=120)
print("filters.png written")
