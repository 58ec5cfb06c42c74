"""Write as a person uses it: what appears is what the command line writes, and every token can be changed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest
from opening import Opened
from typer.testing import CliRunner

from inkling.cli.app import app

pytestmark = pytest.mark.browser

QUICK_HAND = """() => {
    const stop = [...document.querySelectorAll("button")].find((button) => button.textContent.includes("Stop"));
    new MutationObserver(() => stop.disabled || stop.click()).observe(stop, { attributes: true });
}"""  # presses Stop as soon as it can be pressed: 5,000 tokens are soon written


def choose(page: Any, name: str) -> None:
    page.get_by_role("combobox", name="Run").click()
    page.locator(".q-menu").get_by_role("option", name=name, exact=True).last.click()


def written(page: Any) -> str:
    """What stands there when the model has ended."""
    page.get_by_role("button", name="Stop").and_(page.locator(":disabled")).wait_for()
    page.get_by_role("button", name="Write").and_(page.locator(":enabled")).wait_for()
    group = page.get_by_role("group", name="What was written")
    text: str = group.evaluate("text => [...text.querySelectorAll('.run > span')].map(s => s.textContent).join('')")
    return text.replace("↵\n", "\n")


def sampled(line: str, studio: Opened) -> Any:
    """What a command that the page shows writes."""
    words = shlex.split(line)
    assert words[:2] == ["inkling", "sample"]
    assert words[2].startswith("runs/")
    done = CliRunner().invoke(app, ["sample", str(studio.folder.parent / words[2]), *words[3:], "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)[0]


def test_what_is_written_equals_the_command_line_and_branches_go_on_from_another_token(
    open_page: Callable[..., Any], studio: Opened
) -> None:
    page = open_page("/write")
    choose(page, "gru-world")
    page.get_by_label("Prompt").fill("The baker")
    page.get_by_label("Temperature", exact=True).fill("0.8")
    page.get_by_label("Top-k", exact=True).fill("12")
    page.get_by_label("Min-p", exact=True).fill("0.01")
    page.get_by_label("Repetition penalty", exact=True).fill("1.1")
    page.get_by_label("Tokens", exact=True).fill("120")
    page.get_by_label("Seed").fill("7")
    page.get_by_label("Stop before").fill("zq")
    page.get_by_role("button", name="Write").click()
    page.get_by_test_id("summary").get_by_text("120 tokens").wait_for()
    first = written(page)
    command = page.get_by_label("The same as a command").inner_text()
    wanted = sampled(
        "inkling sample runs/gru-world --prompt 'The baker' --temperature 0.8 --top-k 12 --min-p 0.01 "
        "--repetition-penalty 1.1 --tokens 120 --seed 7 --stop zq",
        studio,
    )
    assert first == wanted["text"]
    assert first == sampled(command, studio)["text"]

    text = page.get_by_role("group", name="What was written")
    place = 21  # the prompt is piece 0
    text.locator(".run > span").nth(place).hover()
    text.locator(".choice.chosen").wait_for()
    assert text.locator(".choice.chosen span").first.inner_text().replace("↵", "\n") == first[8 + place]
    text.locator(".run > span").nth(place).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="which was drawn").wait_for()
    assert dialog.get_by_role("button", name="which was drawn").is_disabled()
    other = dialog.locator(".write-choice:enabled").first
    letter = other.locator(".write-token").inner_text().replace("↵", "\n")
    other.click()
    page.get_by_text("from 1: “").wait_for()
    page.get_by_test_id("summary").get_by_text("141 tokens").wait_for()
    second = written(page)
    assert second[: 8 + place] == first[: 8 + place]
    assert second[8 + place] == letter != first[8 + place]
    assert second == sampled(page.get_by_label("The same as a command").inner_text(), studio)["text"]

    page.get_by_role("listitem").filter(has_text="seed 7").click()
    page.get_by_test_id("summary").get_by_text("120 tokens").wait_for()
    assert written(page) == first, "a draft can be gone back to"


def test_writing_is_stopped_and_the_likeliest_is_branched_from_with_the_keyboard(
    open_page: Callable[..., Any], studio: Opened
) -> None:
    page = open_page("/write", width=390)
    choose(page, "gru-world")
    page.get_by_label("Tokens", exact=True).fill("5000")
    page.get_by_role("slider", name="Temperature, as a slider").locator("[tabindex='0']").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("document.querySelector('[aria-label=Temperature]').value === '0.95'")
    page.evaluate(QUICK_HAND)
    page.get_by_role("button", name="Write").click()
    page.locator(".run > span").first.wait_for()
    first = written(page)
    summary = page.get_by_test_id("summary").inner_text()
    assert 0 < int(summary.split(" ")[0].replace(",", "")) < 5000
    assert "--temperature 0.95" in page.get_by_label("The same as a command").inner_text()
    whole = sampled("inkling sample runs/gru-world --tokens 5000 --temperature 0.95", studio)["text"]
    assert whole.startswith(first)

    text = page.get_by_role("group", name="What was written")
    page.get_by_label("Tokens", exact=True).fill("10")
    text.focus()
    for _ in range(4):  # to the first piece, then three on
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").locator(".write-choice:enabled").first.focus()
    page.keyboard.press("Enter")
    page.get_by_test_id("summary").get_by_text("14 tokens").wait_for()
    pieces = text.locator(".run > span")
    assert pieces.count() == 14
    before = "".join(pieces.nth(i).text_content() for i in range(3)).replace("↵\n", "\n")
    assert first.startswith(before)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_setting_that_cannot_be_is_said_in_words(open_page: Callable[..., Any]) -> None:
    page = open_page("/write")
    page.get_by_label("Top-p", exact=True).fill("1.5")
    page.get_by_role("button", name="Write").click()
    page.get_by_text("Sampling cannot use top-p 1.5: give 0 < top-p ≤ 1.").wait_for()
    page.get_by_label("Top-p", exact=True).fill("")
    page.get_by_role("button", name="Write").click()
    page.get_by_text("Top-p is empty; give a number.").wait_for()


def test_without_runs_both_pages_say_what_to_do(browser: Any, empty_studio: Opened) -> None:
    page = browser.new_context().new_page()
    page.goto(empty_studio.address)
    for path, words in (("/write", "inkling train gru world.txt"), ("/compare", "inkling train bigram world.txt")):
        page.goto(empty_studio.root + path)
        page.get_by_text(words).wait_for()
    page.context.close()
