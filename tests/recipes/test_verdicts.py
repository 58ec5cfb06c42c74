"""Verdicts row by row: the same in any blocks, with reasons that brute force confirms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from inkling.errors import UsageError
from inkling.explain.words import explain
from inkling.models.dan import AveragingNetwork, DANConfig
from inkling.recipes import verdicts
from inkling.recipes.averaging import ScoreSettings, choose_bits, fit_scores
from inkling.recipes.data import TextConfig, open_corpus
from inkling.recipes.verdicts import Reasons, choose_threshold, classify_rows
from inkling.runs.run import Run

LABELS = ("bad", "fair", "good")
LOUD = {"bad": ("dull", "awful"), "fair": ("usual", "plain"), "good": ("superb", "witty")}
WORDS = ("the", "film", "was", "and", "plot", "music", "it")


def texts_and_truth(count: int) -> tuple[list[str], list[int]]:
    generator = np.random.default_rng(7)
    texts = []
    for i in range(count):
        words = [*generator.choice(WORDS, 6), generator.choice(LOUD[LABELS[i % 3]])]
        texts.append(" ".join(generator.permutation(words).tolist()) + ".")
    return texts, [i % 3 for i in range(count)]


TEXTS, TRUTH = texts_and_truth(240)


@pytest.fixture(scope="module")
def network() -> AveragingNetwork:
    held = np.arange(240) % 10 == 0
    sizes = DANConfig(words=1, distinct=True)
    sizes = DANConfig(words=1, distinct=True, bits=choose_bits(TEXTS, sizes))
    settings = ScoreSettings(1.0, 0.0, 1, False, True)
    return fit_scores(TEXTS, np.array(TRUTH), LABELS, held, sizes, settings, lambda done, total, what: None).network


def written(folder: Path, texts: list[str]) -> str:
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return str(folder / "texts.txt")


@pytest.mark.parametrize("why", [False, True])
def test_blocks_are_bounded_and_change_nothing(
    why: bool, network: AveragingNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "BLOCK_CHARS", 4000)
    monkeypatch.setattr(verdicts, "LEAST_BLOCK_CHARS", 500)
    corpus = open_corpus([written(tmp_path, TEXTS * 5)], TextConfig())
    read: list[int] = []
    blocks = list(classify_rows(network, corpus, why=why, on_bytes=read.append))
    limit = 2 * 4000 // 3 if why else 4000
    assert len(blocks) >= sum(map(len, TEXTS)) * 5 // (2 * limit)
    assert max(sum(len(row.text) for row in block.rows) for block in blocks) <= 2 * limit
    assert read[-1] == corpus.size_bytes
    assert sum(map(len, blocks)) == corpus.intake.rows_used == 1200
    whole = network.log_probs(TEXTS * 5).numpy()
    np.testing.assert_array_equal(np.concatenate([block.log_probs for block in blocks]), whole)
    assert [len(block.reasons) for block in blocks] == [len(block) if why else 0 for block in blocks]


def test_a_block_is_read_only_when_it_is_asked_for(
    network: AveragingNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "BLOCK_CHARS", 1000)
    corpus = open_corpus([written(tmp_path, TEXTS * 50)], TextConfig())
    read: list[int] = []
    first = next(classify_rows(network, corpus, on_bytes=read.append))
    assert len(first) < 200
    assert max(read, default=0) < corpus.size_bytes / 2


def test_reasons_are_told_against_the_runner_up_and_brute_force_confirms_them(network: AveragingNetwork) -> None:
    text = "The usual film was dull. Superb and witty music."
    [found] = explain(network, [text])
    order = found.log_probs.argsort()[::-1]
    why = Reasons.of(found, int(order[0]))
    assert (why.verdict, why.runner_up) == (LABELS[order[0]], LABELS[order[1]]) == ("good", "bad")
    margin = float(found.log_probs[order[0]] - found.log_probs[order[1]])
    empty = network.log_probs([""]).double()[0]
    before = float(empty[int(order[0])] - empty[int(order[1])])
    assert why.weighed.shares.sum() == pytest.approx(margin - before, abs=1e-5)
    [dull] = [word for word in why.contra if word.word == "dull"]
    without = network.log_probs([text.replace("dull", "")]).double()[0]
    expected = margin - float(without[int(order[0])] - without[int(order[1])])
    assert dull.effect == pytest.approx(expected, abs=1e-5)
    assert dull.share < 0 < why.pro[0].share
    assert {word.word for word in why.pro} >= {"superb", "witty"}
    assert all(np.diff([word.strength for word in why.pro]) <= 0)
    assert why.sentence is not None
    assert why.sentence[0] == "Superb and witty music."
    assert set(why.to_json()) == {"rather_than", "for", "against", "decided_by"}


@pytest.mark.parametrize("text", ["!", "zyzzyva", "日本語", "a" * 5000])
def test_a_text_that_the_network_knows_nothing_of_has_a_verdict_and_no_reasons(
    text: str, network: AveragingNetwork
) -> None:
    [found] = explain(network, [text])
    why = Reasons.of(found, found.verdict)
    assert (why.pro, why.contra) == ((), ())
    empty = network.read(torch.zeros(1, network.vectors.shape[1]))[0]
    np.testing.assert_allclose(found.log_probs, empty.numpy(), atol=1e-6)


def test_the_threshold_is_that_of_the_run_unless_one_is_given() -> None:
    run = Run(Path("run"), {"summary": {"unsure_below": 0.7}})
    assert choose_threshold(run, None) == 0.7
    assert choose_threshold(run, 0.0) == 0.0
    assert choose_threshold(Run(Path("run"), {"summary": {"unsure_below": None}}), None) is None
    assert choose_threshold(Run(Path("run"), {}), None) is None  # not finished
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError, match="give a probability from 0 to 1"):
            choose_threshold(run, wrong)
