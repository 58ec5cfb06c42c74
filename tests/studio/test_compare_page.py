"""Compare as a person uses it: two models on a pasted, handed in or made text; all on one ruler, as on the shell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from opening import Opened
from typer.testing import CliRunner

from inkling.cli.app import app
from inkling.text.grammar import grammar_text

pytestmark = pytest.mark.browser

TEXT = "The baker bakes the loaf in winter.\nSome <b>sailors</b> steer a quiche.\n"


def command(*arguments: str) -> Any:
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def choose(page: Any, label: str, name: str) -> None:
    page.get_by_role("combobox", name=label).click()
    page.locator(".q-menu").get_by_role("option", name=name, exact=True).last.click()


def compare(page: Any, first: str, second: str) -> None:
    choose(page, "First model", first)
    choose(page, "Second model", second)
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_role("group", name=f"as {first} sees it").wait_for()


def pieces(page: Any, label: str) -> list[str]:
    found = page.get_by_role("group", name=label)
    texts: list[str] = found.evaluate("text => [...text.querySelectorAll('.run > span')].map(span => span.textContent)")
    return [text.replace("↵\n", "\n") for text in texts]


def test_two_models_side_by_side_equal_the_command_line(open_page: Callable[..., Any], studio: Opened) -> None:
    pasted = studio.folder.parent / "pasted.txt"
    pasted.write_text(TEXT, encoding="utf-8")
    page = open_page("/compare")
    page.get_by_label("Text to compare on").fill(TEXT)
    compare(page, "gru-world", "bigram-world")

    run, other = str(studio.folder / "gru-world"), str(studio.folder / "bigram-world")
    both = command("surprise", run, str(pasted), "--against", other)
    for side, model in (("first", "gru-world"), ("second", "bigram-world")):
        alone = command("surprise", str(studio.folder / model), str(pasted))
        assert pieces(page, f"as {model} sees it") == [token["text"] for token in alone["tokens"]]
        assert both[side]["bits_per_byte"] == alone["bits_per_byte"]
        assert page.locator(".compare-side").get_by_text(f"{alone['bits_per_byte']:.3f}", exact=True).is_visible()

        text = page.get_by_role("group", name=f"as {model} sees it")
        text.locator("span").nth(4).hover()
        text.locator(".choice").first.wait_for()
        assert text.get_by_text(f"{alone['tokens'][4]['bits']:.2f} bits").is_visible()
        assert text.locator(".choice").count() in (5, 6)
        if not alone["tokens"][4]["unknown"]:
            share = 2.0 ** -alone["tokens"][4]["bits"]
            shown = text.locator(".choice.chosen .number").inner_text()
            assert float(shown.removesuffix(" %")) == pytest.approx(100 * share, abs=0.5)
    saved = f"{abs(both['saved_bits']):,.0f} bits saved in all."
    assert saved in page.locator(".compare-said").inner_text()
    assert page.locator(".compare-sides b").count() == 0, "text is text"

    page.get_by_role("button", name="Who knows more").click()
    by_word = page.get_by_role("group", name="word by word, by who knows more")
    by_word.wait_for()
    assert pieces(page, "word by word, by who knows more") == [unit["text"] for unit in both["units"]]
    shades = by_word.evaluate("text => [...text.querySelectorAll('.run > span')].map(span => span.className)")
    for unit, shade in zip(both["units"], shades, strict=True):
        if abs(unit["saved_bits"]) > 1.01:
            assert shade.startswith("f" if unit["saved_bits"] > 0 else "a")


def test_a_file_that_was_handed_in_is_read_as_the_command_line_reads_it(
    open_page: Callable[..., Any], studio: Opened
) -> None:
    page = open_page("/compare", width=390)
    page.get_by_role("button", name="Hand in a file").click()
    table = studio.folder.parent / "some.csv"
    table.write_text("text\n" + "The baker bakes.\n" * 3 + '"Two\nlines"\n', encoding="utf-8")
    page.set_input_files(
        "input[type=file]", files=[{"name": "../<i>.csv", "mimeType": "", "buffer": table.read_bytes()}]
    )
    page.get_by_text(f"<i>.csv, {table.stat().st_size:,} bytes.").wait_for()
    compare(page, "gpt-world", "ngram-world")
    wanted = command("surprise", str(studio.folder / "gpt-world"), str(table))
    shown = pieces(page, "as gpt-world sees it")
    assert len(shown) == wanted["token_count"]
    assert "".join(shown) == "The baker bakes.\n" * 3 + "Two\nlines\n", "a row a line"
    assert page.locator(".compare-side").get_by_text(f"{wanted['bits_per_byte']:.3f}", exact=True).is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_ten_thousand_tokens_are_there_soon_and_scroll_smoothly(open_page: Callable[..., Any]) -> None:
    page = open_page("/compare")
    page.get_by_role("button", name="Have it made").click()
    page.get_by_label("Words").fill("8500")
    page.get_by_label("Seed").fill("4")
    compare(page, "ngram-world", "bigram-world")
    assert "".join(pieces(page, "as ngram-world sees it")) == grammar_text(np.random.default_rng(4), 8500)
    assert len(pieces(page, "as ngram-world sees it")) > 10_000
    frames = page.evaluate(
        """async () => {
            const box = document.querySelector(".compare-sides");
            let frames = 0;
            for (const start = performance.now(); performance.now() - start < 1000; frames++) {
                box.scrollTop += 40;
                await new Promise(requestAnimationFrame);
            }
            return frames;
        }"""
    )
    assert frames > 12


def test_all_on_one_ruler_equals_evaluate(
    open_page: Callable[..., Any], studio: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page("/compare")
    page.get_by_role("button", name="Have it made").click()
    page.get_by_label("Words").fill("3000")
    page.get_by_label("Seed").fill("9")
    page.get_by_role("tab", name="All on one ruler").click()
    page.get_by_role("combobox", name="Runs").click()
    for option in page.locator(".q-menu").get_by_role("option").all():
        wanted = option.inner_text() in ("ngram-world", "bigram-world")
        if (option.get_attribute("aria-selected") == "true") != wanted:
            option.click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Measure").click()
    page.get_by_role("progressbar", name="Progress").wait_for()
    page.get_by_role("heading", name="What can be said").wait_for()

    made = studio.folder.parent / "made-9.txt"
    made.write_text(grammar_text(np.random.default_rng(9), 3000), encoding="utf-8")
    monkeypatch.chdir(made.parent)  # where the training text lies
    runs = [str(studio.folder / name) for name in ("ngram-world", "bigram-world")]
    said = command("evaluate", *runs, "--on", str(made))
    shown = page.locator(".exhibit").all_inner_texts()
    for sentence in said["sentences"]:
        assert sentence.replace("\n", " ") in re.sub(r"\s+", " ", shown[0])
    rows = [re.split(r"\t", line) for line in page.locator(".exhibit table").first.inner_text().splitlines()[1:]]
    figures = {row[1]: row[2] for row in rows}
    for row in said["rows"]:
        if row.get("model") in ("ngram-world", "bigram-world"):
            assert figures[row["model"]] == f"{row['bits_per_byte']:.4f}"
    assert page.locator(".exhibit svg").count() == 1
    assert not list((studio.folder / ".studio" / "texts").iterdir()), "what was written for it is gone"


def test_measuring_is_cancelled_and_mistakes_are_said(open_page: Callable[..., Any]) -> None:
    page = open_page("/compare")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_text("There is no text to compare on").wait_for()
    page.get_by_role("tab", name="All on one ruler").click()
    page.get_by_role("button", name="Have it made").click()
    page.get_by_label("Words").fill("200000")
    page.get_by_role("button", name="Measure").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("progressbar", name="Progress").wait_for(state="hidden")
    assert page.get_by_role("button", name="Measure").is_enabled()
    assert page.locator(".exhibit").count() == 0
