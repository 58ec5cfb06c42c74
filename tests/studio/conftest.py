"""A studio to look at: small runs of every kind, the real server in a process of its own, and a real browser.

A page fails its test when anything stands on its console as an error, or when it asks for anything that is not here.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opening import Opened, inkling, open_studio

CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-prefers-reduced-motion",
]
PATIENCE_MS = 30_000


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts, and `runs/` of every kind: bigram-world, ngram-world, gru-world, gpt-world, dan-reviews, lives."""
    folder = tmp_path_factory.mktemp("studio")
    inkling("data", "make", "text", "world.txt", "--size", "20000", folder=folder)
    inkling("data", "make", "text", "fresh.txt", "--size", "2000", "--seed", "1", folder=folder)
    inkling("data", "make", "reviews", "reviews.csv", "--size", "1000", folder=folder)
    inkling("data", "make", "reviews", "test.csv", "--size", "300", "--seed", "1", folder=folder)
    inkling("data", "make", "biographies", "lives.txt", "--size", "60", folder=folder)
    inkling("train", "bigram", "world.txt", "--steps", "60", folder=folder)
    inkling("train", "ngram", "world.txt", "--order", "3", folder=folder)
    inkling("train", "gru", "world.txt", "--steps", "40", "--hidden", "64", folder=folder)
    inkling("train", "gpt", "world.txt", "--steps", "60", "--layers", "2", "--width", "64", folder=folder)
    inkling("train", "dan", "reviews.csv", folder=folder)
    sizes = ("--layers", "2", "--width", "64", "--steps", "60")
    inkling("train", "gpt", "lives.txt", "--pairs", "lives.questions.tsv", *sizes, "--out", "runs/lives", folder=folder)
    return folder


@pytest.fixture(scope="module")
def studio(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """A studio on a copy of the trained runs, so that no module sees what another one did."""
    folder = tmp_path_factory.mktemp("opened")
    shutil.copytree(trained, folder, dirs_exist_ok=True)
    with open_studio(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def empty_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """A studio without runs, which is there at once."""
    with open_studio(tmp_path_factory.mktemp("empty")) as opened:
        yield opened


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    assert path is not None, "Chromium is needed: install Debian's package `chromium`"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=CHROMIUM)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any, studio: Opened) -> Iterator[Callable[..., Any]]:
    """`open_page("/write")`: a page of the studio, as somebody sees it who came by the printed address."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def complain(is_wrong: bool, what: str) -> None:
        if is_wrong:
            wrong.append(what)

    def open_one(path: str, *, width: int = 1280, height: int = 860, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: complain(message.type == "error", f"console: {message.text}"))
        page.on("pageerror", lambda error: complain(True, f"script: {error}"))
        page.on("request", lambda request: complain(_is_foreign(request.url, studio), f"asks {request.url}"))
        page.goto(studio.address)
        if path != "/":
            page.goto(studio.root + path)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not wrong, wrong


def _is_foreign(url: str, studio: Opened) -> bool:
    return not url.startswith((studio.root, studio.root.replace("http", "ws"), "data:", "blob:"))
