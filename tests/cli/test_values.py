"""Values that users type."""

import pytest

from nfgnn.cli import values
from nfgnn.errors import UserError


def test_columns_become_arguments_of_load_dataset() -> None:
    assert values.columns(None) == {}
    assert values.columns(["label=class", "drop=a", "drop=b"]) == {
        "label_column": "class",
        "drop_columns": ("a", "b"),
    }


def test_numbers_and_words() -> None:
    assert values.numbers("0-3,7") == [0, 1, 2, 3, 7]
    assert values.words("texas, cornell,") == ["texas", "cornell"]
    assert values.words(None) is None


def test_settings_are_toml_and_bare_words_are_strings() -> None:
    items = ["K=5", "lr = 1e-2", "basis=bernstein", "link=true", 'gate="term"', "init=a b"]
    assert values.settings(items) == {
        "K": 5,
        "lr": 0.01,
        "basis": "bernstein",
        "link": True,
        "gate": "term",
        "init": "a b",
    }


def test_settings_may_be_written_as_in_python() -> None:
    items = ["a=True", "b=False", "c=.5", "d=-1.", "e=1.E-3", "f=.", "g=true story", "h=1.2.3"]
    assert values.settings(items) == {
        "a": True,
        "b": False,
        "c": 0.5,
        "d": -1.0,
        "e": 0.001,
        "f": ".",
        "g": "true story",
        "h": "1.2.3",
    }


@pytest.mark.parametrize(
    ("parse", "given", "message"),
    [
        (values.columns, ["label"], "use ROLE=NAME"),
        (values.columns, ["lable=class"], "did you mean label"),
        (values.numbers, "a-b", "a range such as 0-9"),
        (values.settings, ["=5"], "use --set KEY=VALUE"),
    ],
)
def test_invalid_values_are_explained(parse, given, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(given)


def test_command_leaves_out_what_was_not_given() -> None:
    assert values.command("tune", "texas", model="MLP", runs=None) == "nfgnn tune texas --model MLP"
