"""Interpretation of generated graphs whose pattern is known."""

from typing import Any

import pytest

from nfgnn.data import mixed_graph
from nfgnn.explain import analyze_graph


@pytest.mark.parametrize(
    ("options", "kind", "room"),
    [
        ({"homophily": (0.8, 0.0)}, "mixed", "clear"),
        ({"homophily": (0.45, 0.45)}, "weakly homophilic", "little"),
        ({"homophily": (0.9, 0.9)}, "homophilic", "little"),
        ({"homophily": (0.0, 0.0)}, "heterophilic", "little"),
        ({"shares": (0, 0, 1)}, "indifferent", "little"),
    ],
)
def test_kind_and_room(options: dict[str, Any], kind: str, room: str) -> None:
    words = analyze_graph(mixed_graph(1500, seed=3, **options))["words"]
    assert (words["kind"], words["room"]) == (kind, room)
    assert "Room is not a guaranteed gain" in words["advice"]
