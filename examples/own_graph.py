"""Train on a graph of your own: two CSV files in, a prediction for every node out.

The first cell writes the files, so that the example runs anywhere: 300 people, who mostly know
others with the same interest. The interest of every third person is unknown. Writes
``own_graph.png``.
"""

import csv
import random
from pathlib import Path

import matplotlib.pyplot as plt

from nfgnn import NodeClassifier, load_dataset, split

# %% Write a table of nodes and a table of edges
random.seed(0)
folder = Path("my-graph")
folder.mkdir(exist_ok=True)
interests = [random.choice(("music", "sports", "theatre")) for _ in range(300)]
with (folder / "nodes.csv").open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(("id", "label", "age", "concerts", "matches"))
    for person, interest in enumerate(interests):
        label = interest if person % 3 else ""  # an empty label is unknown
        concerts = random.gauss(3 if interest == "music" else 1, 2)
        matches = random.gauss(3 if interest == "sports" else 1, 2)
        writer.writerow((f"person-{person}", label, random.randint(18, 80), concerts, matches))
with (folder / "edges.csv").open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(("source", "target"))
    for _ in range(1500):
        a, b = random.sample(range(300), 2)
        if interests[a] == interests[b] or random.random() < 0.1:
            writer.writerow((f"person-{a}", f"person-{b}"))

# %% Load the graph and divide the labelled nodes
data = split(load_dataset("my-graph"), protocol="stratified", seed=0)
print(data)

# %% Train with and without the edges
for name in ("MLP", "NFGNN"):
    clf = NodeClassifier(name, seed=0, epochs=100).fit(data)
    print(f"{name:6} test accuracy {100 * clf.score(data):.1f} %")

# %% Predict the nodes without a label
probabilities = clf.predict_proba(data)
unknown = (data.y < 0).nonzero().flatten().tolist()
correct = 0
for node in unknown:
    predicted = data.class_names[int(probabilities[node].argmax())]
    correct += predicted == interests[node]
print(f"{correct} of {len(unknown)} unknown interests are predicted correctly")

figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
axes.hist(probabilities[unknown].max(1).values, bins=20, range=(0, 1))
axes.set(xlabel="probability of the predicted class", ylabel="people without a label")
figure.savefig("own_graph.png", dpi=120)
