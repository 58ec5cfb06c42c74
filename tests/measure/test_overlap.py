"""Evaluation text inside the training text is found, exact or nearly so, and what is not there is not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.measure.overlap import Overlap, OverlapSearch
from inkling.text.grammar import grammar_text

TRAIN = grammar_text(np.random.default_rng(1), 30_000)
FRESH = grammar_text(np.random.default_rng(2), 3000)


def look(evaluation: str, training: str, step: int = 1000) -> Overlap:
    search = OverlapSearch([evaluation])
    lines = training.splitlines(keepends=True)
    for i in range(0, len(lines), step):
        search.read(lines[i : i + step])
    return search.found("x.txt", "train.txt")


def test_fresh_text_is_not_found() -> None:
    found = look(FRESH, TRAIN)
    assert found.exact_share < 0.02
    assert found.near_share < 0.01


def test_a_passage_copied_word_for_word_is_found_with_its_share_and_shown() -> None:
    copied = TRAIN[40_000:46_000]
    found = look(FRESH + copied, TRAIN)
    share = len(copied) / len(FRESH + copied)
    assert share <= found.exact_share < share + 0.02
    assert found.near_share == pytest.approx(share, abs=0.03)
    assert found.serious
    assert " ".join(copied.split())[:100] in found.examples[0] + " "
    assert found.sentence().startswith(f"Warning: {found.exact_share:.1%} of x.txt stands word for word")


def test_white_space_makes_no_difference_but_capitals_do() -> None:
    copied = TRAIN[40_000:46_000]
    assert look(copied.replace(" ", "\n  "), TRAIN).exact_share == 1.0
    shouted = look(copied.upper(), TRAIN)
    assert shouted.exact_share == 0.0
    assert shouted.near_share > 0.99  # near is told by words alone


def test_a_passage_with_every_sixteenth_word_changed_is_nearly_the_same() -> None:
    words = TRAIN[40_000:46_000].split()
    words[::16] = ["zebra"] * len(words[::16])  # of 16 runs of 6 words, 10 are left
    found = look(" ".join(words), TRAIN)
    assert found.near_share > 0.9
    assert found.examples


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 400))
def test_where_the_training_text_is_cut_into_blocks_changes_nothing(step: int) -> None:
    text = FRESH[:2000] + TRAIN[1000:3000]
    assert look(text, TRAIN[:20_000], step) == look(text, TRAIN[:20_000])


@pytest.mark.parametrize("text", ["", "short", "one two three four five six seven"])
def test_texts_shorter_than_a_window_are_no_trouble(text: str) -> None:
    for training in ("", "a b", TRAIN[:500]):
        found = look(text, training)
        assert (found.exact_share, found.near_share, found.serious) == (0.0, 0.0, False)


def test_of_a_large_text_only_the_first_part_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inkling.measure.overlap.CHECKED_BYTES", 1000)
    found = look(TRAIN[:500] + FRESH, TRAIN)
    assert not found.whole
    assert found.checked_bytes <= 1000
    assert "its first" in found.sentence()


def test_a_training_text_is_read_at_megabytes_a_second() -> None:
    lines = (TRAIN * 10).splitlines(keepends=True)
    size = sum(map(len, lines))
    search = OverlapSearch([FRESH])
    started = time.process_time()
    search.read(lines)
    assert size / (time.process_time() - started) > 1e6


@pytest.mark.data
@pytest.mark.skipif("INKLING_TEST_DATA" not in os.environ, reason="INKLING_TEST_DATA names no folder of real sets")
def test_the_shakespeare_passage_lies_inside_tinyshakespeare() -> None:
    data = Path(os.environ["INKLING_TEST_DATA"])
    whole = (data / "tinyshakespeare/input.txt").read_text(encoding="utf-8")
    found = look((data / "ptb/tau/shakespeare_for_perplexity.txt").read_text(encoding="utf-8"), whole, 10_000)
    assert (found.exact_share, found.near_share) == (1.0, 1.0)
    assert "the deeds of Coriolanus" in found.examples[0]
    lines = whole.splitlines(keepends=True)
    honest = look("".join(lines[36_000:]), "".join(lines[:36_000]))
    assert not honest.serious
