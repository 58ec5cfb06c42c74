"""Figures that change several times a second: painted by a thread of their own, over text that stays."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from opening import Opened

pytestmark = pytest.mark.browser

PATIENCE_MS = 30_000
SAY = """(figures) => {
  const element = document.querySelector('.figures');
  getElement(Number(element.id.slice(1))).say(figures);
}"""
SEEN = """() => {  // what is painted, as a number: 0 where there is nothing
  const painted = document.querySelector('.figures canvas');
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [painted.parentElement.clientWidth, painted.parentElement.clientHeight];
  const pen = copy.getContext('2d', { willReadFrequently: true });
  pen.drawImage(painted, 0, 0, copy.width, copy.height);
  const values = pen.getImageData(0, 0, copy.width, copy.height).data;
  return values.reduce((sum, value, i) => (value ? (sum * 31 + value + i) % 1e9 : sum), 0);
}"""
COLLECT = f"""async ([figures, last]) => {{  // what is painted after these are said, until it is this
  const look = {SEEN};
  ({SAY})(figures);
  const seen = [look()];
  const until = performance.now() + 10000;
  while (performance.now() < until && (seen.length === 1 || seen[seen.length - 1] !== last)) {{
    const now = look();
    if (now !== seen[seen.length - 1]) seen.push(now);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }}
  return seen;
}}"""
GREY = """async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [image.width, image.height];
  const pen = copy.getContext('2d');
  pen.drawImage(image, 0, 0);
  const values = pen.getImageData(0, 0, image.width, image.height).data;
  return [image.height, image.width, [...values.filter((value, i) => i % 4 === 1)]];
}"""
WITHOUT = "delete HTMLCanvasElement.prototype.transferControlToOffscreen;"


def figures(loss: str, step: str) -> dict[str, list[str]]:
    return {"state": ["running", "state"], "loss": [loss, "bits per byte, training text"], "step": [step, "step"]}


FIRST, SECOND, THIRD = figures("2.718", "7 of 20"), figures("2.236", "8 of 20"), figures("1.732", "9 of 20")


def finished(open_page: Callable[..., Any]) -> Any:
    """A page on a run that is not trained now, so that it says nothing by itself."""
    page = open_page("/")
    page.get_by_role("row", name=re.compile(r"\bgru-world\b(?!-)")).click()
    page.locator("[data-testid=figure-state]", has_text="finished").wait_for()
    page.locator("[data-testid=sample]:not(:empty)").wait_for()
    return page


def picture(page: Any) -> np.ndarray[Any, Any]:
    height, width, values = page.evaluate(GREY, base64.b64encode(page.locator(".figures").screenshot()).decode())
    return np.array(values, dtype=float).reshape(height, width)


def painted(page: Any, figures: dict[str, list[str]]) -> int:
    """What is seen when these are painted."""
    assert page.evaluate(SEEN) == 0
    page.evaluate(SAY, [figures] * 3)
    page.wait_for_function(f"() => ({SEEN})() !== 0")
    return int(page.evaluate(SEEN))


def test_what_is_painted_looks_like_the_text_that_it_hides(open_page: Callable[..., Any]) -> None:
    page = finished(open_page)
    page.evaluate(SAY, [THIRD])
    text = picture(page)
    painted(page, THIRD)
    assert page.locator(".figures.is-live").count() == 1
    over = picture(page)
    page.evaluate(SAY, [FIRST])
    other = picture(page)
    assert text.shape == over.shape == other.shape
    near, far = (np.abs(text - one).sum() for one in (over, other))
    assert far > 4 * near  # to the pixel here; another computer may smooth letters otherwise in a canvas


def test_several_are_shown_one_after_another_and_the_text_follows(open_page: Callable[..., Any]) -> None:
    page = finished(open_page)
    third = painted(page, THIRD)
    seen = page.evaluate(COLLECT, [[FIRST, SECOND, THIRD], third])
    assert len(seen) == 4  # the third from before, and the three
    assert len(set(seen)) == 3
    assert page.locator("[data-testid=figure-loss]").inner_text() == "1.732"
    page.evaluate(SAY, [FIRST])  # this one stands
    assert page.locator(".figures.is-live").count() == 0
    assert not page.locator(".figures canvas").is_visible()
    assert page.locator("[data-testid=figure-loss]").inner_text() == "2.718"
    assert page.locator("[data-testid=figure-step]").inner_text() == "7 of 20"


def test_the_text_is_never_long_behind_what_is_painted(open_page: Callable[..., Any]) -> None:
    page = finished(open_page)
    painted(page, FIRST)
    page.evaluate(
        f"""async (figures) => {{
          const until = performance.now() + 10000;
          while (!document.querySelector('.figures').innerText.includes('1.732') && performance.now() < until) {{
            ({SAY})(figures);
            await new Promise((resolve) => setTimeout(resolve, 100));
          }}
        }}""",
        [SECOND, SECOND, THIRD],
    )
    assert page.locator("[data-testid=figure-loss]").inner_text() == "1.732"


def test_where_nothing_can_be_painted_the_text_is_seen(browser: Any, studio: Opened) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.route("**/live_brush.js", lambda route: route.abort())
    page.goto(studio.address)
    finished(lambda path: page)
    page.evaluate(SAY, [FIRST, SECOND, THIRD])
    page.locator(".figures:not(.is-live) [data-testid=figure-loss]", has_text="1.732").wait_for()
    page.evaluate(SAY, [SECOND, THIRD, FIRST])
    page.locator(".figures:not(.is-live) [data-testid=figure-loss]", has_text="2.718").wait_for()
    page.close()


def test_a_browser_without_such_threads_shows_the_same_as_text(open_page: Callable[..., Any]) -> None:
    page = open_page("/")
    page.context.add_init_script(WITHOUT)
    page.reload()
    page = finished(lambda path: page)
    page.evaluate(SAY, [FIRST, SECOND, THIRD])
    assert page.locator("[data-testid=figure-loss]").inner_text() == "2.718"
    page.locator("[data-testid=figure-loss]", has_text="2.236").wait_for()
    page.locator("[data-testid=figure-loss]", has_text="1.732").wait_for()
    assert page.locator(".figures.is-live").count() == 0
