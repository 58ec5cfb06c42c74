"""From a run and a text to the census of its heads: which windows are watched, and as the model reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError, UsageError
from inkling.explain.census import Census
from inkling.explain.heads import census
from inkling.models.contracts import Attentive, Look, Touch
from inkling.models.gpt import GPT, GPTConfig, initial_parameters
from inkling.recipes import inspection
from inkling.recipes.induction import BEGIN, LENGTH, repeats_batch
from inkling.recipes.inspection import inspect_run, inspect_small, windows
from inkling.text.normalise import Chain
from inkling.text.tokenise import CharacterTokeniser
from inkling.training.loop import Step

LETTERS = CharacterTokeniser(("\ufffd", *"abcdefghijklmnopqrstuvwxyz .\n"))


def spelled(ids: torch.Tensor) -> list[str]:
    return [LETTERS.decode(row) for row in ids.tolist()]


# ------------------------------------------------------------------------------------------ windows


def test_windows_are_full_stretches_of_one_text_each() -> None:
    assert spelled(windows(LETTERS, ["abcdefgh", "xy", "klmn"], 10, 3)) == ["abc", "def", "klm"]


def test_no_more_windows_than_wanted_are_read() -> None:
    def texts() -> Iterator[str]:
        yield "abcdef"
        yield "ghijkl"
        raise AssertionError("read on")

    assert spelled(windows(LETTERS, texts(), 3, 3)) == ["abc", "def", "ghi"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("abc .", max_size=20), min_size=1, max_size=6), st.integers(1, 8), st.integers(3, 7))
def test_windows_are_the_plain_slices(texts: list[str], most: int, length: int) -> None:
    slices = [text[i : i + length] for text in texts for i in range(0, len(text), length)]
    derived = [part for part in slices if len(part) == length][:most]
    if derived:
        found = windows(LETTERS, texts, most, length)
        assert spelled(found) == derived
        assert found.dtype == torch.int64
    else:
        with pytest.raises(InklingError, match=f"as many as {length} tokens"):
            windows(LETTERS, texts, most, length)


def test_a_window_of_two_tokens_leaves_no_choice() -> None:
    with pytest.raises(UsageError, match="is 2 tokens; give at least 3"):
        windows(LETTERS, ["abcdef"], 4, 2)


# ------------------------------------------------------------------------------------------ of a run


class Reader:
    """What a run with heads would give: a GPT over a tokeniser, that keeps what it was shown."""

    def __init__(self, chain: str = "none") -> None:
        config = GPTConfig(LETTERS.size, 8, 2, 2, mlp=0, context=16)
        self.model = GPT(config, initial_parameters(config, np.random.default_rng(0)))
        self.tokeniser, self.chain = LETTERS, Chain.parse(chain)
        self.shown: list[torch.Tensor] = []

    @property
    def layers(self) -> int:
        return self.model.layers

    @property
    def heads(self) -> int:
        return self.model.heads

    def look(self, ids: torch.Tensor, touch: Touch | None = None) -> Look:
        self.shown.append(ids)
        return self.model.look(ids, touch)

    def unembed(self, residual: torch.Tensor) -> torch.Tensor:
        return self.model.unembed(residual)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("INKLING_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "novel.txt").write_text("The Cat sat.\nThe dog sat on the cat.\nAll was well.\n", encoding="utf-8")
    (tmp_path / "rows.csv").write_text('text,label\n"abcdefgh",1\n"klmnopq",0\n"rstuvwx",1\n', encoding="utf-8")
    return tmp_path


def opened(monkeypatch: pytest.MonkeyPatch, chain: str = "none") -> Reader:
    reader = Reader(chain)
    monkeypatch.setattr(inspection, "load_language_model", lambda path: reader)
    return reader


def test_the_reader_of_these_tests_keeps_the_contract() -> None:
    assert isinstance(Reader(), Attentive)


def test_the_heads_of_a_run_are_those_of_the_census_on_its_windows(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = opened(monkeypatch)
    found = inspect_run("runs/gpt", ["novel.txt"], 4, 8, 0.1, 3)
    ids = torch.from_numpy(LETTERS.encode(["The Cat sat.\nThe dog sat on the cat.\nAll was well.\n"[:32]]).ids)
    derived = census(reader.model, ids.long().view(4, 8), seed=3, key_noise=0.1)
    assert found.to_json() == derived.to_json()
    assert (found.texts, found.tokens, len(found.heads)) == (4, 4 * 7, 4)
    assert inspect_run("runs/gpt", ["novel.txt"], 4, 8, 0.1, 4).to_json() != found.to_json()  # the noise


def test_a_text_is_read_behind_the_normalisation_of_the_model(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = opened(monkeypatch, "lower")
    inspect_run("runs/gpt", ["novel.txt"], 2, 8, 0.1, 0)
    assert spelled(reader.shown[0]) == ["the cat ", "sat.\nthe"]
    assert not (reader.shown[0] == LETTERS.unknown).any()


def test_rows_of_a_table_stay_apart(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = opened(monkeypatch)
    found = inspect_run("runs/gpt", ["rows.csv"], 9, 3, 0.1, 0)
    assert spelled(reader.shown[0]) == ["abc", "def", "klm", "nop", "rst", "uvw"]
    assert found.texts == 6


def test_maps_name_the_tokens_of_the_first_window(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(monkeypatch, "lower")
    found = inspect_run("runs/gpt", ["novel.txt"], 2, 8, 0.1, 0)
    assert found.maps.maps[0].rows == tuple("the cat ")


def test_memory_is_bounded_and_changes_no_figure(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = opened(monkeypatch)
    whole = inspect_run("runs/gpt", ["novel.txt"], 4, 8, 0.1, 0)
    assert max(len(ids) for ids in reader.shown) == 4
    reader.shown.clear()
    monkeypatch.setattr(inspection, "AT_ONCE", 2 * 8 * 8 * 4)  # weights of two texts: 8 × 8 places, 4 heads
    parts = inspect_run("runs/gpt", ["novel.txt"], 4, 8, 0.1, 0)
    assert {len(ids) for ids in reader.shown} == {2, 1}  # 1: the map of the first text
    for one, other in zip(whole.heads, parts.heads, strict=True):
        assert other.removed.value == pytest.approx(one.removed.value, abs=1e-6)
        assert other.entropy_nats == pytest.approx(one.entropy_nats, abs=1e-6)


def test_texts_that_are_too_short_are_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(monkeypatch)
    with pytest.raises(InklingError, match="as many as 9 tokens; give longer texts, or a smaller --length"):
        inspect_run("runs/gpt", ["rows.csv"], 4, 9, 0.1, 0)


def test_windows_longer_than_the_model_reads_are_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(monkeypatch)
    with pytest.raises(UsageError, match="reads 16 at most"):
        inspect_run("runs/gpt", ["novel.txt"], 2, 17, 0.1, 0)


def test_a_model_without_heads_is_refused_before_the_text_is_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "load_language_model", lambda path: object())
    with pytest.raises(InklingError, match="runs/x holds a model without attention heads"):
        inspect_run("runs/x", ["there-is-no-such.txt"], 4, 8, 0.1, 0)


def test_the_command_shows_the_heads_of_a_run(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from inkling.cli.app import main

    opened(monkeypatch)
    run = ["attention", "inspect", "runs/gpt", "--on", "novel.txt", "--length", "8", "--texts", "3", "--html", "h.html"]
    assert main([*run, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [head["name"] for head in found["heads"]] == ["1.1", "1.2", "2.1", "2.2"]
    assert found["texts"] == 3
    assert "<svg" in (here / "h.html").read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------ of the small model


@pytest.mark.parametrize("texts", [2, 32])
def test_the_small_model_is_watched_on_texts_that_it_was_not_trained_on(
    texts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[torch.Tensor] = []

    def keep(model: Attentive, ids: torch.Tensor, **options: object) -> Census:
        seen.append(ids)
        charged = options["charged"]
        assert isinstance(charged, torch.Tensor)
        assert charged.shape == ids.shape
        assert not charged[:, :10].any()  # a stretch has at least 8 tokens, and its first repetition is a surprise
        return census(model, ids)

    monkeypatch.setattr(inspection, "census", keep)
    inspect_small(5, texts, 1, 0.1)
    (ids,) = seen
    assert ids.shape == (texts, LENGTH)
    assert (ids[:, 0] == BEGIN).all()
    fresh = {tuple(row) for row in ids[:, 1:].tolist()}
    trained = {tuple(row) for step in range(500) for row in repeats_batch(step, 5).targets.tolist()}
    assert len(trained) == 500 * 32
    assert not fresh & trained


def test_the_small_model_is_a_function_of_its_seed_and_tells_its_steps() -> None:
    steps: list[Step] = []
    first = inspect_small(1, 3, 4, 0.2, steps.append)
    assert len(steps) == 4
    assert first.to_json() == inspect_small(1, 3, 4, 0.2).to_json()
    assert first.to_json() != inspect_small(2, 3, 4, 0.2).to_json()
    assert (first.texts, first.key_noise, len(first.heads)) == (3, 0.2, 8)
    rows = first.maps.maps[0].rows
    assert rows[0] == "▸"
    assert all(len(name) == 1 and name.isalpha() for name in rows[1:])


@pytest.mark.parametrize("steps", [0, -1, 100_001])
def test_a_number_of_steps_that_makes_no_sense_is_refused(steps: int) -> None:
    with pytest.raises(UsageError, match=f"training steps is {steps}; give a whole number from 1"):
        inspect_small(0, 4, steps, 0.1)
