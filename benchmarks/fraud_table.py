"""Write a table of accounts and transfers in which 3 % of the accounts are fraudulent.

The graph stands for what practitioners bring: a rare class, numbers with gaps and heavy tails, text
and dates. Neither its columns nor its edges alone reveal all fraud. Rings of fraudulent accounts
pay each other, and each of them collects from many honest accounts.

Example:
    python benchmarks/fraud_table.py runs/fraud
    nfgnn train runs/fraud
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

ACCOUNTS = 4000
FRAUD_SHARE = 0.03
RING_SIZE = 6
RING_DENSITY = 0.3
VICTIMS = 4
COUNTRIES = ["DE", "FR", "IT", "NL", "PL"]
FIRST_DAY = np.datetime64("2019-01-01")


def accounts(is_fraud: np.ndarray, rng: np.random.Generator) -> pa.Table:
    """Return one row per account: its label and columns of several kinds."""
    n = len(is_fraud)
    amount = rng.lognormal(4 + 0.6 * is_fraud, 1.5)
    age = np.round(rng.normal(45 - 4 * is_fraud, 14), 1)
    # A tenth of the ages is not known, more often where there is fraud.
    age_is_missing = rng.random(n) < 0.08 + 0.1 * is_fraud
    country = np.where(rng.random(n) < 0.3 * is_fraud, "NL", rng.choice(COUNTRIES, n))
    opened = FIRST_DAY + rng.integers(0, 1500, n) + (300 * is_fraud).astype(int)
    return pa.table(
        {
            "id": [f"account-{i}" for i in range(n)],
            "label": np.where(is_fraud, "fraud", "honest"),
            "mean_amount": amount.round(2),
            "age": pa.array(age, mask=age_is_missing),
            "country": country,
            "verified": rng.random(n) < np.where(is_fraud, 0.5, 0.8),
            "opened": opened,
        }
    )


def transfers(is_fraud: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the edges, ``[2, number]``: rings of fraud, their victims, and ordinary payments."""
    n = len(is_fraud)
    fraudulent = rng.permutation(np.flatnonzero(is_fraud))
    ring = np.arange(len(fraudulent)) // RING_SIZE
    same_ring = ring[:, None] == ring[None, :]
    pays = np.triu(same_ring, 1) & (rng.random(same_ring.shape) < RING_DENSITY)
    payer, payee = np.nonzero(pays)
    parts = [np.stack([fraudulent[payer], fraudulent[payee]])]
    victims = rng.integers(0, n, (len(fraudulent), VICTIMS))
    parts.append(np.stack([victims.ravel(), np.repeat(fraudulent, VICTIMS)]))
    parts.append(rng.integers(0, n, (2, 3 * n)))
    edges = np.concatenate(parts, axis=1)
    return edges[:, edges[0] != edges[1]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where nodes.csv and edges.csv are written")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    is_fraud = rng.random(ACCOUNTS) < FRAUD_SHARE
    options.folder.mkdir(parents=True, exist_ok=True)
    nodes = accounts(is_fraud, rng)
    csv.write_csv(nodes, options.folder / "nodes.csv")
    source, target = transfers(is_fraud, rng)
    names = nodes["id"].to_numpy(zero_copy_only=False)
    edges = pa.table({"source": names[source], "target": names[target]})
    csv.write_csv(edges, options.folder / "edges.csv")
    print(f"{int(is_fraud.sum())} of {ACCOUNTS} accounts are fraudulent: {options.folder}")


if __name__ == "__main__":
    main()
