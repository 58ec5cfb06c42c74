"""D5 on small stand-ins for the files: the reviews are found, the phrases left out, and the rule of the verdict."""

from __future__ import annotations

import csv
import io
import lzma
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from inkling.claims import mistakes
from inkling.claims.ledger import Context, Finding
from inkling.claims.mistakes import CLAIMS, Case, Networks, find_phrases, judge, misread, read_cases, train_networks
from inkling.explain.words import effects_of, explain
from inkling.figures import Table
from inkling.models.dan import AveragingNetwork
from inkling.text.words import find_words

pytestmark = pytest.mark.slow

GOOD, BAD, REST = (
    ("bright", "warm", "clever", "lovely"),
    ("dull", "cold", "clumsy", "awful"),
    ("film", "plot", "a", "it"),
)
CASES = (("neg", 7), ("pos", 40), ("neg", 2))
PHRASES = ("Lovely film", "DULL, cold", "warm and clever", "never in any of them")
# The review 7 of the other side must not be taken for ours, nor 40 of the negative side.
REVIEWS = (
    ("A plot, it is awful but a lovely film.", 0, 7),
    ("Another film.", 1, 7),
    ("Another plot.", 0, 40),
    ("The lovely film is warm and clever. It is a dull film, and clumsy.", 0, 2),
    ("A clever plot: bright, with a dull, cold scene.", 1, 40),
)
STUDENT_4 = 2.7764451052  # the 0.975 quantile with 4 degrees of freedom, from a table


def write_reviews(path: Path, rows: Sequence[tuple[str, int, int]]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([("text", "label", "rating", "id"), *((text, label, 1, i) for text, label, i in rows)])
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress(out.getvalue().encode()))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("data")
    generator = np.random.default_rng(0)
    learned = []
    for row in range(160):
        own, other = (GOOD, BAD) if row >= 80 else (BAD, GOOD)
        words = [*generator.choice(own, 3), generator.choice(other), *generator.choice(REST, 3), f"only{row}"]
        learned.append((" ".join(generator.permutation(words)), int(row >= 80), row))
    write_reviews(folder / mistakes.TRAIN, learned)
    write_reviews(folder / mistakes.TEST, REVIEWS)
    vectors = generator.normal(0, 0.1, (12, 3)).astype(np.float32)
    vectors[:, 0] += np.repeat(np.array([1, -1, 0], np.float32), 4)  # one direction tells good from bad
    path = folder / mistakes.VECTORS
    path.parent.mkdir()
    np.savez(path, words=np.frombuffer("\n".join((*GOOD, *BAD, *REST)).encode(), np.uint8), vectors=vectors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INKLING_CACHE", str(folder / "cache"))
        patch.setattr(mistakes, "CASES", CASES)
        patch.setattr(mistakes, "PHRASES", PHRASES)
        yield folder


@pytest.fixture(scope="module")
def networks(data: Path) -> Networks:
    return train_networks(data)


@pytest.fixture(scope="module")
def cases(data: Path) -> list[Case]:
    return read_cases(data / mistakes.TEST)


@pytest.fixture(scope="module")
def finding(data: Path, networks: Networks) -> Finding:
    return misread(Context(data))


def table(finding: Finding, place: int) -> Table:
    found = finding.exhibits[place]
    assert isinstance(found, Table)
    return found


def odds_of(network: AveragingNetwork, text: str, label: int) -> float:
    return float(torch.logit(network.log_probs([text])[0, label].double().exp()))


def test_without_data_the_claim_is_not_run(tmp_path: Path) -> None:
    for context in (Context(), Context(tmp_path)):
        found = CLAIMS[0].test(context)
        assert (found.verdict, found.figures) == ("not run", {})
        assert "--data" in found.measured


def test_the_reviews_are_found_by_number_and_side_in_the_order_of_the_file(cases: list[Case]) -> None:
    assert cases == [
        Case("neg 7", REVIEWS[0][0], 0),
        Case("neg 2", REVIEWS[3][0], 0),
        Case("pos 40", REVIEWS[4][0], 1),
    ]


def test_a_phrase_is_found_wherever_it_stands_whatever_its_case(cases: list[Case]) -> None:
    found = find_phrases(cases)
    assert [(phrase.words, cases[phrase.case].name) for phrase in found] == [
        ("Lovely film", "neg 7"),
        ("Lovely film", "neg 2"),
        ("DULL, cold", "pos 40"),
        ("warm and clever", "neg 2"),
    ]
    for phrase in found:
        text = cases[phrase.case].text
        words = find_words([text])
        assert text[words.starts[phrase.first] : words.ends[phrase.last - 1]].lower() == phrase.words.lower()


def test_the_networks_are_as_published_and_one_of_ours(networks: Networks) -> None:
    assert len(networks.published) == mistakes.SEEDS
    for network in networks.published:
        assert (network.config.words, network.config.depth, network.config.dimension) == (1, 2, 3)
        assert torch.equal(network.vectors, networks.published[0].vectors)  # frozen
    one, other = (network.layers for network in networks.published[:2])
    assert not any(torch.equal(one[name], other[name]) for name in one)  # seeds differ
    assert (networks.ours.config.words, networks.ours.config.dimension) == (3, 0)


def test_the_figures_are_what_leaving_a_phrase_out_does_to_the_odds_of_the_wrong_verdict(
    finding: Finding, networks: Networks, cases: list[Case]
) -> None:
    found = find_phrases(cases)
    rows = {(row[0], row[1]): row for row in table(finding, 0).rows}
    assert len(rows) == len(found) == 4
    for phrase in found:
        case = cases[phrase.case]
        span = np.array([[phrase.first, phrase.last]])
        effects = [effects_of(n, [case.text], [span])[0][0, 1 - case.truth] for n in networks.published]
        _, _, mean, low, high, ours, _ = rows[phrase.words, case.name]
        reach = STUDENT_4 * float(np.std(effects, ddof=1)) / math.sqrt(5)
        assert (mean, low, high) == pytest.approx(
            (np.mean(effects), np.mean(effects) - reach, np.mean(effects) + reach), abs=1e-9
        )
        assert ours == pytest.approx(effects_of(networks.ours, [case.text], [span])[0][0, 1 - case.truth], abs=1e-12)
        # The same without any of our explanations: the text is shortened by hand and read again.
        start = case.text.lower().index(phrase.words.lower())
        without = case.text[:start] + case.text[start + len(phrase.words) :]
        by_hand = [
            odds_of(n, case.text, 1 - case.truth) - odds_of(n, without, 1 - case.truth) for n in networks.published
        ]
        assert effects == pytest.approx(by_hand, abs=1e-4)
    assert finding.figures["DULL, cold (nats)"] == rows["DULL, cold", "pos 40"][2]


def test_the_rank_counts_the_single_words_that_move_our_model_more(
    finding: Finding, networks: Networks, cases: list[Case]
) -> None:
    by_name = {case.name: explain(networks.ours, [case.text])[0] for case in cases}
    for row in table(finding, 0).rows:
        own, rank = row[5], row[6]
        assert isinstance(own, float)
        assert rank == 1 + sum(abs(value) > abs(own) for value in by_name[str(row[1])].effects[:, 0].tolist())


def test_the_reviews_are_counted_as_the_networks_read_them(
    finding: Finding, networks: Networks, cases: list[Case]
) -> None:
    said = []
    for case, row in zip(cases, table(finding, 1).rows, strict=True):
        wrong = sum(int(n.log_probs([case.text]).argmax()) != case.truth for n in networks.published)
        first = networks.published[0]
        p = float(first.log_probs([case.text])[0, 1 - case.truth].exp())
        assert row[:3] == (case.name, wrong, f"{p:.0%}")
        assert (row[4] == "read rightly") == (int(first.log_probs([case.text]).argmax()) == case.truth)
        assert row[5] == pytest.approx(odds_of(networks.ours, case.text, 1 - case.truth), abs=1e-5)
        said.append(f"{case.name} {wrong} of 5 seeds")
    ours = sum(int(networks.ours.log_probs([case.text]).argmax()) != case.truth for case in cases)
    assert finding.measured.startswith(
        f"misread by the published network with 100-d vectors: {', '.join(said)}; by ours {ours} of 3."
    )


def test_the_verdict_follows_the_phrases_whose_interval_leaves_out_zero(networks: Networks) -> None:
    """Of a review that speaks ill, good words push towards the wrong verdict and bad words away from it."""
    cases = [Case("neg 1", "a bright film, and warm; it is dull, and awful", 0)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mistakes, "PHRASES", ("bright film", "warm", "dull", "awful"))
        bright, warm, dull, awful = find_phrases(cases)
    holds = judge(networks, cases, [bright, warm])
    assert holds.verdict == "holds"
    assert holds.measured.endswith("Pushed towards the wrong verdict: 'bright film', 'warm'; away from it: none")
    some = judge(networks, cases, [bright, dull])
    assert some.verdict == "holds if"
    assert some.measured.endswith("Pushed towards the wrong verdict: 'bright film'; away from it: 'dull'")
    fails = judge(networks, cases, [dull, awful])
    assert fails.verdict == "fails"
    assert fails.measured.endswith("Pushed towards the wrong verdict: none; away from it: 'dull', 'awful'")
    assert all(value < 0 for value in fails.figures.values())


def test_the_networks_are_trained_once(data: Path, networks: Networks) -> None:
    assert train_networks(data) is networks
