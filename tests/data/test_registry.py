"""The registry of data sets."""

import pytest

from nfgnn.data import REGISTRY, Entry, canonical_name, dataset_names


@pytest.mark.parametrize("name", sorted(dataset_names()))
def test_names_are_forgiving(name: str) -> None:
    for spelling in (
        name.upper(),
        name.replace("-", "_"),
        name.replace("-", " ").title(),
        f" {name} ",
    ):
        assert canonical_name(spelling) == name


def test_entries_are_complete() -> None:
    for entry in REGISTRY.values():
        assert isinstance(entry, Entry)
        assert entry.metric in ("accuracy", "roc_auc")
        assert entry.source
        assert entry.licence
        assert entry.megabytes > 0
        assert all(url.startswith("http") for url in entry.urls.values())
