"""The names that options accept are those of the registries."""

from nfgnn.cli import names
from nfgnn.data import PROTOCOLS, SCALINGS, dataset_names
from nfgnn.nn import MODELS
from nfgnn.paper import FIRST_REPORT_SEED, TABLES
from nfgnn.spectral import BASES
from nfgnn.store.file_format import DTYPES
from nfgnn.training.presets import KINDS


def test_names_are_those_of_the_registries() -> None:
    assert tuple(dataset_names()) == names.DATASETS
    assert tuple(sorted(MODELS)) == names.MODELS
    assert tuple(PROTOCOLS) == names.PROTOCOLS
    assert tuple(BASES) == names.BASES
    assert tuple(SCALINGS) == names.SCALINGS
    assert tuple(DTYPES) == names.DTYPES
    assert tuple(TABLES) == names.ITEMS
    assert tuple(KINDS) == names.PRESETS
    assert names.FIRST_REPORT_SEED == FIRST_REPORT_SEED
