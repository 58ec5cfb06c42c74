"""The ledger: each row a statement, the published figure, what was measured here, and a verdict.

holds       the statement is true as it stands
holds if    true under a condition, which is quantified
corrected   the statement was wrong; the right form is measured
fails       the statement did not come out here
not run     it needs data that was not given
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from inkling.errors import UsageError
from inkling.figures import Column, Exhibit, Table

Verdict = Literal["holds", "holds if", "corrected", "fails", "not run"]


@dataclass(frozen=True)
class Context:
    """What a claim may use: a folder of real data sets, perhaps, and a way to say what is going on."""

    data: Path | None = None
    say: Callable[[str], None] = lambda _: None

    def file(self, name: str) -> Path | None:
        """A file of the data folder, if it is there."""
        path = self.data / name if self.data else None
        return path if path and path.exists() else None


@dataclass(frozen=True)
class Finding:
    measured: str
    verdict: Verdict
    figures: Mapping[str, float] = field(default_factory=dict)
    exhibits: tuple[Exhibit, ...] = ()


@dataclass(frozen=True)
class Claim:
    id: str
    statement: str
    published: str
    test: Callable[[Context], Finding]
    needs: str = ""  # the data without which it is not run, as the finding then says it


@dataclass(frozen=True)
class LedgerRow:
    id: str
    statement: str
    published: str
    measured: str
    verdict: Verdict
    seconds: float
    figures: Mapping[str, float]
    exhibits: tuple[Exhibit, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "statement": self.statement,
            "published": self.published,
            "measured": self.measured,
            "verdict": self.verdict,
            "seconds": round(self.seconds, 3),
            "figures": dict(self.figures),
        }


def select(claims: Iterable[Claim], wanted: Sequence[str]) -> list[Claim]:
    """Claims by id or by letter; all when none is named."""
    claims = list(claims)
    if not wanted:
        return claims
    chosen: list[Claim] = []
    for name in wanted:
        matching = [c for c in claims if c.id == name.upper() or c.id.rstrip("0123456789") == name.upper()]
        if not matching:
            raise UsageError(f"There is no claim '{name}'; choose from {', '.join(c.id for c in claims)}, or a letter.")
        chosen += [c for c in matching if c not in chosen]
    return chosen


def run(claims: Iterable[Claim], context: Context) -> Iterator[LedgerRow]:
    for claim in claims:
        context.say(f"{claim.id} …")
        started = time.perf_counter()
        finding = claim.test(context)
        seconds = time.perf_counter() - started
        yield LedgerRow(
            claim.id,
            claim.statement,
            claim.published,
            finding.measured,
            finding.verdict,
            seconds,
            finding.figures,
            finding.exhibits,
        )


def ledger_table(rows: Sequence[LedgerRow]) -> Table:
    columns = (
        Column("id"),
        Column("statement"),
        Column("published"),
        Column("measured here"),
        Column("verdict"),
        Column("time", ".1f", unit="s"),
    )
    cells = tuple((r.id, r.statement, r.published, r.measured, r.verdict, r.seconds) for r in rows)
    return Table("The ledger", columns, cells)
