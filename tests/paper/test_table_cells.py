"""Paired tests of hand-made records."""

import pytest
from scipy.stats import ttest_rel

from nfgnn.paper.reproduce import Found
from nfgnn.paper.table_cells import make_tables
from nfgnn.paper.table_plan import Plan


def test_the_test_is_on_common_splits_and_corrected_over_the_graphs(
    full: tuple[Plan, Found],
) -> None:
    (table,) = make_tables(*full, "c")
    texas, cornell = (t for t in table.tests if t.model == "NFGNN (best)")
    assert (texas.result.runs, cornell.result.runs) == (3, 2)
    ps = [
        ttest_rel([0.90, 0.92, 0.95], [0.90, 0.91, 0.92]).pvalue,
        ttest_rel([0.85, 0.86], [0.86, 0.88]).pvalue,
    ]
    assert [texas.result.p, cornell.result.p] == pytest.approx(ps)
    assert min(texas.p_holm, cornell.p_holm) == pytest.approx(min(1, 2 * min(ps)))
    assert max(texas.p_holm, cornell.p_holm) == pytest.approx(max(2 * min(ps), max(ps)))
    (paper_form,) = (
        t for t in table.tests if t.model == "NFGNN (paper form)"
    )  # no run of it on Cornell
    assert paper_form.against == "MLP"
    assert paper_form.p_holm == paper_form.result.p
