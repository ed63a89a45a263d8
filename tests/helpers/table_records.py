"""Hand-made records for the tests of tables."""

from nfgnn.paper.table_plan import Plan
from nfgnn.paper.table_registry import Column
from nfgnn.training import Record

SCORES = {
    ("NFGNN (best)", "texas"): [0.90, 0.92, 0.95],
    ("NFGNN (paper form)", "texas"): [0.80, 0.81, 0.82],
    ("MLP", "texas"): [0.90, 0.91, 0.92],
    ("GCN", "texas"): [0.70, 0.75, 0.80],
    ("NFGNN (best)", "cornell"): [0.85, 0.86],  # one run is missing
    ("MLP", "cornell"): [0.86, 0.88, 0.90],
}


def make_record(
    plan: Plan, label: str, column: Column, seed: int, device: str = "cpu", **metrics: float
) -> Record:
    config = plan.configs[label, column].to_dict()
    return Record(column.dataset, "f00d", column.protocol, seed, config, metrics, device, "2 cores")
