"""Labels of any kind keep their names and their order."""

import numpy as np
import pyarrow as pa
import pytest

from nfgnn.data.labels import encode_labels
from nfgnn.errors import UserError

CASES = {
    "integers": (np.array([10, 2, 10, -1]), [1, 0, 1, -1], ["2", "10"]),
    "whole floats with a gap": (np.array([1.0, np.nan, 0.0]), [1, -1, 0], ["0", "1"]),
    "booleans": (np.array([True, False]), [1, 0], ["False", "True"]),
    "numbers as text, ordered as numbers": (["10", "9", "", "9.0"], [1, 0, -1, 0], ["9", "10"]),
    "a leading zero": (["01", "1", "1"], [0, 1, 1], ["01", "1"]),
    "a sign": (["+1", "1", "2"], [0, 1, 2], ["+1", "1", "2"]),
    "an underscore": (["1_0", "10"], [1, 0], ["10", "1_0"]),
    "an exponent": (["1e3", "1000"], [1, 0], ["1000", "1e3"]),
    "other digits": (["٣", "3"], [1, 0], ["3", "٣"]),
    "leading zeros and unlabelled": (["02", "-1", "01"], [1, -1, 0], ["01", "02"]),
    "beyond the precision of floats": (
        np.array([2**53 + 1, 2**53]),
        [1, 0],
        ["9007199254740992", "9007199254740993"],
    ),
    "text": (["b", "a", None, "NA", " b "], [1, 0, -1, -1, 1], ["a", "b"]),
    "text and numbers": (["b", "1"], [1, 0], ["1", "b"]),
    "several types": (["b", 1, None], [1, 0, -1], ["1", "b"]),
    "unicode": (["żółw", "猫"], [0, 1], ["żółw", "猫"]),
    "arrow dictionary": (pa.array(["x", None, "y"]).dictionary_encode(), [0, -1, 1], ["x", "y"]),
    "chunks": (pa.chunked_array([["x"], ["y", "x"]]), [0, 1, 0], ["x", "y"]),
    "all missing": ([None, None], [-1, -1], []),
    "numpy text": (np.array(["q", "p"]), [1, 0], ["p", "q"]),
}


@pytest.mark.parametrize("case", CASES)
def test_numbered(case: str) -> None:
    values, y, names = CASES[case]
    encoded, found = encode_labels(values, "here")
    assert encoded.tolist() == y
    assert encoded.dtype == np.int64
    assert found == names


def test_a_quantity_is_no_class() -> None:
    with pytest.raises(UserError, match=r"here: the label in row 2 is 0\.5"):
        encode_labels(["1", "0.5"], "here")
