"""Cheaper forms of a configuration that takes too much of the time.

A network of half the width takes between a quarter and a half of the time per epoch. The time that
is saved may be worth a second form of twice the depth, which is what residual networks gain from.
"""

from nfgnn.errors import UserError
from nfgnn.training import RunConfig
from nfgnn.training.search_spaces import search_space

LEAST_WIDTH = 64
"""Narrower networks are not tried."""
_LEAST_DEPTH = 2
"""Models of a single layer are not deep networks, so they are not made deeper."""


def cheaper_forms(config: RunConfig) -> list[RunConfig]:
    """Return the configuration with half the width, and with half the width and twice the depth.

    The second form exists if the search space of the model has that depth. Networks that would be
    too narrow have no cheaper form.
    """
    settings = config.settings()
    width = int(settings.get("hidden_channels") or 0) // 2
    if width < LEAST_WIDTH:
        return []
    settings["hidden_channels"] = width
    forms = [settings]
    depth = int(settings.get("num_layers") or 0)
    depths = search_space(config.model, "best", {}).get("num_layers", ())
    if depth >= _LEAST_DEPTH and 2 * depth in depths:
        forms.append({**settings, "num_layers": 2 * depth})
    found = []
    for form in forms:
        try:
            cheaper = RunConfig.resolve(config.model, form, None, None, "none")
            cheaper.build(2, 2, 2)
        except UserError:
            continue
        found.append(cheaper)
    return found
