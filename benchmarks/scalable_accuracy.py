"""Compare the scalable models with the standard one: a small search, then the reported runs.

    python benchmarks/scalable_accuracy.py search cora --root DATA    split seeds 0-4
    python benchmarks/scalable_accuracy.py report --root DATA         ten runs from seed 1000

``search`` draws settings of ScalableNFNet, trains each on two splits and the best four on three
more, and selects by mean validation accuracy; every value is written to
``benchmarks/results/scalable_nfnet_search.json``. ``report`` uses the presets and writes
``benchmarks/results/scalable_nfnet.json`` and ``.md``. Runs of other settings than those of the
present presets are repeated. Both resume after an interruption, and take all six graphs if none is
named. ``--device cuda`` uses a GPU.
"""

import argparse
import json
import platform
import random
import sys
import time
from pathlib import Path
from typing import Any

import torch

from nfgnn import NodeClassifier, load_dataset, split
from nfgnn.training import resolve_device
from nfgnn.training.inputs import resolve_config
from nfgnn.training.metrics import summarise

RESULTS = Path(__file__).parent / "results"
DATASETS = ("cora", "citeseer", "pubmed", "computers", "chameleon", "squirrel")
MODELS = ("ScalableNFNet", "ScalableNFGNN", "NFGNN")
SPACE: dict[str, list[Any]] = {
    "terms": ["chebyshev", "monomial with loops"],
    "K": [2, 5, 10],
    "features": ["row", "standard", "raw"],
    "alpha": [0.1, 0.5, 0.9],
    "hidden_channels": [128, 256, 512],
    "num_layers": [2, 3],
    "dropout": [0.2, 0.5, 0.7],
    "batch_norm": [False, True],
    "sketch": [0, 1024, 2048],
    "sketch_dropout": [0.2, 0.5],
    "lr": [0.002, 0.005, 0.02],
    "filter_lr": [0.01, 0.05],
    "weight_decay": [1e-4, 1e-3, 5e-3],
    "label_smoothing": [0.0, 0.2],
    "batch_size": [0, 512],
}
SHORT = {"epochs": 150, "patience": 50, "select": "metric"}


def draw(rng: random.Random) -> dict[str, Any]:
    settings = {key: rng.choice(values) for key, values in SPACE.items()}
    loops = settings.pop("terms") != "chebyshev"
    return {**settings, "basis": "monomial" if loops else "chebyshev", "self_loops": loops, **SHORT}


def validate(data: Any, settings: dict[str, Any], seed: int, device: str) -> float:
    graph = split(data, "full", seed)
    classifier = NodeClassifier(
        "ScalableNFNet", preset="none", seed=seed, device=device, **settings
    ).fit(graph)
    return classifier.score(graph, graph.val_mask)


def search(dataset: str, root: Path | None, configurations: int, device: str) -> None:
    file = RESULTS / "scalable_nfnet_search.json"
    tried: dict[str, list[dict[str, Any]]] = json.loads(file.read_text()) if file.is_file() else {}
    rng, data = random.Random(dataset), load_dataset(dataset, root=root)
    wanted = [draw(rng) for _ in range(configurations)]
    # Neighbours with the same rows share them.
    wanted.sort(key=lambda s: (s["features"], s["basis"], s["K"], s["sketch"]))
    known = {
        json.dumps(entry["settings"], sort_keys=True): entry for entry in tried.get(dataset, [])
    }
    entries = [
        known.get(json.dumps(s, sort_keys=True), {"settings": s, "val_accuracy": {}})
        for s in wanted
    ]
    tried[dataset] = entries

    def run(entry: dict[str, Any], seeds: range) -> None:
        for seed in seeds:
            if str(seed) not in entry["val_accuracy"]:
                began = time.perf_counter()
                entry["val_accuracy"][str(seed)] = validate(data, entry["settings"], seed, device)
                file.write_text(json.dumps(tried, indent=1))
                print(
                    f"{dataset} seed {seed} {entry} {time.perf_counter() - began:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )

    def score(entry: dict[str, Any]) -> float:
        values = list(entry["val_accuracy"].values())
        return sum(values) / len(values)

    for entry in entries:
        run(entry, range(2))
    best = sorted(entries, key=score, reverse=True)[:4]
    for entry in best:
        run(entry, range(5))
    print(json.dumps(max(best, key=score)))


def report(
    root: Path | None, runs: int, device: str, datasets: list[str], models: list[str]
) -> None:
    file = RESULTS / "scalable_nfnet.json"
    content: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    content["command"] = "python benchmarks/scalable_accuracy.py report --root DATA"
    for dataset in datasets:
        data = load_dataset(dataset, root=root)
        for model in models:
            entry = content.setdefault(dataset, {}).get(model, {})
            for seed in range(1000, 1000 + runs):
                graph = split(data, "full", seed)
                configuration = resolve_config(graph, model, {}, "full", "best").to_dict()
                if entry.get("settings") != configuration:
                    entry = {"settings": configuration, "test_accuracy": [], "seconds": []}
                    entry["machine"] = machine(device)
                    content[dataset][model] = entry
                if seed - 1000 < len(entry["test_accuracy"]):
                    continue
                classifier = NodeClassifier(model, seed=seed, device=device)
                classifier.fit(graph)
                entry["test_accuracy"].append(classifier.score(graph))
                entry["seconds"].append(classifier.history_.seconds)
                file.write_text(json.dumps(content, indent=1))
                print(
                    f"{dataset} {model} {seed} {entry['test_accuracy'][-1]:.4f}",
                    file=sys.stderr,
                    flush=True,
                )
    (RESULTS / "scalable_nfnet.md").write_text(markdown(content))


def machine(device: str) -> str:
    version = torch.__version__.split("+")[0]
    if resolve_device(device).type == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {version}"
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    processor = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return f"One thread of an {processor} ({platform.system()}), torch {version}"


def markdown(content: dict[str, Any]) -> str:
    lines = [
        "# The scalable models and the standard one",
        "",
        "Test accuracy in %, mean ± 95 % confidence interval of the mean over ten runs from seed",
        "1000 (a number after × counts fewer runs), protocol `full`, preset `best` of each model;",
        "s: mean seconds of a training, on the machine that `scalable_nfnet.json` names.",
        f"`{content['command']}`.",
        "",
        "| dataset | " + " | ".join(f"{model} | s" for model in MODELS) + " |",
        "|---|" + "---:|---:|" * len(MODELS),
    ]
    for dataset in DATASETS:
        cells = [cell(content.get(dataset, {}).get(model)) for model in MODELS]
        lines.append(f"| {dataset} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def cell(entry: dict[str, Any] | None) -> str:
    if entry is None or len(entry["test_accuracy"]) < 2:
        return " | "
    score = summarise(entry["test_accuracy"])
    seconds = summarise(entry["seconds"])["mean"]
    count = len(entry["test_accuracy"])
    runs = "" if count >= 10 else f" ×{count}"
    return f"{100 * score['mean']:.2f} ± {100 * score['ci95']:.2f}{runs} | {seconds:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["search", "report"])
    parser.add_argument("dataset", nargs="?", choices=DATASETS)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--configurations", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    datasets = [arguments.dataset] if arguments.dataset else list(DATASETS)
    if arguments.what == "search":
        for dataset in datasets:
            search(dataset, arguments.root, arguments.configurations, arguments.device)
    else:
        report(arguments.root, arguments.runs, arguments.device, datasets, arguments.models)


if __name__ == "__main__":
    main()
