"""What the page of classifiers shows, worked out without a page: verdicts, coloured words, mistakes that are wanted.

Words are shaded by their share of the margin (explain/weighing.py), in the levels of report/errors.py: what speaks for
the verdict, and what for the other label. The sentence that decided is underlined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from inkling.errors import InklingError

if TYPE_CHECKING:
    from inkling.explain.weighing import Weighed
    from inkling.models.dan import AveragingNetwork
    from inkling.recipes.verdicts import Reasons

NOTED_WORDS = 5_000  # in a longer text, only words with a shade have a note
QUOTED_CHARS = 400
MOST_CHARS = 100_000  # that are judged as somebody types
DRAWN_CHARS = 60_000  # of a text in colours
DECIDED = "Decided by"


class Shaded(NamedTuple):
    """A piece of text as `MarkedText` takes it."""

    text: str
    shade: str = ""
    note: str = ""


@dataclass(frozen=True)
class Told:
    """A text with its words coloured, where the shades begin (in nats), and sentences about it with their headings."""

    pieces: tuple[Shaded, ...]
    levels: tuple[float, ...]
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Judged:
    """A verdict: what `inkling classify --why --all` says of a text."""

    probabilities: tuple[tuple[str, float], ...]  # of all labels, in the order of the model
    unsure: bool
    reasons: Reasons
    told: Told

    @property
    def probability(self) -> float:
        return max(probability for _, probability in self.probabilities)


def judge(network: AveragingNetwork, threshold: float | None, text: str) -> Judged:
    import numpy as np

    from inkling.explain.words import explain
    from inkling.recipes.verdicts import Reasons
    from inkling.report.errors import scale

    if len(text) > MOST_CHARS:
        raise InklingError(
            f"The text has {len(text):,} characters, and {MOST_CHARS:,} can be judged here; take a part of it, or "
            "use `inkling classify`."
        )
    log_probs = network.log_probs([text]).numpy().astype(np.float64)[0]
    probabilities = np.minimum(1.0, np.exp(log_probs)).tolist()
    reasons = Reasons.of(explain(network, [text])[0], int(log_probs.argmax()))
    lines = []
    for label, words in ((reasons.verdict, reasons.pro), (reasons.runner_up, reasons.contra)):
        if words:
            named = ", ".join(f"{word.word} {abs(word.share):.2f}" for word in words)
            lines.append((f"Strong words for {label}", f"{named} nats"))
    levels = scale([reasons.weighed])
    told = tell(reasons.weighed, levels, reasons.verdict, reasons.runner_up, lines)
    pairs = tuple(zip(network.labels, probabilities, strict=True))
    return Judged(pairs, threshold is not None and max(probabilities) < threshold, reasons, told)


def tell_mistake(network: AveragingNetwork, text: str, label: str, verdict: str, levels: Sequence[float]) -> Told:
    """The same of a text that was judged wrongly, against the label given."""
    from inkling.explain.weighing import weigh
    from inkling.explain.words import explain

    places = network.labels.index(verdict), network.labels.index(label)
    return tell(weigh(explain(network, [text])[0], *places), tuple(levels), verdict, label, [])


def tell(
    weighed: Weighed, levels: tuple[float, ...], verdict: str, other: str, lines: Iterable[tuple[str, str]]
) -> Told:
    said = list(lines)
    if len(weighed.sentences) > 1:  # of one there is nothing to tell apart
        named = ((DECIDED, weighed.decider, verdict, 1), ("Spoke against it", weighed.opponent, other, -1))
        for heading, place, label, sign in named:
            if place is not None:
                share, alone = (sign * float(of[place]) for of in (weighed.sentence_shares, weighed.sentence_effects))
                quoted = _cut(" ".join(weighed.sentence(place).split()))
                said.append((heading, f"“{quoted}” {share:.2f} nats for {label} (left out alone: {alone:+.2f})"))
    return Told(tuple(shade(weighed, levels, verdict, other)), levels, tuple(said))


def shade(weighed: Weighed, levels: tuple[float, ...], verdict: str, other: str) -> list[Shaded]:
    """The text in pieces: a word each, and what stands between."""
    from inkling.report.errors import level

    decider = weighed.decider if len(weighed.sentences) > 1 else None
    start, end = weighed.span(decider) if decider is not None else (0, 0)
    few = len(weighed.starts) <= NOTED_WORDS
    pieces: list[Shaded] = []
    place = 0
    columns = (weighed.starts, weighed.ends, weighed.known, weighed.shares, weighed.effects)
    for first, last, known, share, effect in zip(*(column.tolist() for column in columns), strict=True):
        if last > DRAWN_CHARS:
            pieces.append(Shaded(" …", "p", f"{len(weighed.text) - place:,} characters more"))
            return _joined(piece._replace(shade=piece.shade.strip()) for piece in pieces)
        line = " u" if start <= first < end else ""
        if first > place:
            pieces.append(Shaded(weighed.text[place:first], line if start < first else ""))
        reached = level(share, levels) if known else 0
        kind = f"f{reached}" if reached > 0 else f"a{-reached}" if reached else "" if known else "p"
        pieces.append(
            Shaded(
                weighed.text[first:last], kind + line, _note(known, share, effect, verdict, other, few or bool(reached))
            )
        )
        place = last
    if place < len(weighed.text):
        pieces.append(Shaded(weighed.text[place:]))
    return _joined(piece._replace(shade=piece.shade.strip()) for piece in pieces)


def _joined(pieces: Iterable[Shaded]) -> list[Shaded]:
    """With neighbours that look alike and say nothing in one piece: a page draws fewer."""
    found: list[Shaded] = []
    for piece in pieces:
        if found and not piece.note and not found[-1].note and piece.shade == found[-1].shade:
            found[-1] = found[-1]._replace(text=found[-1].text + piece.text)
        else:
            found.append(piece)
    return found


def _note(known: bool, share: float, effect: float, verdict: str, other: str, wanted: bool) -> str:
    if not wanted:
        return ""
    if not known:
        return "a word that the model does not know"
    label, sign = (verdict, 1) if share >= 0 else (other, -1)
    return f"{sign * share:.3f} nats for {label}\nleft out alone: {sign * effect:+.3f}"


def ranges(levels: Sequence[float]) -> list[str]:
    """What the shades mean, for a legend."""
    return [f"{low:g}–{high:g}" for low, high in pairwise(levels)] + [f"≥ {levels[-1]:g}"]


def _cut(text: str) -> str:
    return text if len(text) <= QUOTED_CHARS else text[: QUOTED_CHARS - 1] + "…"


# ------------------------------------------------------------------------------------------------ mistakes


@dataclass(frozen=True)
class Wanted:
    """Which mistakes to list; what is empty asks for nothing."""

    kind: str = ""
    pair: str = ""
    least: float = 0.0  # probability of the verdict
    contains: str = ""  # letters of any case
    rows: frozenset[int] = frozenset()  # of a group

    def choose(self, mistakes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        part = self.contains.casefold()
        return [
            one
            for one in mistakes
            if (not self.kind or one["kind"] == self.kind)
            and (not self.pair or pair_of(one) == self.pair)
            and one["probability"] >= self.least
            and (not self.rows or one["row"] in self.rows)
            and (not part or part in one["text"].casefold())
        ]


def pair_of(one: dict[str, Any]) -> str:
    return f"{one['label']} → {one['verdict']}"


def pairs_of(mistakes: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many mistakes each pair has, the commonest first."""
    return dict(Counter(map(pair_of, mistakes)).most_common())


def opening(text: str, contains: str = "", chars: int = 160) -> str:
    """The beginning of a text in one line, or the place around what was looked for."""
    line = " ".join(text.split())
    place = line.casefold().find(contains.casefold()) if contains else 0
    start = max(0, place - chars // 3) if place + len(contains) > chars else 0
    return "…" * (start > 0) + line[start : start + chars] + "…" * (start + chars < len(line))
