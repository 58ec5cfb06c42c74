"""Reasons for mistakes, groups of mistakes and deletion curves, on models small enough to reckon by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.explain.errors import BATCH, ErrorReport, diagnose
from inkling.explain.faithfulness import deletion_curve, share_of_verdict
from inkling.explain.reasons import (
    LABEL,
    MEANING,
    MIXTURE,
    NARROW,
    NEGATION,
    STRONG_WORDS,
    UNKNOWN,
    WEAK,
    Leanings,
    Mistake,
    find_negators,
    judge_mistake,
)
from inkling.explain.weighing import Weighed, blank, find_strong, margin_effects, weigh
from inkling.explain.words import Explanation

Floats = NDArray[np.float64]

WORD = re.compile(r"n't|\w+?(?=n't)|\w+|[^\w\s]")
NEG, POS = 0, 1
LOUD = {"good": 1.0, "great": 2.0, "superb": 4.0, "fine": 0.4, "nice": 0.5, "bad": -1.0, "awful": -2.0, "dire": -4.0}
LOUD |= dict.fromkeys(["kind", "warm", "wry", "deft"], 1.0)
PLAIN = ["the", "a", "film", "is", "was", "it", "and", "but", "only", "in", "of", "story", "plot", "do", "did"]
WEIGHTS: dict[str, float] = {**LOUD, **dict.fromkeys([*PLAIN, "not", "n't", "never"], 0.0)}


class Sum:
    """log-odds of pos = bias + Σ weights of the words: leaving one out takes away its weight, exactly.

    `mean`: the sum over the number of known words; `distinct`: a word counts once, however often it stands there.
    """

    labels = ("neg", "pos")

    def __init__(
        self, weights: Mapping[str, float] = WEIGHTS, mean: bool = False, distinct: bool = False, bias: float = 0.0
    ) -> None:
        self.weights, self.mean, self.distinct, self.bias = weights, mean, distinct, bias

    def parts(self, words: Sequence[str]) -> list[float]:
        spelled = [word.lower() for word in words]
        known = [word for word in spelled if word in self.weights]
        size = max(1, len(set(known) if self.distinct else known)) if self.mean else 1
        counts = {word: spelled.count(word) if self.distinct else 1 for word in spelled}
        return [self.weights.get(word, 0.0) / (size * counts[word]) for word in spelled]

    def odds(self, words: Sequence[str]) -> float:
        return self.bias + sum(self.parts(words))

    def log_probs(self, texts: Sequence[str]) -> Floats:
        odds = np.array([self.odds(WORD.findall(text)) for text in texts])
        return np.stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)], axis=1)

    def explain(self, text: str) -> Explanation:
        found = list(WORD.finditer(text))
        words = [one[0] for one in found]
        ends = [i + 1 for i, word in enumerate(words) if word in ".!?" or i == len(words) - 1]
        sentences = list(zip([0, *ends], ends, strict=False))
        whole = self.odds(words)
        single = [whole - self.odds(words[:i] + words[i + 1 :]) for i in range(len(words))]
        joint = [whole - self.odds(words[:first] + words[last:]) for first, last in sentences]
        return Explanation(
            text=text,
            labels=self.labels,
            log_probs=self.log_probs([text])[0],
            starts=np.array([one.start() for one in found], np.int64),
            ends=np.array([one.end() for one in found], np.int64),
            known=np.array([word.lower() in self.weights for word in words], np.bool_),
            effects=np.array([[-effect, effect] for effect in single]).reshape(-1, 2),
            parts=np.array([[-part / 2, part / 2] for part in self.parts(words)]).reshape(-1, 2),
            sentences=np.array(sentences, np.int64).reshape(-1, 2),
            sentence_effects=np.array([[-effect, effect] for effect in joint]).reshape(-1, 2),
        )


def weighed(text: str, verdict: int = POS, model: Sum | None = None) -> Weighed:
    return weigh((model or Sum()).explain(text), verdict, 1 - verdict)


def judged(text: str, truth: int, model: Sum | None = None, leanings: Leanings | None = None) -> Mistake:
    model = model or Sum()
    return judge_mistake(model.explain(text), truth, 1 - truth, 7, leanings, model.log_probs)


def reported(texts: Sequence[str], truth: Sequence[int], model: Sum | None = None, most: int = 50) -> ErrorReport:
    model = model or Sum()
    return diagnose(
        model.labels,
        np.array(truth, np.int64),
        model.log_probs(texts),
        lambda places: [model.explain(texts[place]) for place in places],
        model.log_probs,
        rows=[place + 2 for place in range(len(texts))],
        most=most,
        name="sum",
        text_name="texts",
    )


# ------------------------------------------------------------------------------------------------ effects and shares


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-5, 5), min_size=3, max_size=6), st.data())
def test_effects_on_log_odds_become_effects_on_the_margin(logits: list[float], data: st.DataObject) -> None:
    classes = len(logits)
    weights = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=classes, max_size=classes)))

    def scored(values: Floats) -> tuple[Floats, Floats]:
        log_probs = values - np.logaddexp.reduce(values)
        odds = [one - np.logaddexp.reduce(np.delete(log_probs, i)) for i, one in enumerate(log_probs)]
        return log_probs, np.array(odds)

    (with_it, odds_with), (without, odds_without) = scored(np.array(logits)), scored(np.array(logits) - weights)
    effects = (odds_with - odds_without)[None, :]
    expected = (with_it[2] - with_it[0]) - (without[2] - without[0])
    assert margin_effects(with_it, effects, 2, 0) == pytest.approx([expected], abs=1e-9)
    assert expected == pytest.approx(weights[2] - weights[0], abs=1e-9)  # a softmax: other labels cancel


def test_in_two_classes_the_effect_is_that_on_the_verdict() -> None:
    found = weighed("great film but awful story, superb plot")
    assert found.effects.tolist() == pytest.approx([2, 0, 0, -2, 0, 0, 4, 0])
    assert found.margin == pytest.approx(4.0)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.sampled_from([*WEIGHTS, "qwx", ".", "!"]), max_size=20), st.booleans(), st.booleans(), st.floats(-2, 2)
)
def test_shares_sum_to_the_margin_less_that_of_an_empty_text(
    words: list[str], mean: bool, distinct: bool, bias: float
) -> None:
    found = weighed(" ".join(words), NEG, Sum(mean=mean, distinct=distinct, bias=bias))
    assert found.shares.sum() == pytest.approx(found.margin + bias, abs=1e-9)
    assert found.sentence_shares.sum() == pytest.approx(found.margin + bias, abs=1e-9)
    assert found.empty == pytest.approx(-bias, abs=1e-9)
    assert not found.shares[~found.known].any()


def test_in_an_average_a_neutral_word_has_an_effect_but_no_share() -> None:
    found = weighed("the film great great", model=Sum(mean=True))  # mean 1; without "the" 4/3, without "great" 2/3
    assert found.effects.tolist() == pytest.approx([-1 / 3, -1 / 3, 1 / 3, 1 / 3])
    assert found.shares.tolist() == pytest.approx([0, 0, 1 / 2, 1 / 2])


def test_where_words_count_once_each_of_two_has_half_the_share_and_no_effect() -> None:
    found = weighed("great film, great! Bad.", model=Sum(distinct=True))
    assert found.effects.tolist() == pytest.approx([0, 0, 0, 0, 0, -1, 0])
    assert found.shares.tolist() == pytest.approx([1, 0, 0, 1, 0, -1, 0])
    assert found.sentence_shares.tolist() == pytest.approx([2, -1])
    assert found.sentence_effects.tolist() == pytest.approx([2, -1])


def test_three_labels_are_weighed_two_at_a_time() -> None:
    found = Explanation(
        text="a b",
        labels=("x", "y", "z"),
        log_probs=np.log([0.2, 0.5, 0.3]),
        starts=np.array([0, 2]),
        ends=np.array([1, 3]),
        known=np.array([True, True]),
        effects=np.zeros((2, 3)),
        parts=np.array([[1.0, 2.0, 4.0], [0.5, 0.25, 0.0]]),
        sentences=np.array([[0, 2]]),
        sentence_effects=np.zeros((1, 3)),
    )
    assert weigh(found, 1, 2).shares.tolist() == [-2.0, 0.25]
    assert weigh(found, 1, 2).sentence_shares.tolist() == [-1.75]
    assert weigh(found, 1, 0).margin == pytest.approx(np.log(2.5))
    # against both others, by their probabilities: 2 − (0.4 · 1 + 0.6 · 4) and 0.25 − 0.4 · 0.5
    assert share_of_verdict(found).tolist() == pytest.approx([-0.8, 0.05])


def test_the_sentences_that_decided_and_opposed_are_found() -> None:
    found = weighed("The plot was awful. A superb film! Fine story. It was bad.")
    assert found.sentence(found.decider) == "A superb film!"
    assert found.sentence(found.opponent) == "The plot was awful."
    assert found.sentence_effects.tolist() == pytest.approx([-2, 4, 0.4, -1])
    assert weighed("A superb film. Great story.").opponent is None
    assert weighed("").decider is None


def test_a_sentence_with_next_to_no_share_speaks_for_nobody() -> None:
    model = Sum({"superb": 4.0, "the": -0.03})
    assert weighed("superb! the.", model=model).opponent is None
    assert weighed("superb! the the.", model=model).opponent == 1


def test_a_word_that_stands_n_times_is_as_strong_as_its_shares_over_the_root_of_n() -> None:
    pro, contra = find_strong(weighed("great great great great dire the nice superb bad"))
    assert [(word.word, word.count, word.strength) for word in pro] == [("great", 4, 4.0), ("superb", 1, 4.0)]
    assert [(word.word, word.share) for word in contra] == [("dire", -4.0), ("bad", -1.0)]  # nice: under a quarter
    assert [str(word) for word in pro] == ["“great” (4×)", "“superb”"]
    borrowed = Sum({"worst": -1.0, "the": -0.1})  # sums -1 and -1
    assert [word.word for word in find_strong(weighed("the " * 10 + "worst", NEG, borrowed))[0]] == ["worst", "the"]
    assert [word.word for word in find_strong(weighed("the " * 5 + "worst", NEG, borrowed))[0]] == ["worst"]


def test_marks_and_rounding_are_no_strong_words() -> None:
    found, _ = find_strong(weighed("! great ! film", model=Sum({"!": 9.0, "great": 1.0, "film": 1e-15})))
    assert [word.word for word in found] == ["great"]
    assert find_strong(weighed("the film")) == ([], [])


# ------------------------------------------------------------------------------------------------ reasons


@pytest.mark.parametrize(
    ("text", "truth", "kind", "evidence"),
    [
        (
            "superb qwx zzz vvv",
            NEG,
            UNKNOWN,
            "knows 1 of 4 words, too little to judge by; unknown are “qwx”, “zzz” and “v",
        ),
        ("great qwx", NEG, UNKNOWN, "knows 1 of 2 words, too little to judge by; unknown are “qwx”."),
        ("good film qwx", NEG, UNKNOWN, "knows 2 of 3 words"),
        ("great film", NEG, STRONG_WORDS, "Without “great” the 2.00 nats for pos would be 0.00 for neg."),
        ("dire", POS, LABEL, "“dire” … give 4.00 nats for neg, and nothing strong for pos"),
        (
            "the plot is not a great story",
            NEG,
            NEGATION,
            "“not a great” the negated words still count 2.00 of 2.00 nats",
        ),
        (
            "it didn't do good in the film, nice",
            NEG,
            NEGATION,
            "In “didn't do good” the negated words still count 1.00",
        ),
        ("the film is never awful, the story only bad", POS, NEGATION, "“never awful”"),
        (
            "superb story, superb plot, a great film",
            NEG,
            LABEL,
            "“superb” (2×), “great” … give 10.00 nats for pos, and nothing",
        ),
        (
            "superb but bad bad bad, the film is nice",
            NEG,
            STRONG_WORDS,
            "Without “superb” the 1.50 nats for pos would be 2.50 for neg.",
        ),
        (
            "great film and great good plot but awful dire bad, fine superb",
            NEG,
            MIXTURE,
            "for neg from “dire”, “awful” and",
        ),
        ("fine film, the plot and story", NEG, NARROW, "Nearly undecided: 0.40 nats for pos, 59.9 %."),
        (
            "kind warm wry deft good film, bad",
            NEG,
            WEAK,
            "More than a few words make the 4.00 nats for pos; strongest are “kind” (1.00), “warm” (1.00) and “wry” (1",
        ),
    ],
)
def test_each_reason_comes_with_its_evidence(text: str, truth: int, kind: str, evidence: str) -> None:
    case = judged(text, truth).case
    assert case.kind == kind
    assert evidence in case.reason


@pytest.mark.parametrize(
    "text",
    [
        "the film is not only great and it is a film",
        "it is not. great film, the story was in it",
        "it is not the film but great and it was a story",
        "not in the film of it was great and a story",  # six words away
    ],
)
def test_a_negator_that_does_not_reach_the_word_is_no_reason(text: str) -> None:
    assert judged(text, NEG).case.kind != NEGATION


def test_a_few_words_are_taken_out_to_see_and_all_their_places() -> None:
    asked: list[list[str]] = []

    def stubborn(texts: list[str]) -> Floats:
        asked.append(texts)
        return Sum().log_probs(["the great film"] * len(texts))

    found = Sum().explain("superb and Superb but bad bad dire, great")
    assert judge_mistake(found, NEG, POS, 7, None, stubborn).case.kind == MIXTURE  # it would still be pos
    assert asked == [["       and        but bad bad dire, great", "       and        but bad bad dire,      "]]
    case = judge_mistake(found, NEG, POS, 7, None, Sum().log_probs).case
    assert case.reason == "Without “superb” (2×) the 4.00 nats for pos would be 4.00 for neg."
    assert judge_mistake(found, NEG, POS, 7).case == case  # by shares, which are exact in a sum


def test_only_a_word_that_speaks_for_the_verdict_outside_negation_too_was_lost() -> None:
    text = "the film is not great and it is a film"
    pairs = Sum({**WEIGHTS, "great": -2.0})  # as if the model had learned the pair "not great"
    leanings = Leanings(2)
    for _ in range(3):
        leanings.add(Sum().explain("a great film"))
    assert judged(text, POS, pairs).case.kind == NEGATION
    assert judged(text, POS, pairs, leanings).case.kind != NEGATION
    assert judged(text, NEG, Sum(), leanings).case.kind == NEGATION


def test_leanings_count_places_outside_negation_and_the_texts_that_hold_a_word() -> None:
    leanings = Leanings(2)
    leanings.add(Sum().explain("not great, awful"))
    assert leanings.allow("great", NEG)  # negated, so nothing is known of it
    assert leanings.allow("awful", POS)  # within three words of the negator, too
    leanings.add(Sum().explain("great film, great"))
    leanings.add(Sum({"great": -1.0}).explain("great"))
    assert leanings.allow("great", POS)  # in two of three places
    assert not leanings.allow("great", NEG)
    assert not leanings.allow("film", POS)  # for nobody
    assert leanings.allow("never met", POS)
    assert leanings.rarity("great") == pytest.approx(np.log(4 / 3))
    assert leanings.rarity("film") == pytest.approx(np.log(4 / 1))
    assert leanings.rarity("never met") == pytest.approx(np.log(4 / 1))


def test_words_that_speak_for_the_verdict_only_here_lead_no_group() -> None:
    leanings = Leanings(2)
    leanings.add(Sum({"a": -1.0, "great": 1.0}).explain("a great film"))
    borrowed = Sum({"a": 1.0, "great": 1.5, "film": 0.0})
    assert [word for word, _ in judged("a great film", NEG, borrowed).case.words] == ["great", "a"]
    assert [word for word, _ in judged("a great film", NEG, borrowed, leanings).case.words] == ["great"]


def test_the_negator_of_a_word_is_the_nearest_in_its_clause() -> None:
    assert find_negators(["is", "n't", "the", "very", "best", "of", "all"]) == [None, None, 1, 1, 1, None, None]
    assert find_negators(["never", "not", "good", "...", "but", "no", "doubt", "best"]) == [None, 0, 1, *[None] * 5]


def test_many_weak_words_can_outvote_a_strong_one() -> None:
    model = Sum({"dire": -1.0, **dict.fromkeys("abcdefgh", 0.2)})
    case = judged("a b c d e f g h dire", NEG, model).case
    assert case.kind == WEAK
    assert case.reason == "More than a few words make the 0.60 nats for pos; strongest is “dire” (1.00 for neg)."


def test_a_text_without_words_is_judged_too() -> None:
    case = judged("", NEG).case
    assert (case.kind, case.words, case.margin) == (UNKNOWN, (), 0.0)
    assert judged("?!", NEG).case.reason == case.reason == "The text has no words, so there is nothing to judge by."


# ------------------------------------------------------------------------------------------------ reports

texts_of_words = st.lists(st.sampled_from([*WEIGHTS, ".", "!", "qwx"]), max_size=12).map(" ".join)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(texts_of_words, st.integers(0, 1)), min_size=1, max_size=30))
@pytest.mark.slow
def test_every_mistake_has_one_reason_and_at_most_one_group(rows: list[tuple[str, int]]) -> None:
    texts, truth = [text for text, _ in rows], [label for _, label in rows]
    report = reported(texts, truth, most=5)
    wrong = np.flatnonzero(Sum().log_probs(texts).argmax(axis=1) != np.array(truth))
    assert sorted(case.row - 2 for case in report.cases) == wrong.tolist()
    assert sum(report.reasons.values()) == len(report.cases)
    assert list(report.reasons) == list(MEANING)
    assert len(report.mistakes) == min(5, len(wrong))
    probabilities = [case.probability for case in report.cases]
    assert probabilities == sorted(probabilities, reverse=True)
    grouped = [row for group in report.groups for row in group.rows]
    assert len(grouped) == len(set(grouped))
    kinds = {case.row: (case.truth, case.verdict) for case in report.cases}
    for group in report.groups:
        assert len(group.rows) >= 3
        assert {kinds[row] for row in group.rows} == {(group.truth, group.verdict)}
        assert group.example.case.row == group.rows[0]
    assert json.loads(json.dumps(report.to_json()))["mistake_count"] == len(wrong)


def test_mistakes_that_rest_on_the_same_words_form_a_group() -> None:
    kinds = ["the superb film is it", "a great story in the plot", "it was awful and the film"]
    report = reported(kinds * 6, [NEG, NEG, POS] * 6)
    found = {(group.truth, tuple(word.word for word in group.words)): group for group in report.groups}
    assert set(found) == {(NEG, ("superb",)), (NEG, ("great",)), (POS, ("awful",))}
    group = found[NEG, ("superb",)]
    [word] = group.words
    assert word.nats == pytest.approx(24.0)
    assert word.holders == 6
    assert sorted(group.rows) == [2, 5, 8, 11, 14, 17]
    assert group.example.weighed.text == kinds[0]


def test_what_is_explained_is_asked_for_in_batches_and_only_when_there_are_mistakes() -> None:
    asked: list[int] = []

    def explain(places: Sequence[int]) -> list[Explanation]:
        asked.append(len(places))
        return [Sum().explain("the great film") for _ in places]

    def run(truth: Sequence[int]) -> ErrorReport:
        log_probs = Sum().log_probs(["the great film"] * len(truth))
        given = np.array(truth, np.int64)
        return diagnose(("neg", "pos"), given, log_probs, explain, rows=range(len(truth)))

    assert len(run([NEG] * 700).cases) == 700
    assert max(asked) == BATCH
    asked.clear()
    assert run([POS] * 3).summary() == "The model makes no mistake on the 3 texts."
    assert asked == []


@pytest.mark.parametrize(("classes", "most"), [(2, 500), (8, 500), (80, 50), (1000, 8)])
def test_the_more_classes_the_fewer_texts_are_explained_at_once(classes: int, most: int) -> None:
    asked: list[int] = []

    def explain(places: Sequence[int]) -> list[Explanation]:
        asked.append(len(places))
        one = Sum().explain("the great film")
        parts = np.pad(one.parts, ((0, 0), (0, classes - 2)))
        effects = np.pad(one.effects, ((0, 0), (0, classes - 2)))
        joint = np.pad(one.sentence_effects, ((0, 0), (0, classes - 2)))
        wide = replace(one, labels=labels, log_probs=log_probs[0], parts=parts, effects=effects, sentence_effects=joint)
        return [wide] * len(places)

    labels = tuple(f"class {i}" for i in range(classes))
    log_probs = np.full((501, classes), np.log(0.4 / (classes - 1)))
    log_probs[:, 1] = np.log(0.6)
    truth = np.ones(501, np.int64)
    truth[:10] = 0  # the mistakes
    diagnose(labels, truth, log_probs, explain, rows=range(501))
    assert max(asked) == most
    assert sum(asked) >= 511  # all for how words are used, and the mistakes once more


def test_the_report_says_it_in_a_paragraph_tables_and_json() -> None:
    report = reported(["the superb film is it"] * 4 + ["a bad film in it"] * 4, [NEG, NEG, NEG, POS] + [NEG] * 4)
    assert report.summary() == (
        "sum is wrong on 3 of the 8 texts of texts (37.5 %). The reasons found most often: likely wrong label (3). "
        "The largest group of alike mistakes, 3 × neg → pos, rests on “superb”. The most confident mistake is row 2 "
        "(neg → pos, 98.2 %)."
    )
    tables = {table.title: table for table in report.tables()}
    assert tables["Why the mistakes happen"].rows[0][:3] == (LABEL, 3, 100.0)
    assert tables["Mistakes that are alike"].rows == (("neg → pos", 3, "superb (3)", 2),)
    assert [row[0] for row in tables["The most confident mistakes"].rows] == [2, 3, 4]
    assert any("Confusion" in title for title in tables)
    first = report.to_json()["most_confident"][0]
    assert first["words"][1] == {
        "text": "superb",
        "start": 4,
        "end": 10,
        "known": True,
        "effect_nats": 4.0,
        "share_nats": 4.0,
    }
    assert first["decided_by"]["text"] == "the superb film is it"
    assert report.to_json()["reasons"][LABEL] == 3


# ------------------------------------------------------------------------------------------------ faithfulness


def random_texts(count: int) -> list[str]:
    generator = np.random.default_rng(3)
    return [" ".join(generator.choice(list(WEIGHTS), 20)) for _ in range(count)]


def test_blanking_leaves_all_else_in_its_place() -> None:
    found = Sum().explain("A great film, great!")
    assert blank(found, np.array([1, 4])) == "A       film,      !"
    assert blank(found, np.array([], np.int64)) == found.text


def test_the_order_of_shares_falls_faster_than_chance() -> None:
    found = [Sum().explain(text) for text in random_texts(40)]
    backwards = [-one.effects[:, one.verdict] for one in found]
    steps = (0.0, 0.1, 0.3, 0.5)
    result = deletion_curve(Sum().log_probs, found, steps, np.random.default_rng(0), {"backwards": backwards})
    names = ["share", "exact effect", "backwards", "random"]
    assert [one.order for one in result.deletions] == names
    share, exact, worst, chance = result.deletions
    assert share.above is None
    # A sum: what is left after the two strongest of 20 words went, by hand; effects are as good.
    expected = [one.effects[:, one.verdict].sum() - np.sort(one.effects[:, one.verdict])[-2:].sum() for one in found]
    assert share.log_odds[1] == pytest.approx(np.mean(expected))
    assert exact.log_odds == pytest.approx(share.log_odds)
    assert share.log_odds[0] == pytest.approx(chance.log_odds[0])
    for one in (worst, chance):
        assert one.above is not None
        assert 0 < one.above.low < one.above.value < one.above.high
        assert one.above.value == pytest.approx(one.area.value - share.area.value)
    assert [line.name for line in result.chart().lines] == names
    assert len(result.table().rows) == 4
    json.dumps(result.to_json())


def test_where_words_count_once_effects_alone_miss_what_stands_twice() -> None:
    model = Sum(distinct=True)
    found = [model.explain("superb plot, a fine, nice, good story, superb film")] * 10
    result = deletion_curve(model.log_probs, found, (0.0, 0.2, 0.4), np.random.default_rng(0))
    share, exact, _ = result.deletions
    assert share.log_odds == pytest.approx((5.9, 1.9 - 1.0, 0.0))  # 3 and 5 of 12: superb twice, good; nice, fine
    assert exact.log_odds == pytest.approx((5.9, 4.0, 4.0))  # good, nice, fine, then marks and neutral words in order
    assert exact.above is not None
    assert exact.above.low > 0


def test_the_area_is_the_mean_height_of_the_curve() -> None:
    found = [Sum().explain("great great great great")] * 8  # 8, then 6, 4
    result = deletion_curve(Sum().log_probs, found, (0.0, 0.25, 0.5), np.random.default_rng(0))
    assert result.deletions[0].log_odds == pytest.approx((8.0, 6.0, 4.0))
    assert result.deletions[0].area.value == pytest.approx(6.0)
    assert deletion_curve(Sum().log_probs, found[:3], (0.0, 0.5), np.random.default_rng(0)).table().rows[0][4] == (
        "too few texts"
    )


@pytest.mark.parametrize("fractions", [(0.5,), (0.5, 0.2), (0.0, 1.5), (0.2, 0.2)])
def test_fractions_that_do_not_rise_are_refused(fractions: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="from 0 to 1"):
        deletion_curve(Sum().log_probs, [Sum().explain("good")], fractions, np.random.default_rng(0))


def test_texts_without_words_cannot_be_blanked() -> None:
    score: Callable[[list[str]], Floats] = Sum().log_probs
    with pytest.raises(InklingError, match="no texts with words"):
        deletion_curve(score, [Sum().explain("")], (0.0, 0.5), np.random.default_rng(0))
