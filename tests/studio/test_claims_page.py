"""The ledger as a page: rows are run, cancelled, and come out as on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opening import Opened

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def studio(empty_studio: Opened) -> Opened:
    """Claims need no runs."""
    return empty_studio


def test_rows_are_run_one_after_the_other_and_equal_the_command_line(open_page: Callable[..., Any]) -> None:
    page = open_page("/claims")
    page.get_by_role("button", name="Run E6").click()
    page.get_by_role("button", name="Run C1").click()
    command = [sys.executable, "-m", "inkling", "claims", "E6", "C1", "--json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for row in rows:
        place = page.get_by_test_id(f"claim-{row['id']}")
        place.get_by_role("status").get_by_text(row["verdict"], exact=True).wait_for()
        assert place.locator(".claim-outcome").get_by_text(row["measured"], exact=True).is_visible()
        shown = place.locator(".claim-figures tbody tr").all()
        assert [[cell.inner_text() for cell in line.locator("td").all()] for line in shown] == [
            [name, format(value, ".10g")] for name, value in row["figures"].items()
        ]
    pictures = page.get_by_test_id("claim-E6").locator(".exhibit svg")
    assert pictures.count() >= 1
    assert page.get_by_text("2 of 31 rows run").is_visible()

    again = open_page("/claims")  # what was run is there for as long as the studio is
    again.get_by_test_id("claim-C1").get_by_role("status").get_by_text("holds", exact=True).wait_for()


def test_the_derivation_stands_beside_the_code_that_checks_it(open_page: Callable[..., Any]) -> None:
    page = open_page("/claims", width=390)
    place = page.get_by_test_id("claim-A2")
    head = place.get_by_role("button", expanded=False)
    head.focus()
    page.keyboard.press("Enter")
    assert "∂J/∂θ = (Σᵢ yᵢ) softmax(θ) − y" in place.get_by_label("Derivation: inkling.models.gradients").inner_text()
    code = place.get_by_label("Code: inkling.claims.gradients.cross_entropy_gradient").inner_text()
    assert code.startswith("def cross_entropy_gradient(context: Context) -> Finding:")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_long_row_is_cancelled_and_one_that_needs_data_says_so(open_page: Callable[..., Any]) -> None:
    page = open_page("/claims")
    place = page.get_by_test_id("claim-F3")
    page.get_by_role("button", name="Run F3").click()
    place.get_by_role("status").get_by_text("running").wait_for()
    assert page.get_by_role("progressbar", name="Running").is_visible()
    page.get_by_role("button", name="Cancel F3").click()
    place.get_by_text("This was cancelled.").wait_for()
    page.get_by_role("progressbar", name="Running").wait_for(state="hidden")
    needing = page.get_by_test_id("claim-A5")
    assert needing.get_by_role("button", name="Run A5").is_disabled()
    needing.get_by_role("button", expanded=False).click()
    needing.get_by_text("This row needs a folder of data with ptb/ and glove/. Give it with").wait_for()
    assert needing.get_by_text("inkling studio --data DIR").is_visible()
