"""Packing and rendering of the explorer page."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.explorer_runs import NASTY, synthetic_table
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nfgnn.errors import UserError
from nfgnn.explain import write_explorer
from nfgnn.explain.explorer.page import pack_codes, pack_numbers, page_content, render
from nfgnn.explain.explorer.sample import sample_nodes


def unpacked(packed: dict) -> np.ndarray:
    codes = np.frombuffer(base64.b64decode(packed["data"]), f"<{packed['type']}")
    if "low" not in packed:
        return codes
    table = codes.reshape(-1, len(packed["low"])).astype(float)
    return np.where(
        table == 65535, np.nan, np.array(packed["low"]) + np.array(packed["step"]) * table
    )


@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 20), st.integers(1, 4)),
        elements=st.floats(-1e6, 1e6, width=32),
    )
)
@settings(max_examples=50, deadline=None)
def test_numbers_survive_packing(values: np.ndarray) -> None:
    values[0, 0] = np.nan
    back = unpacked(pack_numbers(values))
    np.testing.assert_array_equal(np.isnan(back), np.isnan(values))
    finite = np.where(np.isnan(values), 0, values).astype(float)
    spread = np.nan_to_num(np.nanmax(finite, 0) - np.nanmin(finite, 0))
    assert (np.abs(np.nan_to_num(back - values)) <= spread / 131_068 * 1.001 + 1e-9).all()


@given(st.lists(st.integers(0, 2**32 - 1), max_size=30))
@settings(max_examples=50, deadline=None)
def test_codes_survive_packing(values: list[int]) -> None:
    np.testing.assert_array_equal(unpacked(pack_codes(np.array(values, dtype=np.int64))), values)


def test_sampled_page_counts_all_nodes() -> None:
    table = synthetic_table(300)
    whole = page_content(table, sample_nodes(table.edge_index, 300, 300))
    sampled = page_content(table, sample_nodes(table.edge_index, 300, 50))
    for key in ("bins", "numNodes", "numEdges", "numWithoutHomophily"):
        assert whole[key] == sampled[key]
    assert whole["runs"][0]["accuracy"] == sampled["runs"][0]["accuracy"]
    assert whole["runs"][0]["filters"]["mean"] == sampled["runs"][0]["filters"]["mean"]
    nodes = unpacked(sampled["node"])
    np.testing.assert_array_equal(unpacked(sampled["label"]).astype(int) - 1, table.label[nodes])
    np.testing.assert_allclose(
        unpacked(sampled["runs"][0]["filters"]["psi"]),
        table.runs[0].filters.psi[nodes[:50]],
        atol=1e-4,
    )


def test_names_cannot_break_the_file() -> None:
    table = synthetic_table(30)
    table.class_names[0] = NASTY
    text = render(page_content(table, sample_nodes(table.edge_index, 30, 30)))
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["classNames"][0] == NASTY
    assert "<b>" not in text
    assert text.count("<script") == 2
    assert not re.search(r"(src|href)=\"?(https?:)?//", text)


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        write_explorer(synthetic_table(30), tmp_path / "missing" / "x.html")
