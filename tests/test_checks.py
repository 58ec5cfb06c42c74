"""That the checks are run as they are meant to be."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def shared() -> str:
    return "made once"


def test_what_shares_a_fixture_goes_to_one_worker(request: pytest.FixtureRequest, shared: str) -> None:
    """Some pairs of pytest and pytest-xdist forget groups without a word, and everything shared is made twice."""
    groups = [mark.args[0] for mark in request.node.iter_markers("xdist_group")]
    assert groups == ["tests/test_checks.py"]
    if hasattr(request.config, "workerinput"):
        assert request.node.nodeid.endswith(f"@{groups[0]}")
