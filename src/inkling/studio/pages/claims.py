"""Claims: the ledger as a page. A row opens to what came out, and beside it the derivation and the code that checks it.

Rows run in a child, one after the other (`studio/ledger.py`); this page looks every moment whether anything changed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nicegui import ui

from inkling.studio.frame import heading, show
from inkling.studio.ledger import Ledger
from inkling.studio.state import Studio
from inkling.studio.work import aside

if TYPE_CHECKING:
    from inkling.claims.ledger import Claim

LOOK_SECONDS = 0.25
HELD = ("holds", "holds if", "corrected")
KINDS = {"holds": "good", "holds if": "mixed", "corrected": "mixed", "fails": "bad", "no result": "bad"}


def _claims() -> tuple[Claim, ...]:
    from inkling.claims.rows import CLAIMS

    return CLAIMS


async def build(studio: Studio) -> None:
    with ui.element("div").classes("line") as waits:
        ui.spinner(size="1.4rem")
        ui.label("Reading the ledger …").classes("quiet")
    place = ui.element("div")
    await ui.context.client.connected()
    claims = await aside(_claims)
    waits.delete()
    with place:
        top = _Top(studio.ledger, claims)
        from inkling.studio.views_claims import groups

        rows = []
        for title, together in groups(claims).items():
            heading(title)
            with ui.element("div").classes("ledger"):
                rows += [_Row(studio.ledger, claim) for claim in together]

    def look() -> None:
        top.look()
        for row in rows:
            row.look()

    look()
    ui.timer(LOOK_SECONDS, look)


class _Top:
    """Running many rows at once, how far that is, and how rows came out so far."""

    def __init__(self, ledger: Ledger, claims: tuple[Claim, ...]) -> None:
        self.ledger, self.claims = ledger, claims
        self._total = 0
        missing = [claim.id for claim in claims if claim.needs] if ledger.data is None else []
        with ui.element("div").classes("panel"):
            with ui.element("div").classes("line"):
                words = "Run all that need no data" if missing else "Run all"
                self.all = ui.button(words, icon="play_arrow", on_click=self._run_all).props("unelevated no-caps")
                self.counts = ui.label().classes("quiet grow").props('aria-live="polite"')
            if missing:
                ui.label(f"{', '.join(missing)} need data sets. Give their folder when you open the studio:").classes(
                    "quiet claim-data"
                )
                ui.label("inkling studio --data DIR").classes("command")
            with ui.element("div").classes("claim-progress") as self.progress:
                ui.linear_progress(show_value=False).props("indeterminate rounded aria-label=Running")
                with ui.element("div").classes("line"):
                    self.said = ui.label().classes("quiet grow number")
                    ui.button("Cancel all", on_click=ledger.cancel_all).props("outline dense no-caps")

    def _run_all(self) -> None:
        for claim in self.claims:
            if not claim.needs or self.ledger.data is not None:
                self.ledger.want(claim)

    def look(self) -> None:
        running, waiting = self.ledger.running, len(self.ledger.waiting)
        busy = running is not None or waiting > 0
        self.progress.set_visibility(busy)
        if busy:
            name = running.id if running is not None else "Starting"
            words = self.ledger.said if self.ledger.said not in ("", f"{name} …") else ""
            parts = [f"{name} …", words, f"{time.monotonic() - self.ledger.begun:.0f} s", f"{waiting} waiting"]
            self.said.set_text(" · ".join(part for part in parts if part))
        verdicts = [str(row["verdict"]) for row in self.ledger.rows.values()]
        each = [f"{verdicts.count(one)} {one}" for one in (*HELD, "fails", "not run") if one in verdicts]
        self.counts.set_text(
            f"{len(verdicts)} of {len(self.claims)} rows run: {', '.join(each)}."
            if verdicts
            else f"{len(self.claims)} rows. None has been run since the studio was opened."
        )


class _Row:
    """A statement with its verdict; its details are built when it is opened, what came out again when it was run."""

    def __init__(self, ledger: Ledger, claim: Claim) -> None:
        self.ledger, self.claim = ledger, claim
        self._shown: tuple[str, int] | None = None
        with ui.element("article").classes("claim").props(f"data-testid=claim-{claim.id}"):
            with ui.element("div").classes("claim-line"):
                with ui.element("button").classes("claim-head").props('type=button aria-expanded="false"') as self.head:
                    ui.label(claim.id).classes("claim-id")
                    with ui.element("div").classes("claim-words"):
                        ui.label(claim.statement)
                        if claim.published:
                            ui.label(f"Published: {claim.published}").classes("quiet")
                        self.measured = ui.label().classes("claim-measured")
                self.head.on("click", self._turn)
                self.chip = ui.label().classes("verdict").props("role=status")
                self.button = ui.button(on_click=self._press).props("flat dense no-caps").classes("claim-run")
            self.details = ui.element("div").classes("claim-details")
            self.details.set_visibility(False)

    def _press(self) -> None:
        if self.ledger.state(self.claim.id) in ("running", "waiting"):
            self.ledger.cancel(self.claim.id)
        else:
            self.ledger.want(self.claim)
            if not self.details.visible:
                self._turn()
        self.look()

    def _turn(self) -> None:
        visible = not self.details.visible
        self.details.set_visibility(visible)
        self.head.props(f'aria-expanded="{str(visible).lower()}"')
        if visible and not self.details.default_slot.children:
            self._fill()

    def look(self) -> None:
        state = self.ledger.state(self.claim.id)
        now = (state, id(self.ledger.rows.get(self.claim.id)))
        if now == self._shown:
            return
        first, self._shown = self._shown is None, now
        needs = bool(self.claim.needs) and self.ledger.data is None
        self.chip.set_text(state or ("needs data" if needs else "not run yet"))
        self.chip.classes(replace=f"verdict {KINDS.get(state, 'none')}")
        busy = state in ("running", "waiting")
        self.button.set_enabled(not needs)
        self.button.set_text("Cancel" if busy else "Run again" if state else "Run")
        self.button.props(f'aria-label="{"Cancel" if busy else "Run"} {self.claim.id}"')
        row = self.ledger.rows.get(self.claim.id)
        self.measured.set_text(f"Here: {row['measured']}" if row else "")
        self.measured.set_visibility(row is not None)
        if not first and self.details.default_slot.children:
            self._show_outcome()

    def _fill(self) -> None:
        from inkling.studio.views_claims import derivation

        found = derivation(self.claim)
        with self.details:
            self.outcome = ui.element("div").classes("claim-side")
            with ui.element("div").classes("claim-side"):
                ui.label("Derivation").classes("claim-title").props("role=heading aria-level=3")
                for passage in found.words:
                    _source(passage.place, passage.text, "Derivation")
                ui.label("The code that checks it").classes("claim-title").props("role=heading aria-level=3")
                for passage in found.code:
                    _source(passage.place, passage.text, "Code")
        self._show_outcome()

    def _show_outcome(self) -> None:
        self.outcome.clear()
        with self.outcome:
            self._outcome()

    def _outcome(self) -> None:
        name, row = self.claim.id, self.ledger.rows.get(self.claim.id)
        ui.label("What came out here").classes("claim-title").props("role=heading aria-level=3")
        if name in self.ledger.troubles:
            ui.label(self.ledger.troubles[name]).classes("claim-trouble")
        needs = bool(self.claim.needs) and self.ledger.data is None
        if needs:
            what = self.claim.needs.replace("--data with", "a folder of data with")
            ui.label(f"This row {what}. Give it with").classes("quiet")
            ui.label("inkling studio --data DIR").classes("command")
        if row is None:
            if not needs:
                busy = self.ledger.state(name) in ("running", "waiting")
                words = "It is being worked out." if busy else "Not run yet. The same on the command line:"
                ui.label(words).classes("quiet")
                ui.label(f"inkling claims {name}").classes("command")
            return
        with ui.element("div").classes("claim-outcome"):
            for words, value in (
                ("published", row["published"] or "–"),
                ("measured here", row["measured"]),
                ("verdict", row["verdict"]),
                ("time", f"{row['seconds']:.2f} s"),
            ):
                ui.label(words).classes("figure-name")
                ui.label(value).classes("number")
        for markup in row["exhibits"]:
            ui.html(markup, tag="section").classes("exhibit")  # drawn and escaped by `pictures`, in the child
        if row["figures"]:
            from inkling.studio.views_claims import figures_table

            show(figures_table(row)).classes("claim-figures")


def _source(place: str, text: str, kind: str) -> None:
    """A passage of our own source, as text."""
    with ui.element("div").classes("claim-source"):
        ui.label(place).classes("figure-name mono")
        with ui.element("pre").props(f'tabindex=0 aria-label="{kind}: {place}"'):
            ui.label(text).classes("claim-text")
