"""Knowledge in a browser: answers, what the corpus says and how far to believe them, as on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opening import Opened

pytestmark = pytest.mark.browser


def said(folder: Path, *arguments: str, given: str = "") -> Any:
    command = [sys.executable, "-m", "inkling", *arguments, "--json"]
    return json.loads(
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, input=given).stdout
    )


def test_a_question_is_answered_as_on_the_command_line_and_the_corpus_is_heard(
    open_page: Callable[..., Any], studio: Opened
) -> None:
    folder = studio.folder.parent
    page = open_page("/knowledge")
    page.get_by_text("Corpus: lives.txt, as it was in the training").wait_for()
    question, truth = (folder / "lives.questions.tsv").read_text().splitlines()[0].split("\t")
    box = page.get_by_label("Question")
    assert box.input_value() == question
    box.press("Enter")
    expected = said(folder, "answer", "runs/lives", "-", "--beam", "3", given=question)
    page.get_by_test_id("confidence").get_by_text("% sure").wait_for()
    answer = expected["answer"]
    assert page.get_by_test_id("answer").inner_text() == answer
    shown = page.locator(".knowledge-bars .name").all_inner_texts()
    assert shown == [answer, *(other["answer"] for other in expected["others"])]
    bars = [
        float(bar.get_attribute("aria-valuenow")) for bar in page.locator(".knowledge-bars .q-linear-progress").all()
    ]
    assert bars == pytest.approx([expected["confidence"], *(other["confidence"] for other in expected["others"])], 1e-4)
    known = "and this answer" if answer == truth else f"with the answer “{truth}”"
    assert page.get_by_text(f"The training pairs have this question, {known}.").is_visible()

    name = question.removeprefix("Where was ").removesuffix(" born?")
    lines = (folder / "lives.txt").read_text().splitlines()
    found = [line for line in lines if name in line]
    assert page.get_by_label("Name to look for").input_value() == name
    heard = page.get_by_test_id("heard")
    heard.get_by_text(f"{len(found)} of {len(lines)} lines of lives.txt").wait_for()
    beside = any(answer in line for line in found)
    assert ("bears the answer out" in heard.inner_text()) == beside
    assert page.get_by_label("Line 1 with the name").inner_text() == found[0]


def test_accuracy_against_confidence_is_that_of_the_command_line(open_page: Callable[..., Any], studio: Opened) -> None:
    folder = studio.folder.parent
    page = open_page("/knowledge")
    page.get_by_text("Asked: lives.questions.tsv, which it learned from").wait_for()
    page.locator("input[type=file]").nth(1).set_input_files(folder / "lives.held-out.tsv")
    page.get_by_text("Asked: lives.held-out.tsv", exact=True).wait_for()
    page.get_by_role("button", name="Measure").click()
    corpus = ("--corpus", "lives.txt")
    expected = said(folder, "evaluate", "runs/lives", "--pairs", "lives.held-out.tsv", *corpus)
    measured = page.get_by_test_id("measured")
    for sentence in [*expected["sentences"], *expected["notes"]]:
        measured.get_by_text(sentence, exact=True).first.wait_for()
    for figure in ("exact_match", "mean_confidence"):
        assert page.get_by_text(f"{100 * expected[figure]:.1f} %", exact=True).count() >= 1
    assert measured.get_by_role("heading", name="Accuracy against confidence: lives").is_visible()
    assert measured.locator("svg").count() >= 3


def test_a_model_that_never_saw_a_question_says_so(open_page: Callable[..., Any]) -> None:
    page = open_page("/knowledge", width=390)
    page.get_by_text("as it was in the training").wait_for()
    page.get_by_label("Model").click()
    page.get_by_role("option", name="gpt-world (was not taught to answer)").click()
    page.get_by_text("it never saw where a question ends").wait_for()
    page.get_by_label("Question").fill("Where is the baker?")
    page.get_by_role("button", name="Ask").click()
    page.get_by_text("no token for the mark between question and answer").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
