"""What a corpus says about answers that were given without it: a judge who reads it afterwards.

An answer is corroborated if some line of the corpus contains both what the question is about and the answer, letter by
letter: the name as words of its own, the answer from where a word begins. One document stands on each line. For each
question that leaves four cases:

    right and corroborated        what the model could have learned there
    right, not corroborated       luck, or knowledge that stands in other words
    wrong and corroborated        another thing that the line tells: a place of work, of death
    wrong, not corroborated       made up: the corpus never pairs it with the name

The share of questions whose true answer is corroborated is the ceiling for a model that knows this text and nothing
else. "Milan" is found in "Milano", and "Rome" in "Romeo", which is generous to the model; "in" is not in "painter",
nor "Ada Oak" in "Ada Oakley". Where words begin and end is seen at letters that have capitals, and at digits; in
scripts without capitals, some of which leave no spaces, a phrase is found wherever its letters are. Left out:
spellings that differ, facts over two lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from inkling.errors import InklingError
from inkling.measure.classification import wilson
from inkling.measure.intervals import Interval


@dataclass(frozen=True)
class Witness:
    """Of each question, whether a line names what it is about, and which of the phrases asked for such a line has."""

    name: str  # of the corpus
    lines: int
    named: tuple[bool, ...]
    beside: tuple[frozenset[str], ...]

    def corroborates(self, question: int, answer: str) -> bool:
        return answer.strip() in self.beside[question]


def find_phrase(phrase: str, text: str, start: int = 0, whole: bool = True) -> int:
    """Where a phrase first stands in a text, or −1: where a word begins, and if `whole`, where one ends."""
    place = text.find(phrase, start) if phrase else -1
    while place >= 0:
        end = place + len(phrase)
        begins = not place or not (_joins(text[place - 1]) and _joins(phrase[0]))
        if begins and (not whole or end == len(text) or not (_joins(phrase[-1]) and _joins(text[end]))):
            return place
        place = text.find(phrase, place + 1)
    return -1


def _joins(character: str) -> bool:
    return character.isdecimal() or character.lower() != character.upper()


def hear_witness(
    name: str, blocks: Iterable[Sequence[str]], subjects: Sequence[str], phrases: Sequence[Iterable[str]]
) -> Witness:
    """Reads the lines of a corpus once. `phrases` has for each of `subjects` the answers to look for beside it."""
    wanted = [{phrase.strip() for phrase in some} - {""} for some in phrases]
    if len(wanted) != len(subjects):
        raise InklingError(f"{len(subjects)} subjects and {len(wanted)} sets of answers were given; give one for each.")
    named = [False] * len(subjects)
    beside: list[set[str]] = [set() for _ in subjects]
    lines = 0
    for block in blocks:
        lines += len(block)
        text = "\n".join(line.replace("\n", " ") for line in block)  # searching a long text is faster than many lines
        for question, subject in enumerate(subjects):
            place = find_phrase(subject, text)
            while place >= 0:
                named[question] = True
                end = text.find("\n", place)
                end = len(text) if end < 0 else end
                line = text[text.rfind("\n", 0, place) + 1 : end]
                beside[question] |= {
                    phrase for phrase in wanted[question] if find_phrase(phrase, line, whole=False) >= 0
                }
                place = find_phrase(subject, text, end)
    return Witness(name, lines, tuple(named), tuple(map(frozenset, beside)))


@dataclass(frozen=True)
class Corroboration:
    """The four cases, and the ceiling."""

    name: str  # of the corpus
    questions: int
    named: int  # questions whose subject some line names
    ceiling: Interval  # share of questions whose true answer is corroborated
    right_corroborated: int
    right_otherwise: int
    wrong_corroborated: int
    wrong_made_up: int  # of these, some because their subject is named nowhere

    @classmethod
    def of(cls, witness: Witness, said: Sequence[str], truth: Sequence[str], right: Sequence[bool]) -> Corroboration:
        told = [witness.corroborates(i, answer) for i, answer in enumerate(said)]
        cells = [
            sum(r == is_right and t == is_told for r, t in zip(right, told, strict=True))
            for is_right in (True, False)
            for is_told in (True, False)
        ]
        known = sum(witness.corroborates(i, answer) for i, answer in enumerate(truth))
        return cls(witness.name, len(truth), sum(witness.named), wilson(known, len(truth)), *cells)

    @property
    def wrong(self) -> int:
        return self.wrong_corroborated + self.wrong_made_up

    def sentences(self) -> list[str]:
        known = round(self.ceiling.value * self.questions)
        said = [
            f"{known:,} of {self.questions:,} true answers stand in {self.name} in a line with the name: "
            f"{100 * self.ceiling.value:.1f} % is the ceiling for who knows this text only."
        ]
        if self.wrong:
            share = 100 * self.wrong_made_up / self.wrong
            said.append(
                f"Of {self.wrong:,} wrong answers, {self.wrong_made_up:,} ({share:.1f} %) stand in no line with the "
                f"name (made up), {self.wrong_corroborated:,} in one (mixed up with something else)."
            )
        if self.right_otherwise:
            said.append(f"Right answers that stand in no line with the name: {self.right_otherwise:,}.")
        return said

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "sentences": self.sentences()}
