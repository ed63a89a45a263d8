"""One experiment, several processes: the first one keeps the run folder, the others train along."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch.distributed as dist

from nfgnn.data import split
from nfgnn.errors import UserError
from nfgnn.nn.models import Scalable, find_model
from nfgnn.run_progress import RunDisplay
from nfgnn.store import Store
from nfgnn.training.config import RunConfig
from nfgnn.training.device import resolve_device
from nfgnn.training.distributed import Processes, restarted
from nfgnn.training.run_folder import Experiment, checkpoint_of, classifier_of, run_experiment

_END = -1


def run_in_processes(
    experiment: Experiment, folder: Path, resume: bool = False, workers: int | None = None
) -> dict[str, Any] | None:
    """:func:`run_experiment` with its progress shown, in the first process of a group; ``None`` in the others.

    Processes that ``torchrun`` has started again after one of them died resume.
    """
    processes = Processes.current()
    if processes.count > 1 and not issubclass(find_model(experiment.config.model).model, Scalable):
        raise UserError(
            f"{experiment.config.model} is trained by one process: use a Scalable… model, or start it without torchrun"
        )
    experiment.check()
    try:
        return _lead_or_follow(experiment, folder, resume, processes, workers)
    except RuntimeError as error:
        if processes.count > 1 and (
            "gloo" in str(error) or isinstance(error, dist.DistBackendError)
        ):
            raise UserError(
                f"another process of the {processes.count} has ended, so this one ends too: see what that one said; "
                "--resume goes on from the last checkpoint, and `torchrun --max-restarts N` does so by itself"
            ) from None
        raise


def _lead_or_follow(
    experiment: Experiment, folder: Path, resume: bool, processes: Processes, workers: int | None
) -> dict[str, Any] | None:
    device = resolve_device(experiment.device)
    if processes.first:
        label = f"{experiment.config.model} on {experiment.data.get('name') or 'graph'}"
        with RunDisplay(label) as display:
            summary = run_experiment(experiment, folder, display, resume or restarted(), workers)
        processes.agree(_END, device)
        return summary
    while (seed := processes.agree(_END, device)) != _END:
        graph = split(experiment.data, experiment.protocol, seed)
        classifier_of(experiment, seed).fit(graph, checkpoint=checkpoint_of(folder, seed))
    return None


def plain(experiment: Experiment, store: Path) -> dict[str, Any]:
    """An experiment on a store as plain values, for a process on another machine."""
    return {
        "store": str(store.resolve()),
        "protocol": experiment.protocol,
        "seeds": list(experiment.seeds),
        "config": experiment.config.to_dict(),
        "source": experiment.source,
    }


def from_plain(values: Mapping[str, Any], device: str) -> Experiment:
    """The inverse of :func:`plain`."""
    data, config = Store.open(values["store"]).labels(), RunConfig.from_dict(values["config"])
    return Experiment(data, values["protocol"], values["seeds"], config, device, values["source"])
