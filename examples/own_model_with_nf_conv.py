"""Use NFConv as a layer of your own PyTorch Geometric model, with your own training loop.

NFConv maps ``[num_nodes, channels]`` to the same shape. Writes ``own_model.png``.
"""

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from nfgnn import NFConv, load_dataset, split


# %% Define the model
class Mine(nn.Module):
    """One GCN layer, a filter for every node, one linear layer."""

    def __init__(self, in_channels: int, out_channels: int, hidden_channels: int = 16) -> None:
        super().__init__()
        self.conv = GCNConv(in_channels, hidden_channels)
        self.prop = NFConv(hidden_channels, K=4, rank=2, basis="bernstein", init="ppr", alpha=0.5)
        self.lin = nn.Linear(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.relu(self.conv(x, edge_index))
        x = F.relu(self.prop(x, edge_index))
        return self.lin(x)


# %% Load a graph and train
torch.manual_seed(0)
data = split(load_dataset("karate"), protocol="stratified", seed=0)
model = Mine(data.num_features, data.num_classes)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

for epoch in range(1, 101):
    model.train()
    optimizer.zero_grad()
    out = model(data.x.to_dense(), data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    if epoch % 25 == 0:
        print(f"epoch {epoch:3}  training loss {loss.item():.3f}")

# %% Score the test nodes and read the coefficients
model.eval()
with torch.no_grad():
    hidden = F.relu(model.conv(data.x.to_dense(), data.edge_index))
    _, psi = model.prop(hidden, data.edge_index, return_coefficients=True)
    correct = model(data.x.to_dense(), data.edge_index).argmax(-1) == data.y
accuracy = correct[data.test_mask].float().mean()
print(f"test accuracy {100 * accuracy:.1f} % of {int(data.test_mask.sum())} nodes")
print("coefficients of node 0:", [round(c, 3) for c in psi[0].tolist()])
figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
axes.plot(psi.T, color="tab:blue", alpha=0.4)
axes.set(xlabel="order k", ylabel="coefficient", title="Coefficients of all nodes", xticks=range(5))
figure.savefig("own_model.png", dpi=120)
