"""Leave out models that need more memory than there is, before the system ends the process."""

from torch_geometric.data import Data

from nfgnn.data import available_memory
from nfgnn.training import RunConfig

_BYTES = 4 * 4
"""Of a hidden value: its activation, its gradient, and those of dropout and normalisation."""
_USUAL_WIDTH = 64


def lacking_memory(config: RunConfig, data: Data) -> str | None:
    """Return why a model does not fit into the memory; ``None`` if it probably does.

    The estimate counts the hidden values of all nodes in all layers and filter terms. Training on
    parts of the graph needs less, but it is not part of a search.
    """
    needed = expected_bytes(config, data)
    available = available_memory()
    if needed <= available:
        return None
    return (
        f"needs about {needed / 2**30:,.1f} GiB of memory, but only {available / 2**30:,.1f} GiB "
        "are available; train it on parts of the graph (nfgnn train --set partitions=10)"
    )


def expected_bytes(config: RunConfig, data: Data) -> int:
    """Estimate the memory of a training from the sizes of the graph and of the model."""
    settings = config.settings()
    width = int(settings.get("hidden_channels") or _USUAL_WIDTH)
    layers = int(settings.get("num_layers") or 1)
    terms = int(settings.get("K") or 0)
    return _BYTES * int(data.num_nodes) * width * (layers + terms + 1)
