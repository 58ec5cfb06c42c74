"""The page of attention, used as a person would: sliders, a drawn wish, the heads of a model; figures are those of the
command line."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from inkling.cli.app import app

pytestmark = pytest.mark.browser


def command(*words: str) -> dict[str, Any]:
    """What a command says as JSON."""
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(page: Any, title: str) -> dict[str, list[str]]:
    """Rows of the table of this title, by their first cells."""
    rows = page.locator("section.exhibit", has=page.get_by_role("heading", name=title, exact=True)).locator("tbody tr")
    return {
        cells[0]: cells[1:] for cells in rows.evaluate_all("rows => rows.map(r => [...r.cells].map(c => c.innerText))")
    }


def press(page: Any, slider: str, keys: str) -> None:
    track = page.get_by_role("slider", name=slider, exact=True).locator("[tabindex]")
    for key in keys.split():
        track.press(key)


def settled(page: Any, words: str, samples: str = "200,000") -> dict[str, Any]:
    """Waits for the answer to these settings, checks that its table is that of the command, and gives the latter."""
    line = page.get_by_test_id("lab-command").filter(has_text=re.compile(re.escape(words)))
    line.wait_for()
    page.get_by_test_id("samples").filter(has_text=re.compile(f"^{samples} samples$")).wait_for()
    said = command(*shlex.split(line.inner_text())[1:])
    shown = table(page, "Exact and simulated")
    assert list(shown) == [figure["name"] for figure in said["figures"]]
    for figure in said["figures"]:
        exact, simulated, error, deviation = shown[figure["name"]]
        assert exact == ("–" if figure["exact"] is None else f"{figure['exact']:.6f}")
        assert simulated == f"{figure['simulated']:.6f}"
        assert error == f"{figure['standard_error']:.1e}"
        assert deviation == ("–" if figure["deviation"] is None else f"{figure['deviation']:+.1f}")
    return said


def test_every_slider_gives_the_figures_of_the_command(open_page: Callable[..., Any]) -> None:
    page = open_page("/attention")
    first = settled(page, "attention heads --keys 20 --beta 10 --noise 0.5 --alpha 0")
    tile = page.locator(".tile", has_text="head 1: failure probability")
    assert f"{first['failure_probability']:.4f}" in tile.inner_text()
    press(page, "Keys", "ArrowRight ArrowRight ArrowRight")
    more = settled(page, "--keys 23 ")
    assert more["failure_probability"] > first["failure_probability"]
    press(page, "β", "ArrowRight ArrowRight")
    sharper = settled(page, "--beta 11 ")
    assert sharper["failure_probability"] < more["failure_probability"]
    press(page, "Noise", "ArrowLeft")
    assert settled(page, "--noise 0.45 ")["setting"]["noise"] == 0.45
    page.get_by_label("Keys, as a number").fill("6")
    press(page, "α", "ArrowRight ArrowRight")
    settled(page, "--keys 6 --beta 11 --noise 0.45 --alpha 0.002")
    page.get_by_label("α, as a number").fill("0")
    press(page, "Coherence", "ArrowRight ArrowRight ArrowRight ArrowRight")
    settled(page, "--keys 6 --beta 11 --noise 0.45 --alpha 0 --coherence 0.2")


def test_figures_that_take_long_say_how_far_they_are_and_can_be_cancelled(open_page: Callable[..., Any]) -> None:
    page = open_page("/attention")
    press(page, "α", "ArrowRight ArrowRight")
    press(page, "Coherence", "ArrowRight ArrowRight ArrowRight ArrowRight")
    page.get_by_label("Keys, as a number").fill("150")  # half a minute
    page.get_by_text(re.compile("Exact figures: [0-9]+ of 13 integrals")).wait_for()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_test_id("samples").filter(has_text="Cancelled: these figures are from fewer samples.").wait_for()
    page.get_by_label("Keys, as a number").fill("150")
    page.get_by_label("Keys, as a number").fill("9")  # what was begun ends by itself, and this is worked out
    settled(page, "--keys 9 --beta 10 --noise 0.5 --alpha 0.002 --coherence 0.2")


def test_each_experiment_has_its_own_command_and_switches(open_page: Callable[..., Any]) -> None:
    page = open_page("/attention")
    page.get_by_role("button", name="Copy", exact=True).click()
    settled(page, "attention copy --keys 20 --beta 10 --noise 0 --alpha 0")
    page.get_by_role("switch", name="Divide scores by √d").click()
    page.get_by_text("More settings").click()
    page.get_by_label("Dimensions").fill("30")
    page.get_by_label("Seed").first.fill("4")
    settled(page, "--dimension 30 --scaled --seed 4")
    page.get_by_role("button", name="Average", exact=True).click()
    settled(page, "attention average")
    page.get_by_role("button", name="Noise", exact=True).click()
    page.get_by_role("combobox", name="Samples").click()
    page.get_by_role("option", name="20,000", exact=True).click()
    settled(page, "attention noise --keys 20 --beta 10 --noise 0.5", "20,000")
    page.get_by_role("button", name="Two heads, same query").click()
    settled(page, "--same", "20,000")
    page.get_by_label("Key b").fill("1")
    page.get_by_text("a and b are both key 1; give two different keys.").wait_for()
    page.get_by_label("Key b").fill("3")
    settled(page, "--b 3", "20,000")


def test_a_wish_is_drawn_and_written_and_both_stay_in_step(open_page: Callable[..., Any]) -> None:
    page = open_page("/attention")
    page.get_by_role("tab", name="Made to order").click()
    verdict = page.get_by_test_id("verdict")

    def agrees(tokens: str, wishes: str, *more: str) -> dict[str, Any]:
        said = command("attention", "design", tokens, wishes, *more)
        verdict.filter(has_text=said["sentence"]).wait_for()
        for one, row in zip(said["wishes"], table(page, "Wish by wish").values(), strict=True):
            assert row[-2:] == [f"{one['error']:.3g}", f"{one['bound']:.3g}"]
        return said

    assert agrees("d+b, a, c+b", "1=b-c, 2=b")["met"]
    wishes = page.get_by_label("Wishes: token=output")
    wishes.fill("1=b")
    agrees("d+b, a, c+b", "1=b")
    page.get_by_role("button", name="x3 b + c", exact=True).drag_to(page.get_by_role("button", name="output a"))
    agrees("d+b, a, c+b", "1=b, 3=a")
    assert wishes.input_value() == "1=b, 3=a"
    # with the keyboard: choose token 2, then what it should output, twice, which is a minus
    page.get_by_role("button", name=re.compile("^x2")).first.press("Enter")
    for _ in range(2):
        page.get_by_role("button", name="output d").press("Enter")
    agrees("d+b, a, c+b", "1=b, 2=-d, 3=a")
    page.get_by_role("button", name="look at x1").press("Enter")
    said = agrees("d+b, a, c+b", "1=b, 2=-d, 3=a", "--looks", "2=1")
    assert said["wishes"][1]["looks"] == [0]
    assert page.get_by_label("Must look at: token=tokens").input_value() == "2=1"


def test_what_cannot_be_met_and_what_cannot_be_read_is_said_in_words(open_page: Callable[..., Any]) -> None:
    page = open_page("/attention")
    page.get_by_role("tab", name="Made to order").click()
    page.get_by_role("button", name="Examples").click()
    page.get_by_text("Impossible: equal tokens").click()
    verdict = page.get_by_test_id("verdict")
    said = command("attention", "design", "a, a", "1=a, 2=2a")
    verdict.filter(has_text=said["reasons"][0]).wait_for()
    page.get_by_label("Wishes: token=output").fill("1=<b>z</b>")
    verdict.filter(has_text="'<b>z</b>'").wait_for()
    many = ", ".join("abcdefghijkl")  # searched by a process of its own
    page.get_by_label("Tokens", exact=True).fill(many)
    page.get_by_label("Wishes: token=output").fill("1=b, 2=2b")
    verdict.filter(has_text=command("attention", "design", many, "1=b, 2=2b")["sentence"]).wait_for()
    page.get_by_label("Wishes: token=output").fill("")
    verdict.filter(has_text="Nothing is wished for yet").wait_for()


TEXT = "The baker bakes the loaf. The sailor steers the boat. <b>A captain</b> paints these nets.\n" * 40


def test_maps_show_the_weights_of_the_model_window_by_window(open_page: Callable[..., Any], studio: Any) -> None:
    import torch

    from inkling.runs.loading import load_language_model

    page = open_page("/attention", height=1400)
    page.get_by_role("tab", name="In a model").click()
    page.locator("canvas").wait_for()
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="gpt-world").click()
    page.get_by_label("Your text").fill(TEXT)
    page.get_by_label("Window, tokens").fill("32")
    tokens = len(TEXT)
    place = page.get_by_test_id("window")
    place.filter(has_text=f"tokens 1 to 32 of {tokens:,}").wait_for()
    page.get_by_role("button", name="Next window").click()
    place.filter(has_text=f"tokens 33 to 64 of {tokens:,}").wait_for()
    assert page.locator(".maps-text").text_content() == TEXT[32:64].replace("<", "\ufffd").replace(">", "\ufffd")

    model = load_language_model(str(studio.folder / "gpt-world"))
    ids = model.tokeniser.encode([TEXT]).ids[32:64].astype("int64")
    weights = model.look(torch.from_numpy(ids)[None]).weights  # type: ignore[union-attr]
    canvas = page.locator("canvas")
    canvas.click(position={"x": 40, "y": 60})
    page.get_by_text("head 1.1", exact=True).first.wait_for()
    page.get_by_role("button", name="Next head").click()
    canvas.press("ArrowDown")  # the last row, and from there up and to the left
    for key in ("ArrowUp", "ArrowLeft", "ArrowLeft"):
        canvas.press(key)
    note = page.locator(".maps-note").inner_text().splitlines()
    query, looked_at = 30, 28
    assert note[0] == "head 1.2"
    assert (note[1].split(":")[0], note[2].split(":")[0]) == (f"at {query + 1}", f"looks at {looked_at + 1}")
    assert float(note[3].split()[1]) == pytest.approx(float(weights[0][0, 1, query, looked_at]), abs=1e-3)
    canvas.press("Escape")
    page.get_by_text(f"{model.layers} layers of {model.heads} heads").wait_for()  # type: ignore[union-attr]


def test_the_census_is_that_of_the_command(open_page: Callable[..., Any], studio: Any, tmp_path: Path) -> None:
    page = open_page("/attention")
    page.get_by_role("tab", name="In a model").click()
    page.locator("canvas").wait_for()
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="gpt-world").click()
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    page.get_by_text("Or hand in a file").click()
    page.locator("input[type=file]").set_input_files(tmp_path / "text.txt")
    page.get_by_test_id("window").filter(has_text=f" of {len(TEXT):,}").wait_for()
    assert page.get_by_label("Your text").input_value() == TEXT
    page.get_by_label("Texts or windows").fill("5")
    page.get_by_label("Tokens of each").fill("24")
    page.get_by_role("button", name="Census of this model").click()
    page.get_by_test_id("census-of").filter(has_text="Of gpt-world, 5 texts.").wait_for()
    run = str(studio.folder / "gpt-world")
    words = ("--on", str(tmp_path / "text.txt"), "--texts", "5", "--length", "24")
    said = command("attention", "inspect", run, *words)
    sharp, effects = table(page, "How sharply heads look"), table(page, "What heads are worth (nats per token)")
    for head in said["heads"]:
        assert sharp[head["name"]][-2:] == [f"{head['margin_median']:.1f}", f"{head['beta_median']:.1f}"]
        assert effects[head["name"]][:2] == [head["role"], f"{head['removed']['value']:+z.3f}"]
    for sentence in said["sentences"]:
        page.get_by_text(sentence).wait_for()


def test_a_small_model_is_trained_and_a_long_training_cancelled(open_page: Callable[..., Any]) -> None:
    page = open_page("/attention")
    page.get_by_role("tab", name="In a model").click()
    start = page.get_by_role("button", name="Train a small model and look into it")
    page.get_by_label("Small model: steps").fill("100000")
    start.click()
    page.get_by_text(re.compile("Training a small model: step [0-9]+ of 100000")).wait_for()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_text("This was cancelled.").wait_for()
    page.get_by_label("Small model: steps").fill("3")
    page.get_by_label("Texts or windows").fill("4")
    start.click()
    page.get_by_test_id("census-of").filter(has_text="Of a small model, 4 texts.").wait_for()
    said = command("attention", "inspect", "--steps", "3", "--texts", "4")
    shown = table(page, "How sharply heads look")
    assert shown["1.1"][-1] == f"{said['heads'][0]['beta_median']:.1f}"
    assert page.get_by_label("Attention maps of the small model").count() == 1
