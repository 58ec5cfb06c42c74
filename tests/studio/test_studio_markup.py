"""Text is shown as text: markup in names of runs, in labels, in texts and in names of files does nothing."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opening import Opened, inkling, open_studio

pytestmark = pytest.mark.browser

NAME = "<img src=x onerror=window.hit=1>"  # as the name of a run and of a file
LABEL = "</script><script>window.hit=1</script>"
PAGES = ("/", "/compare", "/write", "/classify", "/attention", "/knowledge", "/claims")


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """A studio of a language model and a classifier that have nothing but markup to say."""
    folder = tmp_path_factory.mktemp("markup")
    (folder / "text.txt").write_text(f"{NAME} and {LABEL} said the baker.\n" * 400)
    with (folder / "labelled.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(200):
            writer.writerow([f"{NAME} {'good' if number % 2 else 'bad'} {number}", LABEL if number % 2 else NAME])
    inkling("train", "ngram", "text.txt", "--order", "3", "--out", "runs/letters", folder=folder)
    inkling("train", "dan", "labelled.csv", "--out", "runs/labels", folder=folder)
    (folder / "runs" / "letters").rename(folder / "runs" / NAME)
    with open_studio(folder) as opened:
        yield opened


def is_harmless(page: Any) -> bool:
    """Nothing ran, and nothing that was text became an element."""
    return bool(page.evaluate("window.hit === undefined && !document.querySelector('img[src=\"x\"]')"))


@pytest.mark.parametrize("path", PAGES)
def test_markup_in_names_and_labels_is_text_on_every_page(open_page: Callable[..., Any], path: str) -> None:
    page = open_page(path)
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_load_state("networkidle")
    if path == "/":
        page.get_by_text(NAME).first.wait_for()
    assert is_harmless(page)


def test_a_label_of_markup_is_the_verdict_in_words(open_page: Callable[..., Any]) -> None:
    page = open_page("/classify")
    box = page.get_by_role("textbox").first
    box.fill(f"{NAME} good 7 {LABEL}")
    page.get_by_text(LABEL).first.wait_for()
    assert is_harmless(page)


def test_a_file_with_markup_for_a_name_is_named_in_words(open_page: Callable[..., Any]) -> None:
    page = open_page("/")
    place = page.locator("input[type=file]").first
    place.set_input_files({"name": f"{NAME}.txt", "mimeType": "text/plain", "buffer": LABEL.encode() * 500})
    page.get_by_text(f"{NAME}.txt").first.wait_for(state="attached")
    page.wait_for_load_state("networkidle")
    assert is_harmless(page)


def test_markup_that_slipped_in_all_the_same_would_not_run(browser: Any, studio: Opened) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(studio.address)
    page.get_by_role("heading", level=1).wait_for()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.evaluate(
        """() => {
            const place = document.createElement("div");
            place.innerHTML = '<img src="data:," onerror="window.hit = 1"><a href="javascript:window.hit=2">x</a>';
            document.body.append(place);
            const script = document.createElement("script");
            script.textContent = "window.hit = 3";
            document.body.append(script);
            place.querySelector("a").click();
            const far = document.createElement("script");
            far.src = "http://127.0.0.1:9/x.js";
            document.body.append(far);
        }"""
    )
    deadline = 100
    while len([text for text in refused if "Content Security Policy" in text]) < 4 and deadline:
        page.wait_for_timeout(50)
        deadline -= 1
    assert page.evaluate("window.hit") is None
    assert len([text for text in refused if "Content Security Policy" in text]) >= 4
    context.close()


def test_a_link_to_the_studio_on_another_page_opens_it(browser: Any, studio: Opened) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.set_content(f'<a href="{studio.root}/claims?token={studio.token}">the studio</a>')
    page.get_by_role("link").click()
    page.get_by_role("heading", name="Claims").wait_for()
    assert page.url == f"{studio.root}/claims"
    (cookie,) = context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    context.close()
