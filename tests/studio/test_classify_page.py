"""Classify in a browser: verdicts, reasons and mistakes are those of the command line, and change as somebody types."""

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

TEXT = "The plot was dull and the pace was awful. The music was superb <img src=x onerror=alert(1)>."


def said(folder: Path, *arguments: str, given: str = "") -> Any:
    command = [sys.executable, "-m", "inkling", *arguments, "--json"]
    return json.loads(
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, input=given).stdout
    )


def test_a_verdict_and_its_words_are_those_of_the_command_line(open_page: Callable[..., Any], studio: Opened) -> None:
    page = open_page("/classify")
    page.get_by_label("Text", exact=True).fill(TEXT)
    expected = said(studio.folder.parent, "classify", "runs/dan-reviews", "-", "--why", "--all", given=TEXT)
    verdict = page.get_by_label("Verdict")
    verdict.get_by_text(f"{100 * expected['probability']:.1f} % sure").wait_for()
    assert page.get_by_test_id("verdict").inner_text() == expected["label"]
    for label, probability in expected["probabilities"].items():
        assert verdict.get_by_text(label, exact=True).count() >= 1
        assert verdict.get_by_text(f"{100 * probability:.1f} %", exact=True).is_visible()

    words = page.get_by_label("The text, its words coloured by their effect")
    assert words.inner_text() == TEXT
    strongest = expected["for"][0]
    words.get_by_text(strongest["word"], exact=True).first.hover()
    note = page.locator(".marked-note").inner_text()
    assert note.startswith(f"{strongest['share_nats']:.3f} nats for {expected['label']}")
    assert f"left out alone: {strongest['effect_nats']:+.3f}" in note
    assert page.get_by_text(f"“{expected['decided_by']['text']}”").is_visible()

    page.get_by_label("Text", exact=True).fill("")
    page.get_by_text("The verdict appears here as you type.").wait_for()
    page.get_by_role("button", name="Try a generated review").click()
    verdict.get_by_text("% sure").wait_for()


def test_mistakes_are_found_filtered_opened_and_edited(open_page: Callable[..., Any], studio: Opened) -> None:
    folder = studio.folder.parent
    page = open_page("/classify")
    page.locator("input[type=file]").set_input_files(folder / "test.csv")
    page.get_by_text("Judged by: test.csv").wait_for()
    page.get_by_role("button", name="Find mistakes").click()
    expected = said(folder, "errors", "runs/dan-reviews", "--on", "test.csv")
    mistakes, total = expected["mistakes"], expected["mistake_count"]
    count = page.get_by_test_id("count")
    count.get_by_text(f"{total} of {total} mistakes").wait_for()
    assert page.get_by_test_id("mistakes").inner_text() == str(total)
    assert page.get_by_test_id("texts").inner_text() == str(expected["text_count"])

    for sentence in expected["notes"]:
        assert page.get_by_text(sentence, exact=True).count() == 1

    kind, times = max(expected["reasons"].items(), key=lambda pair: pair[1])
    reason = page.get_by_role("button", name=kind).first
    reason.click()
    count.get_by_text(f"{times} of {total}").wait_for()
    assert reason.get_attribute("aria-pressed") == "true"
    reason.click()
    group = expected["groups"][0]
    page.locator(".classify-group").first.click()
    count.get_by_text(f"{len(group['rows'])} of {total}").wait_for()
    page.locator(".classify-group").first.click()
    page.get_by_label("At least so sure").fill("80")
    sure = sum(one["probability"] >= 0.8 for one in mistakes)
    count.get_by_text(f"{sure} of {total}").wait_for()

    first = mistakes[0]
    page.get_by_role("listitem").first.get_by_text(f"row {first['row']}", exact=True).click()
    page.get_by_test_id("reason").get_by_text(first["reason"], exact=True).wait_for()
    words = expected["most_confident"][0]["words"]
    drawn = page.get_by_label(f"Row {first['row']}, its words coloured")
    loudest = max(words, key=lambda word: abs(word["share_nats"]))
    drawn.get_by_text(loudest["text"], exact=True).first.hover()
    assert "nats for" in drawn.locator(".marked-note").inner_text()

    page.get_by_role("button", name="Edit and see").click()
    box = page.get_by_label("Text", exact=True)
    verdict = page.get_by_test_id("verdict")
    verdict.get_by_text(first["verdict"], exact=True).wait_for()
    assert box.input_value() == expected["most_confident"][0]["text"]
    praise = {"positive": "superb brilliant wonderful", "negative": "awful dull boring"}[first["label"]]
    box.fill(f"{praise}. {praise}.")
    verdict.get_by_text(first["label"], exact=True).wait_for()
    page.get_by_role("button", name="As it was").click()
    verdict.get_by_text(first["verdict"], exact=True).wait_for()
    assert box.input_value() == expected["most_confident"][0]["text"]


def test_a_search_can_be_cancelled_and_a_bad_file_is_said_in_words(open_page: Callable[..., Any]) -> None:
    page = open_page("/classify", width=390)
    start = page.get_by_role("button", name="Find mistakes")
    start.click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel").wait_for(state="hidden")
    assert start.is_enabled()
    page.locator("input[type=file]").set_input_files(
        {"name": "<b>odd.csv", "mimeType": "text/csv", "buffer": b"text,label\nfine,blue\ndull,red\n"}
    )
    page.get_by_text("Judged by: <b>odd.csv").wait_for()
    start.click()
    page.get_by_text("<b>odd.csv has no row with a label that the model knows").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
