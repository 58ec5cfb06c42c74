"""What the page of attention shows, worked out without a page."""

from __future__ import annotations

import base64
import json
import shlex
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from inkling.attention.laboratory import Setting, experiment
from inkling.cli.app import app
from inkling.errors import UsageError
from inkling.figures import HeatMap, Panels
from inkling.runs.files import finite
from inkling.studio import tasks_attention
from inkling.studio.views_attention import (
    Answer,
    Wishes,
    command_of,
    draft,
    is_long,
    maps_of_panels,
    pack,
    setting_of,
    settled,
    shown,
    spell,
)

GIVEN: dict[str, Any] = {
    "kind": "heads",
    "keys": 6,
    "beta": 8.0,
    "noise": 0.5,
    "alpha": 0.0,
    "coherence": 0.0,
    "scaled": False,
    "dimension": None,
    "a": 1,
    "b": 2,
    "seed": 0,
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kind": "same", "seed": 3},
        {"kind": "copy", "a": 2, "noise": 0.1},
        {"kind": "noise", "coherence": 0.4, "dimension": 9, "scaled": True, "b": 3},
        {"kind": "average", "alpha": 0.001, "beta": -2.5},
    ],
)
def test_the_command_that_is_shown_gives_the_figures_that_are_shown(changes: dict[str, Any]) -> None:
    setting = setting_of(GIVEN | changes)
    words = shlex.split(command_of(setting, 3000))
    said = json.loads(CliRunner().invoke(app, [*words[1:], "--json"]).stdout)
    answer = settled(setting, 3000)
    by_name = {figure["name"]: figure for figure in said["figures"]}
    assert answer.samples == said["samples"] == 3000
    for figure in answer.figures:
        assert by_name[figure["name"]] == pytest.approx(dict(figure), nan_ok=True)


@pytest.mark.parametrize("kind", ["heads", "noise", "same"])
def test_a_child_gives_the_same_and_says_how_far_it_is(kind: str) -> None:
    setting = setting_of(GIVEN | {"kind": kind, "alpha": 0.01, "coherence": 0.3})
    said: list[float | None] = []
    arguments = json.loads(json.dumps({**asdict(setting), "samples": 3000}))
    found = tasks_attention.experiment(arguments, lambda done, sentence: said.append(done))
    received = Answer.of_json(json.loads(json.dumps(finite(found))))
    assert json.dumps(asdict(received)) == json.dumps(asdict(settled(setting, 3000)))
    parts = {"heads": 13, "noise": 1, "same": 3}[kind]  # two heads and one alone, and ten points of a curve
    assert said == [None, *(pytest.approx(part / parts) for part in range(1, parts + 1))]


def test_what_takes_seconds_is_for_a_child() -> None:
    def long(samples: int = 200_000, **changes: Any) -> bool:
        return is_long(setting_of(GIVEN | changes), samples)

    assert not long()
    assert not long(keys=200)
    assert not long(keys=50, alpha=0.1)
    assert long(keys=200, alpha=0.1)
    assert long(keys=200, coherence=0.5)
    assert long(keys=20, alpha=0.1, coherence=0.5)
    assert long(samples=1_000_000, keys=200)


def test_a_draft_has_fewer_samples_and_says_so() -> None:
    found = draft(Setting("heads", keys=500, noise=0.5))
    assert found.samples == 4000
    assert not found.whole
    assert found.figures[0]["exact"] == experiment(Setting("heads", keys=500, noise=0.5), 10).failure_probability


def test_a_draft_does_not_wait_for_integrals_and_the_settled_answer_has_them() -> None:
    setting = Setting("heads", keys=5, noise=0.5, alpha=0.01)
    quick, whole = draft(setting), settled(setting, 2000)
    assert np.isnan(quick.figures[0]["exact"])
    assert set(whole.sections) - set(quick.sections) == {
        "In words",
        "Exact and simulated",
        "How often head 1 loses its key",
    }
    assert 0 < whole.figures[0]["exact"] < 1


def test_an_empty_or_broken_field_is_named() -> None:
    for changes, sentence in (
        ({"keys": None}, "'keys' is empty"),
        ({"keys": 2.5}, "'keys' is 2.5; give a whole number from 1 to 1,000"),
        ({"seed": -1}, "'seed' is -1"),
        ({"beta": None}, "'beta' is empty"),
    ):
        with pytest.raises(UsageError, match=sentence):
            setting_of(GIVEN | changes)


def test_a_link_is_wanted_then_wanted_with_a_minus_then_gone() -> None:
    state = Wishes("d+b, a, c+b", "1=b")
    b, c = 1, 2
    plus = state.with_wish(0, c)
    assert plus.wishes == "1=b+c"
    minus = plus.with_wish(0, c)
    assert minus.wishes == "1=b-c"
    assert minus.with_wish(0, c).wishes == "1=b"
    assert minus.board()["wishes"] == [[0, b, 1.0], [0, c, -1.0]]
    assert state.with_wish(0, b).with_wish(0, b).wishes == ""


def test_links_to_tokens_are_drawn_and_taken_away() -> None:
    state = Wishes().with_look(0, 2).with_look(0, 1)
    assert state.looks == "1=2+3"
    assert state.board()["looks"] == [[0, 1], [0, 2]]
    assert state.with_look(0, 1).with_look(0, 2).looks == ""
    with pytest.raises(UsageError, match="Token 3 should look at token 1, but has no wish"):
        state.with_look(2, 0)
    without = state.with_wish(0, 1).with_wish(0, 1).with_wish(0, 2)  # b: minus, gone; c: gone
    assert without.wishes == "2=b"
    assert without.looks == ""  # a token without a wish looks where it likes


def test_numbers_keep_their_digits_when_a_wish_is_drawn() -> None:
    assert Wishes("a, b", "1=12345.5b").with_wish(1, 0).wishes == "1=12345.5b, 2=a"
    assert spell([0.5, -2, 0], "abc") == "0.5a-2b"


def test_a_wish_that_is_half_typed_leaves_the_others_on_the_board() -> None:
    assert Wishes("a, b", "1=b, 2=").board()["wishes"] == [[0, 1, 1.0]]


def test_the_order_is_what_its_command_says() -> None:
    state = Wishes("a, b", "1=3b", looks="1=2", beta=2.5, linear=True)
    said = json.loads(CliRunner().invoke(app, [*shlex.split(state.command)[1:], "--json"]).stdout)
    assert state.order().to_json() == said


def test_weights_are_packed_row_by_row_up_to_the_diagonal() -> None:
    weights = np.array([[[1, 0, 0], [0.25, 0.75, 0], [0.5, 0.125, 0.375]]], np.float32)
    numbers = np.frombuffer(base64.b64decode(pack(weights)), "<f2")
    assert numbers.tolist() == [1, 0.25, 0.75, 0.5, 0.125, 0.375]


def test_panels_of_a_census_become_maps() -> None:
    one = HeatMap("head 1.1", "at", "looks at", ("a", "\x1b"), ("a", "\x1b"), [[1.0, None], [0.5, 0.5]])
    maps = maps_of_panels(Panels("t", (one, one), across=1))
    assert (maps.layers, maps.heads, maps.tokens) == (2, 1, ("a", "\\x1b"))
    assert np.frombuffer(base64.b64decode(maps.packed), "<f2").tolist() == [1.0, 0.5, 0.5] * 2


def test_a_long_token_is_cut_and_an_unseen_one_shown() -> None:
    assert shown("\u202e" + "x" * 100) == "\\u202e" + "x" * 18
