"""The page of runs, as a person uses it: start a training, watch it, stop it, let it go on, compare."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opening import Opened, open_studio

pytestmark = pytest.mark.browser


def start(page: Any, minutes: str, kind: str | None = None) -> None:
    page.get_by_role("button", name="New training").click()
    if kind is not None:
        page.get_by_label("Kind of model").click()
        page.get_by_role("option", name=kind).click()
    page.get_by_label("Minutes").fill(minutes)
    page.get_by_role("button", name="Start training").click()


def test_a_training_goes_from_the_form_to_a_finished_run(open_page: Callable[..., Any], studio: Opened) -> None:
    page = open_page("/")
    start(page, "0.15")
    page.get_by_text("is getting ready").first.wait_for()
    page.locator("[data-testid=figure-state]", has_text="running").wait_for(timeout=60_000)
    page.locator("[data-testid=figure-left]").wait_for()
    page.locator("[data-testid=figure-state]", has_text="finished").wait_for(timeout=60_000)
    page.locator("[data-testid=sample]:not(:empty)").wait_for()
    (made,) = [path for path in studio.folder.iterdir() if path.name.startswith("gpt-world-")]
    info = json.loads((made / "run.json").read_text())
    assert info["state"] == "finished"
    shown = page.locator("[data-testid=figure-held-out]").inner_text()
    nats = json.loads((made / "metrics.jsonl").read_text().splitlines()[-1])["held_out_nats_per_token"]
    bits = nats / 0.6931471805599453 / info["units"]["bytes_per_token"]
    assert float(shown) == pytest.approx(bits, abs=5e-4)
    assert page.locator("tr", has_text=made.name).locator(".state").inner_text() == "finished"


def test_a_training_outlives_its_page_and_is_stopped_and_resumed(open_page: Callable[..., Any], studio: Opened) -> None:
    page = open_page("/")
    start(page, "3", kind="recurrent model")
    page.locator("[data-testid=figure-state]", has_text="running").wait_for(timeout=60_000)
    page.context.close()
    page = open_page("/")
    page.locator("tr", has_text="running").first.click()
    page.get_by_role("button", name="Stop and keep").click()
    page.locator("[data-testid=figure-state]", has_text="interrupted").wait_for()
    step = int(re.sub(r"\D", "", page.locator("[data-testid=figure-step]").inner_text().split(" of ")[0]))
    assert step > 0
    page.get_by_role("button", name="Resume").click()
    page.locator("[data-testid=figure-state]", has_text="running").wait_for(timeout=60_000)
    page.get_by_role("button", name="Stop and keep").click()
    page.locator("[data-testid=figure-state]", has_text="interrupted").wait_for()


def test_several_runs_share_a_plot_when_they_share_a_unit(open_page: Callable[..., Any]) -> None:
    page = open_page("/")
    for name in ("gru-world", "bigram-world", "gpt-world"):
        page.get_by_role("row", name=re.compile(rf"\b{name}\b(?!-)")).get_by_role("checkbox").click()
    page.get_by_text("3 runs").wait_for()
    page.get_by_text("Bits per byte, lower is better").wait_for()
    page.get_by_role("row", name=re.compile("lives")).get_by_role("checkbox").click()
    page.get_by_text("are left out, because they cannot share an axis").wait_for()


def test_what_is_chosen_while_another_is_read_is_drawn(open_page: Callable[..., Any]) -> None:
    page = open_page("/")
    page.get_by_role("row", name=re.compile("gru-world")).first.wait_for()
    for first, second in (("bigram-world", "gru-world"), ("gru-world", "gpt-world"), ("gpt-world", "bigram-world")):
        page.evaluate(
            """(names) => {
              const rows = [...document.querySelectorAll('.runs-table tbody tr')];
              for (const name of names) rows.find((row) => row.cells[1]?.innerText.trim() === name).click();
            }""",
            [first, second],
        )
        page.locator(".panel .heading", has_text=second).wait_for()
        page.locator("[data-testid=figure-state]", has_text="finished").wait_for()
        page.wait_for_function(
            """() => {
              const canvas = document.querySelector('.live-plot canvas');
              return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean);
            }"""
        )


def test_a_file_that_is_no_table_is_refused_in_words(open_page: Callable[..., Any]) -> None:
    page = open_page("/")
    page.get_by_role("button", name="New training").click()
    page.locator("input[type=file]").first.set_input_files(
        {"name": "<b>notes<b>.csv", "mimeType": "text/csv", "buffer": b"only,one\nrow,here\n"}
    )
    page.locator(".q-field__native", has_text="<b>notes<b>.csv").wait_for()
    page.get_by_label("Kind of model").click()
    page.get_by_role("option", name="classifier").click()
    page.get_by_role("button", name="Start training").click()
    page.get_by_text(re.compile("could not begin")).wait_for(timeout=60_000)
    page.get_by_role("button", name="Dismiss").click()


def test_an_empty_folder_says_what_to_do(browser: Any, tmp_path: Any) -> None:
    with open_studio(tmp_path) as opened:
        page = browser.new_page()
        page.goto(opened.address)
        page.get_by_text("There are no runs in this folder yet").wait_for()
        page.get_by_text("inkling train gpt FILE").wait_for()
        page.close()


def test_two_hundred_runs_stay_smooth(browser: Any, tmp_path: Any, trained: Any) -> None:
    for number in range(200):
        shutil.copytree(trained / "runs/gru-world", tmp_path / f"runs/gru-{number:03d}")
    with open_studio(tmp_path) as opened:
        page = browser.new_page()
        page.goto(opened.address)
        page.locator("tr", has_text="gru-").first.wait_for()
        assert page.locator(".runs-table tbody tr").count() < 120  # only what can be seen is built
        longest = page.evaluate(
            """async () => {
                const table = document.querySelector('.runs-table .q-table__middle');
                let longest = 0, before = performance.now();
                for (let i = 0; i < 60; i++) {
                    table.scrollTop = i * 140;
                    await new Promise(requestAnimationFrame);
                    longest = Math.max(longest, performance.now() - before);
                    before = performance.now();
                }
                return longest;
            }"""
        )
        assert longest < 500  # milliseconds between two pictures while scrolling, on a machine that does other things
        page.close()


def test_what_the_page_says_is_what_the_command_says(open_page: Callable[..., Any], studio: Opened) -> None:
    page = open_page("/")
    listed = subprocess.run(
        [sys.executable, "-m", "inkling", "runs", "list", "--dir", str(studio.folder), "--json"],
        capture_output=True,
        check=True,
    )
    for run in json.loads(listed.stdout):
        name = run["path"].rsplit("/", 1)[-1]
        row = page.get_by_role("row", name=re.compile(rf"\b{re.escape(name)}\b(?!-)"))
        assert row.locator(".state").inner_text() == run["state"]
