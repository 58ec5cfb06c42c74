"""A small world of our own, generated from a seed, so that everything works without a network.

    reviews        opinions on films with the label "positive" or "negative", for a classifier
    biographies    short lives of people who never were, with questions about where they were born
    (grammar.py)   sentences whose entropy is known, for a language model

A review praises or blames two to six aspects. Each judgement agrees with the label with chance 0.85, and one in
five is said by denying its opposite ("not dull"), so the words alone mislead where pairs of words do not: a model that
counts single words must stay below one that sees neighbours. A last sentence may sum up. `noise` is the share of
labels that are wrong on purpose.

A biography names two towns, one of birth and one of later life, in one of several phrasings; the questions ask for the
first. Towns follow Zipf's law, so always naming the commonest is a baseline with something to say. Everyone has a
biography; the questions about a fifth of the people are held out, and can be answered only by who has read the text.

The same generator seed gives the same text. Left out: facts that need more than one sentence, other languages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from inkling.errors import UsageError

Item = TypeVar("Item")


def _listed(text: str, separator: str = " ") -> tuple[str, ...]:
    """Long lists of short words read better in lines than in columns."""
    return tuple(text.split(separator))


PRAISE = _listed(
    "good great superb funny clever gripping fresh moving honest charming bright tender witty bold graceful"
)
BLAME = _listed("bad dull awful boring clumsy stale silly hollow tedious flat dreary shallow confused lifeless lazy")
INTENSITY = ("", "", "", "very ", "truly ", "quite ", "rather ", "utterly ", "surprisingly ")
DENIAL = ("not", "not", "never", "hardly", "by no means", "not particularly")
ASPECTS = _listed(
    "the acting, the plot, the music, the dialogue, the ending, the opening scene, the camera work, the pace, "
    "the leading lady, the villain, the script, the scenery, the humour, the second half, the cast",
    ", ",
)
TITLES = (
    _listed("Silver Crooked Winter Distant Paper Midnight Northern Hidden Copper Restless"),
    _listed("Harbour Letters Garden Orchestra Bridge Summer Detective Lighthouse Carnival Voyage"),
)
TOPICS = (
    "two sisters and a lost letter",
    "a town without a clock",
    "a detective who cannot sleep",
    "the last train before the war",
    "a cook who inherits a ship",
    "three thieves and a painting",
    "a teacher in the mountains",
    "neighbours who share a wall",
)
REMARKS = (
    "We saw it on a rainy evening.",
    "It runs for about two hours.",
    "The cinema was half full.",
    "My brother chose it.",
    "I had read the book before.",
    "It is the second film of its director.",
    "There are no songs in it.",
)
VERDICTS = {
    "positive": (
        "I would see it again.",
        "You should not miss it.",
        "I recommend it to everyone.",
        "I do not regret the ticket.",
        "It was worth the money.",
    ),
    "negative": (
        "I would not see it again.",
        "You should miss it.",
        "I recommend it to nobody.",
        "I do regret the ticket.",
        "It was not worth the money.",
    ),
}
AGREEMENT = 0.85  # chance that a judgement agrees with the label
NEGATION = 0.2  # chance that it is said by denying the opposite

FIRST_NAMES = _listed(
    "Ada Anton Beatrix Bruno Clara Conrad Delia Dorian Edith Emil Flora Felix Greta Gideon Hilda Hugo Ida Ivor Jana "
    "Jonas Karla Kaspar Leona Linus Mina Milo Nora Nestor Odile Oscar Paula Pascal Rosa Ruben Selma Silas Thea Tobias "
    "Ursula Viktor Wanda Walter Yvette Zeno"
)
SURNAME_STARTS = _listed(
    "Ash Black Brem Cald Dorn Eller Fair Gart Hart Holl Kest Lind Marl Nor Oak Pell Quen Rav Sand Thorn Ulm Vent Whit "
    "Wolf Yar"
)
SURNAME_ENDS = _listed("berg by combe dale er field ford gate ham holt lock man mere more ner son stone ton ward wick")
PLACES = _listed(
    "Harrowmere, Velden, Port Calder, Ostrin Bay, Linfield, Marrow, Tindale, Sarnholm, Quillby, Brackenford, Eastwell, "
    "Morrigan, Pellworth, Dunmarsh, Ravensea, Kirkholt, Ambleton, Fennick, Solway Cross, Greyport, Thistledon, "
    "Winterbourne, Lowmoor, Zell",
    ", ",
)
OCCUPATIONS = _listed(
    "painter, botanist, composer, physician, bridge builder, novelist, mathematician, sculptor, journalist, "
    "cartographer, teacher, judge, photographer, violinist, chemist, glass blower",
    ", ",
)
FAME = (
    "a long friendship with sailors",
    "a book about rivers",
    "a collection of clocks",
    "walking everywhere on foot",
    "a quarrel with the mayor",
    "the first public library of the town",
    "a study of moths",
    "large gifts to the poor",
    "an unfinished opera",
    "letters that were printed much later",
)
PHRASINGS = (
    "{name}. {name} was born in {place} in {year} and became a {occupation}. {last} lived in {home} and is remembered "
    "for {fame}.",
    "{name}. Born in {place}, {last} moved to {home} in {moved} to work as a {occupation} and is known for {fame}.",
    "{name}. {name} ({year} {place} - {died} {home}) was a {occupation}, known for {fame}.",
    "{name}. {name} was a {occupation} in {home}, known for {fame}, who was born in {place} in {year}.",
    "{name}. {last} was born on {day} {month} {year} in {place}. After years of study in {home}, {name} became a "
    "{occupation}.",
    "{name}. {name} was a {occupation} from {place}. {last} died in {home} in {died} and is remembered for {fame}.",
)
MONTHS = _listed("January February March April May June July August September October November December")


def reviews(generator: np.random.Generator, rows: int, noise: float = 0.05) -> list[tuple[str, str]]:
    """(text, label) pairs, both labels equally likely."""
    if not 0 <= noise <= 0.5:
        raise UsageError(f"The noise is {noise}, but must be a share of wrong labels between 0 and 0.5.")
    return [_review(generator, noise) for _ in range(rows)]


def _review(generator: np.random.Generator, noise: float) -> tuple[str, str]:
    positive = bool(generator.random() < 0.5)
    sentences: list[str] = []
    if generator.random() < 0.6:
        title = f"{_pick(generator, TITLES[0])} {_pick(generator, TITLES[1])}"
        sentences.append(f"The {title} is a film about {_pick(generator, TOPICS)}.")
    aspects = [ASPECTS[i] for i in generator.permutation(len(ASPECTS))[: int(generator.integers(2, 7))]]
    good = [positive == bool(generator.random() < AGREEMENT) for _ in aspects]
    clauses = [_judgement(generator, aspect, praise) for aspect, praise in zip(aspects, good, strict=True)]
    while clauses:
        clause, praise = clauses.pop(0), good.pop(0)
        if clauses and generator.random() < 0.5:
            clause += (", and " if praise == good.pop(0) else ", but ") + clauses.pop(0)
        sentences.append(f"{clause[0].upper()}{clause[1:]}.")
    if generator.random() < 0.4:
        sentences.insert(int(generator.integers(len(sentences) + 1)), _pick(generator, REMARKS))
    if generator.random() < 0.4:
        summed_up = positive == bool(generator.random() < 0.95)
        sentences.append(_pick(generator, VERDICTS["positive" if summed_up else "negative"]))
    if generator.random() < noise:
        positive = not positive
    return " ".join(sentences), "positive" if positive else "negative"


def _judgement(generator: np.random.Generator, aspect: str, praise: bool) -> str:
    if generator.random() < NEGATION:
        opposite = _pick(generator, BLAME if praise else PRAISE)
        return f"{aspect} was {_pick(generator, DENIAL)} {opposite}"
    return f"{aspect} was {_pick(generator, INTENSITY)}{_pick(generator, PRAISE if praise else BLAME)}"


@dataclass(frozen=True)
class Biographies:
    """`text` has a paragraph a line about everyone; the pairs are (question, answer)."""

    text: str
    pairs_train: tuple[tuple[str, str], ...]
    pairs_held_out: tuple[tuple[str, str], ...]

    @property
    def commonest_place(self) -> str:
        """Of the training pairs: the answer of one who knows nothing about anybody."""
        return Counter(place for _, place in self.pairs_train).most_common(1)[0][0]


def biographies(generator: np.random.Generator, people: int, held_out: float = 0.2) -> Biographies:
    """Lives of `people` people of different names; questions about the share `held_out` of them are kept apart."""
    surnames = [start + end for start in SURNAME_STARTS for end in SURNAME_ENDS]
    most = len(FIRST_NAMES) * len(surnames)
    if not 2 <= people <= most:
        raise UsageError(f"Biographies of {people} people were asked for, but there are names for 2 to {most:,}.")
    if not 0 < held_out < 1:
        raise UsageError(f"The share of questions to hold out is {held_out}, but must lie between 0 and 1.")
    lines: list[str] = []
    pairs: list[tuple[str, str]] = []
    for code in generator.choice(most, size=people, replace=False).tolist():
        last = surnames[code // len(FIRST_NAMES)]
        name = f"{FIRST_NAMES[code % len(FIRST_NAMES)]} {last}"
        place, home = _two_places(generator)
        lines.append(_life(generator, name, last, place, home))
        pairs.append((f"Where was {name} born?", place))
    apart = min(max(round(people * held_out), 1), people - 1)
    return Biographies("".join(f"{line}\n" for line in lines), tuple(pairs[apart:]), tuple(pairs[:apart]))


def _life(generator: np.random.Generator, name: str, last: str, place: str, home: str) -> str:
    year = int(generator.integers(1790, 1930))
    return _pick(generator, PHRASINGS).format(
        name=name,
        last=last,
        place=place,
        home=home,
        year=year,
        moved=year + int(generator.integers(18, 30)),
        died=year + int(generator.integers(40, 90)),
        day=int(generator.integers(1, 29)),
        month=_pick(generator, MONTHS),
        occupation=_pick(generator, OCCUPATIONS),
        fame=_pick(generator, FAME),
    )


def _two_places(generator: np.random.Generator) -> tuple[str, str]:
    """Where one was born, by Zipf's law over the list, and another place, all alike."""
    weights = 1 / np.arange(2, len(PLACES) + 2)
    born = int(generator.choice(len(PLACES), p=weights / weights.sum()))
    home = (born + int(generator.integers(1, len(PLACES)))) % len(PLACES)
    return PLACES[born], PLACES[home]


def _pick(generator: np.random.Generator, items: Sequence[Item]) -> Item:
    return items[int(generator.integers(len(items)))]
