"""The configurations that a search trains first, in the order in which it trains them.

``portfolio.toml`` is the list that ships. Its configurations complement each other: greedy
selection from recorded runs made it (:mod:`nfgnn.paper.search.portfolio_selection`). A file of the
same form may replace it::

    [[configuration]]
    model = "GCN"
    features = "row"
    lr = 0.01

Settings that a table leaves out have the defaults of the model. No preset of a named graph counts.
Metric and selection rule depend on the graph: whoever trains a configuration sets them.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from nfgnn.auto.result import BOTH, FEATURES, LINKS
from nfgnn.errors import UserError
from nfgnn.files import expand_user, require_regular_file
from nfgnn.nn import find_model
from nfgnn.training import RunConfig

_SHIPPED = "portfolio.toml"
PORTFOLIO_TABLE = "configuration"
"""Name of the tables of a portfolio file, one per configuration."""
_MAX_BYTES = 2**20


@dataclass(frozen=True)
class PortfolioEntry:
    """A configuration of the portfolio."""

    config: RunConfig
    family: str
    """:data:`~nfgnn.auto.FEATURES`, :data:`~nfgnn.auto.LINKS` or :data:`~nfgnn.auto.BOTH`."""


def load_portfolio(path: Path | None = None) -> list[PortfolioEntry]:
    """Return the configurations of a portfolio file, in its order.

    Args:
        path: a file of the user; the portfolio that ships by default.
    """
    if path is None:
        text = (files(__package__) / _SHIPPED).read_text(encoding="utf-8")
        return _entries(text, _SHIPPED)
    place = expand_user(path)
    if not place.exists():
        raise UserError(f"portfolio file {path} does not exist: check the path")
    require_regular_file(place)
    if place.stat().st_size > _MAX_BYTES:
        raise UserError(f"{path}: is too large for a portfolio; check the path")
    try:
        text = place.read_text(encoding="utf-8")
    except ValueError as error:
        raise UserError(f"{path}: is not a text file: {error}; check the path") from None
    return _entries(text, str(path))


def first_configuration(settings: Mapping[str, Any]) -> RunConfig | None:
    """Return the first configuration of the portfolio, overridden by ``settings``.

    ``None`` if its model does not have one of them.
    """
    config = load_portfolio()[0].config
    own = config.settings()
    if not settings.keys() <= own.keys():
        return None
    return RunConfig.resolve(config.model, {**own, **settings}, None, None, "none")


def model_family(model: str) -> str:
    """Return what a model reads: the features, the edges, or both."""
    constructor = find_model(model).model
    if not constructor.reads_edges:
        return FEATURES
    return BOTH if constructor.reads_features else LINKS


def _entries(text: str, name: str) -> list[PortfolioEntry]:
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: is not valid TOML: {error}; correct it") from None
    tables = content.pop(PORTFOLIO_TABLE, [])
    if content or not isinstance(tables, list) or not tables:
        raise UserError(
            f"{name}: a portfolio has one table [[{PORTFOLIO_TABLE}]] per configuration, no more"
        )
    entries: list[PortfolioEntry] = []
    for number, table in enumerate(tables, start=1):
        try:
            entry = _entry(table)
        except UserError as error:
            raise UserError(f"{name}, configuration {number}: {error}") from None
        if entry in entries:
            raise UserError(f"{name}, configuration {number}: is a duplicate; remove it")
        entries.append(entry)
    return entries


def _entry(table: Any) -> PortfolioEntry:
    settings = dict(table) if isinstance(table, dict) else {}
    model = settings.pop("model", None)
    if not isinstance(model, str):
        raise UserError('the model is missing; add one, such as model = "GCN"')
    config = RunConfig.resolve(model, settings, None, None, "none")
    return PortfolioEntry(config, model_family(config.model))
