"""Train the same initial filter in every polynomial basis: does the basis matter?

Before training the filters are equal, because an initial filter is a frequency response that is
projected onto the basis. Afterwards they differ, because gradient descent takes different paths.
Writes ``bases.png``.
"""

import matplotlib.pyplot as plt
import torch

from nfgnn import NFConv, NodeClassifier, load_dataset, split
from nfgnn.spectral import BASES

# %% Load a graph
data = split(load_dataset("mixed", num_nodes=400), protocol="full", seed=0)
t = torch.linspace(-1, 1, 201, dtype=torch.float64)  # t = 2λ/λ_max - 1

# %% Train in every basis and draw the filters before and after
figure, (before, after) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
print("basis        start: response at λ = 0, 1, 2     test %   epochs")
for name in BASES:
    conv = NFConv(channels=4, K=5, basis=name, init="ppr", alpha=0.5)
    gamma = conv.gate.gamma.detach().double().sum(1) * 0.5  # σ(0) = ½: the filter at W = 0
    start = conv.basis.evaluate(t, conv.K) @ gamma
    clf = NodeClassifier("NFGNN", basis=name, K=5, alpha=0.5, patience=60, seed=0).fit(data)
    values = "  ".join(f"{float(start[i]):.4f}" for i in (0, 100, 200))
    print(f"{name:12} {values:32}   {100 * clf.score(data):.1f}     {clf.history_.epochs}")

    frequencies, curves = clf.response(data)
    before.plot(t + 1, start)
    after.plot(frequencies, curves.mean(0), label=name)

before.set(title="All bases start with the same filter", xlabel="frequency λ", ylabel="response")
after.set(title="Mean filter of the nodes after training", xlabel="frequency λ")
after.legend()
figure.savefig("bases.png", dpi=120)
