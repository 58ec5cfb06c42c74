"""What the heads of a model do, as figures, tables, pictures and sentences; explain/heads.py finds them out.

A head is called by what it does most, measured against an even spread over the keys:

    strength = (mean weight − even) / (1 − even)      0 for an even spread, 1 where all weight is there

of induction, looking one back, at the first token, at itself. The greatest of the four gives the role if it is at least
½: "induction", "looks one back", "first token", "itself". Induction needs 10 places where there was something to find.
If none is, a head that has at least half of the available keys in use "averages", and any other is "mixed".

Heads are called 1.1, 1.2 … 2.1: layer and head, both from 1. In Python both count from 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from inkling.errors import UsageError
from inkling.figures import Bars, Cell, Column, HeatMap, Page, Panels, Prose, Series, Table
from inkling.measure.intervals import Interval
from inkling.models.contracts import Attentive, Look

STRENGTH = 0.5  # from which on a pattern gives its name
IN_USE = 0.5  # share of the keys, from which on a head averages
LEAST_PLACES = 10  # where induction could be seen
LEAST_SHOWN = 0.0005  # nats per token; less is 0.000 in a table, and may be rounding
MAP_TOKENS = 48  # that an attention map shows
ROLES = ("induction", "looks one back", "first token", "itself", "averages", "mixed")


@dataclass(frozen=True)
class HeadFigures:
    """One head. Means are over `places`, those of induction over `induction_places`; NaN where there are none.

    Effects are in nats per charged token, paired over texts: `removed` is what the loss rises by when the head's output
    gives way to its mean; `direct` the same if nothing after it took notice; `made_up` = direct − removed, what later
    layers make up for (below 0: what they lose with it); `noised` is for noise on its keys, and `weights_moved` the
    mean total variation distance between its weights with and without that noise.
    """

    layer: int
    head: int
    places: int
    even: float
    top_weight: float
    copies: float
    entropy_nats: float
    keys_in_use: float
    share_in_use: float
    one_back: float
    first_token: float
    itself: float
    induction_places: int
    induction: float
    induction_even: float
    margin_median: float
    beta_median: float
    removed: Interval
    direct: Interval
    made_up: Interval
    noised: Interval
    weights_moved: float

    @property
    def name(self) -> str:
        return head_name(self.layer, self.head)

    @property
    def strengths(self) -> dict[str, float]:
        """How far beyond an even spread each pattern goes; induction only where it could be seen often enough."""
        found = {
            "looks one back": strength(self.one_back, self.even),
            "first token": strength(self.first_token, self.even),
            "itself": strength(self.itself, self.even),
        }
        if self.induction_places >= LEAST_PLACES:
            found["induction"] = strength(self.induction, self.induction_even)
        return found

    @property
    def role(self) -> str:
        """By the rules above."""
        strengths = self.strengths
        strongest = max(strengths, key=strengths.__getitem__)
        if strengths[strongest] >= STRENGTH:
            return strongest
        return "averages" if self.share_in_use >= IN_USE else "mixed"


def strength(weight: float, even: float) -> float:
    return (weight - even) / (1 - even) if even < 1 else 0.0


def head_name(layer: int, head: int) -> str:
    return f"{layer + 1}.{head + 1}"


@dataclass(frozen=True)
class Census:
    """All heads of a model on the same texts. `nats` is its loss per charged token, untouched."""

    heads: tuple[HeadFigures, ...]
    texts: int
    tokens: int  # charged
    nats: float
    key_noise: float
    maps: Panels  # of the first text

    def of(self, layer: int, head: int) -> HeadFigures:
        for one in self.heads:
            if (one.layer, one.head) == (layer, head):
                return one
        raise UsageError(f"There is no head {head} in layer {layer} (both count from 0); ask for one of `heads`.")

    def with_role(self, role: str) -> tuple[HeadFigures, ...]:
        if role not in ROLES:
            raise UsageError(f"'{role}' is not a role of a head; choose from {', '.join(ROLES)}.")
        return tuple(one for one in self.heads if one.role == role)

    def tables(self) -> tuple[Table, ...]:
        return self.where(), self.sharpness(), self.effects(), self.noise()

    def where(self) -> Table:
        columns = (
            Column("head", note="layer and head, both from 1."),
            Column("role", note=f"the pattern that goes furthest beyond an even spread, from {STRENGTH:g} of the way."),
            Column("one back", ".2f"),
            Column("first token", ".2f"),
            Column("itself", ".2f"),
            Column("even", ".2f", note="what an even spread over the keys puts on one of them."),
            Column("induction", ".2f", note="weight on places that follow an earlier occurrence of the present token."),
            Column("even there", ".2f", note="what an even spread puts on all places that induction looks for."),
            Column("copies", ".0%", note="places where its output raises the most attended token most."),
        )
        return _table(
            "Where heads look (mean weight)",
            columns,
            [
                (h.name, h.role, h.one_back, h.first_token, h.itself, h.even, h.induction, h.induction_even, h.copies)
                for h in self.heads
            ],
        )

    def sharpness(self) -> Table:
        columns = (
            Column("head"),
            Column("entropy", ".2f", "nats"),
            Column("keys in use", ".1f", note="e to the entropy, mean over places."),
            Column("of those available", ".0%"),
            Column("highest weight", ".2f"),
            Column("margin", ".1f", note="highest minus second score, median over places."),
            Column("β", ".1f", note="at which orthonormal keys give that highest weight; median over places."),
        )
        return _table(
            "How sharply heads look",
            columns,
            [
                (h.name, h.entropy_nats, h.keys_in_use, h.share_in_use, h.top_weight, h.margin_median, h.beta_median)
                for h in self.heads
            ],
        )

    def effects(self) -> Table:
        columns = (
            Column("head"),
            Column("role"),
            Column("removed", "+z.3f", note="its mean output in its place: rise of the loss in nats per token."),
            Column("95 %", note="paired over texts, by Student's t; of this head alone."),
            Column("direct", "+z.3f", note="the same if no later layer took notice."),
            Column("made up", "+z.3f", note="direct − removed: above 0 later layers step in, below 0 they lose too."),
            Column("95 % of that"),
        )
        rows: list[tuple[Cell, ...]] = []
        for h in self.heads:
            removal = (h.removed.value, _range(h.removed), h.direct.value, h.made_up.value, _range(h.made_up))
            rows.append((h.name, h.role, *removal))
        return _table("What heads are worth (nats per token)", columns, rows)

    def noise(self) -> Table:
        columns = (
            Column("head"),
            Column("role"),
            Column("weights moved", ".2f", note="mean distance (total variation) of its weights; 1 is all of them."),
            Column("loss", "+z.3f", "nats per token", note="what it rises by."),
            Column("95 %", note="paired over texts, by Student's t; of this head alone."),
        )
        rows = [(h.name, h.role, h.weights_moved, h.noised.value, _range(h.noised)) for h in self.heads]
        return _table(f"What noise of {self.key_noise:.0%} on a head's keys does", columns, rows)

    def bars(self) -> Bars:
        series = []
        for name, values in (
            ("removed", [h.removed for h in self.heads]),
            ("removed, direct effect", [h.direct for h in self.heads]),
            (f"{self.key_noise:.0%} noise on keys", [h.noised for h in self.heads]),
        ):
            known = all(math.isfinite(one.low) for one in values)
            low, high = ([one.low for one in values], [one.high for one in values]) if known else ([], [])
            series.append(Series(name, [one.value for one in values], low, high))
        reading = (
            f"How much more a token costs, beyond {self.nats:.3f} nats, when one head is touched; error bars are 95 % "
            "intervals over texts. Where the direct effect is the smaller bar, later layers build on that head; where "
            "it is the larger one, they make up for it."
        )
        names = tuple(h.name for h in self.heads)
        return Bars("What the loss rises by", "head", "nats per token", names, tuple(series), reading)

    def sentences(self) -> tuple[str, ...]:
        by_role = [(role, [h.name for h in self.with_role(role)]) for role in ROLES]
        listed = "; ".join(f"{role}: {', '.join(names)}" for role, names in by_role if names)
        found = [
            f"{_count(len(self.heads), 'head')} on {_count(self.texts, 'text')}, by what they do most. {listed}.",
            f"The model pays {self.nats:.3f} nats per token over {_count(self.tokens, 'token')}.",
        ]
        if self.texts < 2:
            return (*found, "From one text no interval can be given; take at least two.")
        dear = max(self.heads, key=lambda h: h.removed.value)
        if dear.removed.low > 0 and dear.removed.value >= LEAST_SHOWN:
            found.append(f"Removing head {dear.name} ({dear.role}) costs most: {_effect(dear.removed)}.")
        else:
            found.append("Removing any one head changes the loss by no more than chance would.")
        relied = min(self.heads, key=lambda h: h.made_up.value)
        if relied.made_up.high < 0 and relied.made_up.value <= -LEAST_SHOWN:
            found.append(
                f"Later layers build on head {relied.name} ({relied.role}): by itself its output is worth "
                f"{_signed(relied.direct.value)} nats per token, and removing it costs {_signed(relied.removed.value)}."
            )
        spared = max(self.heads, key=lambda h: h.made_up.value)
        if spared.made_up.low > 0 and spared.made_up.value >= LEAST_SHOWN:
            found.append(
                f"When head {spared.name} ({spared.role}) is removed, later layers make up for "
                f"{spared.made_up.value:.3f} of the {spared.direct.value:.3f} nats per token that it is worth directly."
            )
        moved = max(self.heads, key=lambda h: h.weights_moved)
        found.append(
            f"Noise of {self.key_noise:.0%} on keys moves the weights of head {moved.name} ({moved.role}) most: by "
            f"{moved.weights_moved:.2f} on average, and the loss by {_effect(moved.noised)}."
        )
        return tuple(found)

    def page(self) -> Page:
        said = Prose("\n\n".join(self.sentences()), "What the heads do")
        return Page("Heads of the model", (said, *self.tables(), self.bars(), self.maps))

    def to_json(self) -> dict[str, Any]:
        """All but the maps; what is not known is null."""
        heads = [{"name": h.name, "role": h.role, **asdict(h)} for h in self.heads]
        whole = {"texts": self.texts, "tokens": self.tokens, "nats": self.nats, "key_noise": self.key_noise}
        found: dict[str, Any] = _without_nan({**whole, "sentences": list(self.sentences()), "heads": heads})
        return found

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()


def attention_maps(model: Attentive, ids: Tensor, tokens: Sequence[str] = ()) -> Panels:
    """The weights of every head on one text (T token ids); `tokens` names its tokens, place by place."""
    if ids.ndim != 1 or not len(ids):
        raise UsageError(
            f"The text to map has shape {tuple(ids.shape)}; give the ids of one text, one after the other."
        )
    return maps_of(model.look(ids[None, :MAP_TOKENS]), ids, tokens)


def maps_of(look: Look, ids: Tensor, tokens: Sequence[str]) -> Panels:
    """Of the first text of `look`, which is `ids`."""
    if tokens and len(tokens) != len(ids):
        raise UsageError(f"{len(tokens)} names were given for the {len(ids)} tokens of the text; give one for each.")
    names = tuple(tokens or map(str, ids.tolist()))[:MAP_TOKENS]
    maps = []
    for layer, weights in enumerate(look.weights):
        for head, one in enumerate(weights[0, :, : len(names), : len(names)].tolist()):
            values = [[weight if j <= t else None for j, weight in enumerate(row)] for t, row in enumerate(one)]
            title = f"head {head_name(layer, head)}"
            maps.append(HeatMap(title, "at", "looks at", names, names, values, low=0.0, high=1.0))
    reading = "Each row is a place in the text, and its cells are the weights on itself and on what stands before it."
    if len(names) < len(ids):
        reading += f" The first {len(names)} of {len(ids)} tokens."
    return Panels("Attention of each head", tuple(maps), reading, across=look.weights[0].shape[1])


def _table(title: str, columns: tuple[Column, ...], rows: Sequence[tuple[Cell, ...]]) -> Table:
    return Table(title, columns, tuple(tuple(map(_known, row)) for row in rows))


def _known(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def _range(interval: Interval) -> str | None:
    if math.isnan(interval.low):
        return None
    return f"{interval.low:+.3f} to {interval.high:+.3f}".replace("-", "−")  # −0.000: 0 is within


def _signed(value: float) -> str:
    return f"{value:+z.3f}".replace("-", "−")


def _effect(interval: Interval) -> str:
    return f"{_signed(interval.value)} nats per token (95 % {_range(interval)})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
