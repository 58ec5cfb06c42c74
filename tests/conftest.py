"""Who is checked beside whom, and when: what tests share is made once, so they go to one worker."""

from __future__ import annotations

import os

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # beside others: two threads each on the same cores would wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("xdist_group") is not None:
            continue
        if item.get_closest_marker("browser") is not None:  # their runs and their browser
            item.add_marker(pytest.mark.xdist_group("browser"))
        elif isinstance(item, pytest.Function) and _shares(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))

    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """What takes longest begins, so that no worker waits for it in the end."""
    return 0 if item.path.name == "test_readme.py" else 1 if item.get_closest_marker("browser") is not None else 2


def _shares(item: pytest.Function) -> bool:
    """Whether a fixture of its module is made for several tests."""
    known = item._fixtureinfo.name2fixturedefs
    return any(found.scope == "module" for name in item.fixturenames for found in known.get(name, ()))
