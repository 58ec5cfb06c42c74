"""Takes the pictures of docs/studio.md anew: every page in use, light and dark.

    python docs/screens.py FOLDER

FOLDER holds `runs/` with gpt-world, gru-world, bigram-world, dan-reviews and lives, and the texts they were trained on:
what the commands of the README's five minutes leave behind. Needs Chromium and playwright.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "screens"
FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"
WIDTH, HEIGHT = 1280, 960
REVIEW = "A dull and lazy story, but the acting is fine. I would not call it superb."


def choose(page: Any, label: str, name: str) -> None:
    page.get_by_role("combobox", name=label).click()
    page.locator(".q-menu").get_by_role("option", name=name, exact=True).last.click()


def runs(page: Any) -> None:
    page.locator("tr", has_text="gpt-world").last.click()
    page.locator("[data-testid=sample]:not(:empty)").wait_for()


def compare(page: Any) -> None:
    page.get_by_label("Text to compare on").fill("The baker bakes the loaf in winter.\nSome sailors steer a quiche.\n")
    choose(page, "First model", "gru-world")
    choose(page, "Second model", "bigram-world")
    page.get_by_role("button", name="Compare", exact=True).click()
    text = page.get_by_role("group", name="as gru-world sees it")
    text.scroll_into_view_if_needed()
    text.locator(".run > span").nth(16).hover()
    text.locator(".choice").first.wait_for()


def write(page: Any) -> None:
    choose(page, "Run", "gpt-world")
    page.get_by_label("Prompt").fill("The baker")
    page.get_by_role("button", name="Write").click()
    page.get_by_test_id("summary").get_by_text("tokens,").wait_for()
    text = page.get_by_role("group", name="What was written")
    text.locator(".run > span.s3").first.hover()
    text.locator(".choice.chosen").wait_for()


def classify(page: Any) -> None:
    page.get_by_label("Text", exact=True).fill(REVIEW)
    page.get_by_label("Verdict").get_by_text("% sure").wait_for()
    page.get_by_role("button", name="Find mistakes").click()
    page.get_by_test_id("count").wait_for(timeout=60_000)


def attention(page: Any) -> None:
    page.locator("section.exhibit svg").first.wait_for()


def knowledge(page: Any) -> None:
    choose(page, "Model", "lives")
    page.get_by_label("Question").fill("Where was Ida Ulmcombe born?")
    page.get_by_role("button", name="Ask").click()
    page.get_by_test_id("confidence").get_by_text("% sure").wait_for()


def claims(page: Any) -> None:
    page.get_by_role("button", name="Run E7").click()
    page.get_by_role("button", name="Cancel E7").wait_for()
    page.get_by_role("button", name="Run E7").wait_for(timeout=120_000)
    place = page.get_by_test_id("claim-E7")
    place.get_by_role("status").get_by_text("holds if", exact=True).wait_for(timeout=120_000)
    place.locator(".exhibit svg").first.wait_for()
    place.scroll_into_view_if_needed()


PAGES: dict[str, tuple[str, Callable[[Any], None]]] = {
    "runs": ("/", runs),
    "compare": ("/compare", compare),
    "write": ("/write", write),
    "classify": ("/classify", classify),
    "attention": ("/attention", attention),
    "knowledge": ("/knowledge", knowledge),
    "claims": ("/claims", claims),
}


def main(folder: str) -> None:
    from playwright.sync_api import sync_playwright

    HERE.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "inkling", "studio", "--no-browser", "--port", "0", "--json"]
    with (
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as studio,
        sync_playwright() as started,
    ):
        assert studio.stdout is not None
        said = ""
        while not said.rstrip().endswith("}"):
            said += studio.stdout.readline()
        address = json.loads(said)["address"]
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
        try:
            for look in ("light", "dark"):
                context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=look)
                page = context.new_page()
                page.goto(address)
                for name, (path, use) in PAGES.items():
                    page.goto(address.split("/?")[0] + path)
                    use(page)
                    page.wait_for_timeout(700)  # what moves comes to rest
                    page.screenshot(path=HERE / f"{name}-{look}.png")
                    sys.stderr.write(f"{name}, {look}\n")
                context.close()
        finally:
            browser.close()
            studio.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main(sys.argv[1])
