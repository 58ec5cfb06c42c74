"""The servers of these tests, each started once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Served, build_runs, serving


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve")
    build_runs(folder)
    return folder


@pytest.fixture(scope="session")
def server(runs: Path) -> Iterator[Served]:
    with serving(runs) as served:
        yield served
