"""Mixtures of documents and questions: what a step reads is decided by its number, and everything takes its turn."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from inkling.errors import UsageError
from inkling.models.gpt_loss import IGNORED
from inkling.recipes.documents import BATCHES, Library, Rounds, evenly_cut, filled, parse_mixture
from inkling.text.documents import Example
from inkling.text.questions import MARK
from inkling.text.tokenise import train_tokeniser
from inkling.text.tokens import Tokeniser
from inkling.text.world import biographies

PEOPLE = 60


@pytest.fixture(scope="module")
def world() -> tuple[list[str], list[tuple[str, str]]]:
    made = biographies(np.random.default_rng(0), PEOPLE)
    return made.text.splitlines(), list(made.pairs_train)


@pytest.fixture(scope="module")
def tokeniser(world: tuple[list[str], list[tuple[str, str]]]) -> Tokeniser:
    return train_tokeniser("bpe", [[f"{line}\n" for line in world[0]], [MARK]], 400)


@pytest.fixture(scope="module")
def library(world: tuple[list[str], list[tuple[str, str]]], tokeniser: Tokeniser) -> Library:
    return Library.of(*world, tokeniser, asked=[("Where was Nobody born?", "Nowhere")])


def rounds(library: Library, mixture: str, tokens: int = 400, seed: int = 0) -> Rounds:
    return Rounds(library, parse_mixture(mixture), tokens, context=128, seed=seed)


def test_a_mixture_is_names_with_shares() -> None:
    assert parse_mixture("recall=3, question,span-corruption=0.5") == {
        "recall": 3.0,
        "question": 1.0,
        "span-corruption": 0.5,
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("recal", "has the part 'recal'; give one of next, span-corruption, recall"),
        ("next=x", "gives next the share 'x'; give a number above 0"),
        ("next=0", "gives next the share '0'"),
        ("next,next=2", "names next twice"),
        ("", "has the part ''"),
    ],
)
def test_what_is_no_mixture_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_mixture(text)


def test_a_batch_is_decided_by_its_step_and_the_seed(library: Library) -> None:
    first, again = (
        rounds(library, "recall=2,question,span-corruption"),
        rounds(library, "recall=2,question,span-corruption"),
    )
    later = [again.batch(step) for step in (BATCHES + 3, 3)]  # in another order, and each round made anew
    np.testing.assert_array_equal(first.batch(3).inputs, later[1].inputs)
    np.testing.assert_array_equal(first.batch(BATCHES + 3).targets, later[0].targets)
    other = rounds(library, "recall=2,question,span-corruption", seed=1).batch(3)
    assert other.inputs.shape != later[1].inputs.shape or (other.inputs != later[1].inputs).any()


def test_every_question_comes_once_before_any_comes_twice(library: Library) -> None:
    made = rounds(library, "question", tokens=60)
    asked = len(library.prompts)
    seen = [tuple(e.ids) for step in range(2 * BATCHES) for e in made.examples(step)]
    assert len(seen) > asked
    in_order = [
        tuple(made.library.example("question", int(n), np.random.default_rng(0), 128).ids)
        for n in made._places("question", 0, np.arange(len(seen)))
    ]
    assert Counter(in_order) == Counter(seen)  # rounds only change the order inside a round
    assert len(set(in_order[:asked])) == asked


def test_ways_come_in_the_shares_asked_for(library: Library) -> None:
    made = rounds(library, "recall=3,question=1", tokens=800)
    assert made.counts["recall"] == pytest.approx(3 * made.counts["question"], abs=2)
    marks = [int((e.ids == library.signs.mark).sum()) for step in range(BATCHES) for e in made.examples(step)]
    assert set(marks) == {1}
    assert len(marks) == sum(made.counts.values())


def test_batches_of_a_round_have_about_as_many_tokens_as_wanted(library: Library) -> None:
    made = rounds(library, "next,question,span-corruption", tokens=1500)
    sizes = [made.batch(step).inputs.size for step in range(BATCHES)]
    assert max(sizes) < 1.35 * 1500
    assert sum(sizes) == pytest.approx(BATCHES * 1500, rel=0.25)


def test_reading_gives_the_document_of_the_person_who_is_asked_about(library: Library, tokeniser: Tokeniser) -> None:
    assert (library.about >= 0).all()
    generator = np.random.default_rng(0)
    texts = [tokeniser.decode(library.example("reading", 0, generator, 128).ids[1:].tolist()) for _ in range(40)]
    question = tokeniser.decode(library.prompts[0].tolist())
    right = tokeniser.decode(library.answers[0].tolist()).strip()
    answers = [text.partition(question)[2].strip() for text in texts]
    assert all(question in text for text in texts)
    assert all(answer in text.partition(question)[0] for text, answer in zip(texts, answers, strict=True))
    assert 5 <= sum(answer == right for answer in answers) <= 30  # sometimes another answer stands in its place


def test_names_are_words_with_a_capital_letter(
    world: tuple[list[str], list[tuple[str, str]]], library: Library
) -> None:
    tokens = train_tokeniser("character", [["Ada B. Cay. Born in Ulm, 1801; she met Élan and Ulm.\n", MARK]])
    made = Library.of(["Ada B. Cay. Born in Ulm, 1801; she met Élan and Ulm."], [("Q?", "Ulm")], tokens)
    assert [tokens.decode(name.tolist()) for name in made.names] == [" Born", " Ulm", " Élan"]
    assert len(library.names) > 20


def test_no_example_is_longer_than_the_context(library: Library) -> None:
    generator = np.random.default_rng(0)
    for way, numbers in library.sources().items():
        for number in numbers[:20].tolist():
            found = library.example(way, number, generator, 40)
            assert len(found.ids) - 1 <= 40
            assert 1 <= found.first < len(found.ids)


def test_what_was_asked_is_read_as_a_question(library: Library, tokeniser: Tokeniser) -> None:
    ids, first = library.example("asked", 0, np.random.default_rng(0), 40)
    assert tokeniser.decode(ids[1:].tolist()) == f"Where was Nobody born?{MARK} Nowhere\n"
    assert tokeniser.decode(ids[first:].tolist()) == " Nowhere\n"


def test_rows_side_by_side_count_only_what_is_asked_for() -> None:
    found = filled([Example(np.array([1, 2, 3]), 2), Example(np.array([4, 5, 6, 7]), 1)])
    assert found.inputs.tolist() == [[1, 2, 0], [4, 5, 6]]
    assert found.targets.tolist() == [[IGNORED, 3, IGNORED], [5, 6, 7]]


def test_cutting_evenly_keeps_the_order_and_the_number_of_batches() -> None:
    examples = [Example(np.zeros(length, np.int64), 1) for length in sorted([3] * 40 + [9] * 12 + [30])]
    groups = evenly_cut(examples, 5)
    assert [example for group in groups for example in group] == examples
    assert len(groups) == 5
    assert max(len(group) * len(group[-1].ids) for group in groups) <= 70  # of 258 tokens, filled up
    with pytest.raises(UsageError, match="3 examples for 5 batches"):
        evenly_cut(examples[:3], 5)


@pytest.mark.parametrize(
    ("mixture", "lines", "pairs", "said"),
    [
        ("question", ["A. B c."], [], "give them with --pairs"),
        ("recall", ["no sentence ends here"], [], "No document has a head and a body"),
        ("reading", ["A. B c."], [("Where was X born?", "Rome"), ("Where was Y born?", "Rome")], "about the head"),
        ("next", [""], [], "no documents"),
        ("asked", ["A. B c."], [], "asked itself"),
    ],
)
def test_what_a_mixture_lacks_is_said(
    tokeniser: Tokeniser, mixture: str, lines: list[str], pairs: list[tuple[str, str]], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        rounds(Library.of(lines, pairs, tokeniser), mixture)


def test_words_have_no_mark() -> None:
    words = train_tokeniser("word", [["a few words of text\n"] * 9], 10)
    with pytest.raises(UsageError, match=r"word tokens have none for the mark .* or use bpe tokens"):
        Library.of(["A. B c."], [], words)
