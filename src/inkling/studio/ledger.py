"""The ledger of a studio: rows that were run since it was opened, rows that wait, and the one that is running.

It belongs to the studio and not to a page, so that a page may be closed meanwhile and two pages show the same. Rows run
one after the other, in a child; those of one module that wait together share one, because they share trainings. A row
that is cancelled takes its child with it, and the others of that child are begun again.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inkling.errors import InklingError

if TYPE_CHECKING:
    from inkling.claims.ledger import Claim
    from inkling.studio.work import Child


@dataclass
class Ledger:
    data: Path | None = None
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)  # as `inkling claims ID --json`, and its exhibits
    troubles: dict[str, str] = field(default_factory=dict)  # why a row has no result
    waiting: list[Claim] = field(default_factory=list)
    running: Claim | None = None
    said: str = ""
    begun: float = 0.0  # of `time.monotonic`
    _child: Child | None = None
    _worker: asyncio.Task[None] | None = None

    def state(self, name: str) -> str:
        """`running`, `waiting`, a verdict, `no result`, or nothing."""
        if self.running is not None and self.running.id == name:
            return "running"
        if any(claim.id == name for claim in self.waiting):
            return "waiting"
        if name in self.troubles:
            return "no result"
        return str(self.rows[name]["verdict"]) if name in self.rows else ""

    def want(self, claim: Claim) -> None:
        """Puts a row at the end of those that wait, unless it is there; call from the event loop."""
        if self.state(claim.id) not in ("running", "waiting"):
            self.troubles.pop(claim.id, None)
            self.waiting.append(claim)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())

    def cancel(self, name: str) -> None:
        if self.running is not None and self.running.id == name:
            self.troubles[name] = "This was cancelled."
            if self._child is not None:
                self._child.cancel()
        self.waiting = [claim for claim in self.waiting if claim.id != name]

    def cancel_all(self) -> None:
        self.waiting = []
        if self.running is not None:
            self.cancel(self.running.id)

    async def _work(self) -> None:
        while self.waiting:
            module = self.waiting[0].test.__module__
            together = [claim for claim in self.waiting if claim.test.__module__ == module]
            await self._run(together)

    async def _run(self, together: list[Claim]) -> None:
        from inkling.studio.work import Child

        left = list(together)

        def begin() -> None:
            """The next row of this child that is still wanted; one that no longer is ends it."""
            self.running, self.said, self.begun = None, "", time.monotonic()
            if left and left[0] in self.waiting:
                self.running = left.pop(0)
                self.waiting.remove(self.running)
            elif self._child is not None:
                self._child.cancel()

        def part(row: dict[str, Any]) -> None:
            self.rows[row["id"]] = row
            begin()

        def progress(done: float | None, sentence: str) -> None:
            self.said = sentence or self.said

        begin()
        arguments = {"ids": [claim.id for claim in together], "data": str(self.data) if self.data else None}
        self._child = Child("claim", arguments, progress, part)
        try:
            await self._child.result()
        except InklingError as error:
            if self.running is not None:
                self.troubles.setdefault(self.running.id, str(error))
        finally:
            self._child = self.running = None
