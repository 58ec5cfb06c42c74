"""Write: a model writes as one watches, and every token can be seen for what else it could have been, and changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nicegui import ui

from inkling.pictures.harmless import safe
from inkling.studio.components.marked_text import Choice, MarkedText, Piece
from inkling.studio.frame import empty, heading
from inkling.studio.pages.write_settings import Dials
from inkling.studio.state import Studio
from inkling.studio.views_write import Draft, Pen, Stretch, usual_tokens
from inkling.studio.work import aside, told

MOMENT_SECONDS = 0.08  # between two looks at what was drawn
POINTED = 5  # likeliest tokens that are shown where a piece is pointed at
MOST_DRAFTS = 50
MOST_PROMPT_CHARS = 20_000
OPENING_CHARS = 90


async def build(studio: Studio) -> None:
    names = await aside(studio.language_models)
    if not names:
        empty(
            "There is no language model that could write yet. Train one on the page Runs, or with this command:",
            "inkling data make text world.txt && inkling train gru world.txt --minutes 0.5",
        )
        return
    Desk(studio, names)


class Desk:
    def __init__(self, studio: Studio, names: list[str]) -> None:
        self._studio = studio
        self._drafts: list[Draft] = []
        self._count = 0
        self._shown: Draft | None = None
        self._halt = False
        self._writing = asyncio.Lock()
        with ui.element("div").classes("write-desk"):
            with ui.element("div"):
                with ui.element("div").classes("panel"):
                    self._build_prompt(names)
                with ui.element("div").classes("panel write-sheet"):
                    self._build_sheet()
                with ui.element("div") as self._past:
                    heading("Drafts and branches")
                    self._list = ui.list().props("separator").classes("panel write-drafts")
                self._past.set_visibility(False)
            with ui.element("div").classes("panel"):
                self._dials = Dials()
        self._dialog = ui.dialog()
        ui.timer(0.1, told(self._open), once=True)

    def _build_prompt(self, names: list[str]) -> None:
        self._run = ui.select(names, label="Run", value=names[0], on_change=told(self._open)).props("outlined dense")
        self._run.classes("write-run")
        self._prompt = ui.textarea("Prompt", placeholder="Text to go on from; may be left empty")
        self._prompt.props(f"outlined dense autogrow maxlength={MOST_PROMPT_CHARS}").classes("write-prompt")
        with ui.element("div").classes("line"):
            self._begin = ui.button("Write", icon="edit_note", on_click=told(self._write))
            self._begin.props("unelevated no-caps color=primary")
            self._stop = ui.button("Stop", icon="stop", on_click=self._end).props("outline no-caps")
            self._stop.disable()
            self._status = ui.label().classes("quiet grow").props("role=status")

    def _build_sheet(self) -> None:
        self._hint = ui.label(
            "What the model writes appears here. Point at a piece to see what else it could have been; click it, or "
            "press Enter on it, to put another in its place and go on from there."
        ).classes("quiet")
        self._text = MarkedText(label="What was written", on_ask=self._ask, on_pick=told(self._pick))
        self._text.set_visibility(False)
        with ui.element("div").classes("line write-foot") as self._foot:
            self._said = ui.label().classes("quiet grow").props('data-testid="summary"')
            ui.button("Copy", icon="content_copy", on_click=self._copy).props("flat dense no-caps size=sm")
            self._command = ui.label().classes("command write-command").props('aria-label="The same as a command"')
        self._foot.set_visibility(False)

    # ------------------------------------------------------------------------------------------- writing

    async def _open(self) -> None:
        """Gets the model ready before it is asked to write."""
        model = await aside(self._studio.shelf.language_model, str(self._run.value))
        self._dials.suggest_tokens(usual_tokens(model))

    async def _write(self) -> None:
        name, prompt = str(self._run.value), str(self._prompt.value or "")
        self._begin.disable()
        self._status.text = f"Opening {name} …"
        try:
            model = await aside(self._studio.shelf.language_model, name)
        finally:
            self._begin.enable()
            self._status.text = ""
        self._dials.suggest_tokens(usual_tokens(model))  # perhaps it is being opened for the first time
        await self._go_on(Draft(self._next_number(), name, prompt, self._dials.settings(), model))

    async def _go_on(self, draft: Draft) -> None:
        async with self._writing:
            pen = await aside(Pen, draft)  # a setting that cannot be is said before anything is shown
            self._drafts.insert(0, draft)
            del self._drafts[MOST_DRAFTS:]
            self._halt = False
            self._begin.disable()
            self._stop.enable()
            self._show(draft)
            try:
                while not pen.ended and not self._halt and not self._text.is_deleted:
                    new = draft.add(await aside(pen.write, MOMENT_SECONDS))
                    if not self._text.is_deleted:
                        self._grow(draft, new)
            finally:
                rest = draft.add([], last=True)
                if not self._text.is_deleted:
                    self._grow(draft, rest)
                    self._begin.enable()
                    self._stop.disable()
                    self._status.text = ""
                    self._list_drafts()

    def _grow(self, draft: Draft, new: list[Stretch]) -> None:
        if self._shown is draft:
            first = len(draft.stretches) - len(new)
            if new:
                self._text.append([_piece(draft, first + i) for i in range(len(new))])
            self._said.text = draft.summary()
        self._status.text = f"Writing, {len(draft.tokens):,} tokens …"

    def _end(self) -> None:
        self._halt = True

    def _next_number(self) -> int:
        self._count += 1
        return self._count

    # ------------------------------------------------------------------------------------------- showing

    def _show(self, draft: Draft) -> None:
        self._shown = draft
        prompt = [Piece(draft.prompt, "p", "the prompt")] if draft.prompt else []
        self._text.set_pieces([*prompt, *(_piece(draft, i) for i in range(len(draft.stretches)))])
        self._hint.set_visibility(False)
        self._text.set_visibility(True)
        self._foot.set_visibility(True)
        self._said.text = draft.summary()
        self._command.text = draft.command(_shown_folder(self._studio.folder))
        self._command.set_visibility(bool(self._command.text))
        self._list_drafts()

    def _list_drafts(self) -> None:
        self._past.set_visibility(True)
        self._list.clear()
        with self._list:
            for draft in self._drafts:
                self._list_draft(draft)

    def _list_draft(self, draft: Draft) -> None:
        item = ui.item(on_click=lambda: self._show(draft)).props("clickable")
        if draft is self._shown:
            item.classes("write-current").props("aria-current=true")
        with item:
            with ui.item_section().props("side top"):
                ui.label(str(draft.number)).classes("figure-name number")
            with ui.item_section():
                ui.item_label(f"{draft.run}, {draft.origin or 'seed ' + str(draft.settings.seed)}").props("caption")
                text = safe(draft.text[-OPENING_CHARS:]).replace("\n", " ")
                ui.item_label(f"…{text}" if len(draft.text) > OPENING_CHARS else text or "(nothing yet)")

    def _copy(self) -> None:
        if self._shown is not None:
            ui.clipboard.write(self._shown.text)
            ui.notify("Copied.", position="top")

    # ------------------------------------------------------------------------------------------- what else

    def _stretch(self, index: int) -> int:
        """The number of a stretch from that of a piece; below zero for the prompt."""
        return index - bool(self._shown is not None and self._shown.prompt)

    def _ask(self, index: int) -> None:
        draft, stretch = self._shown, self._stretch(index)
        if draft is None or not 0 <= stretch < len(draft.stretches):
            return
        found = draft.possible(stretch, POINTED)
        choices = [Choice(choice.text, choice.share, choice.chosen) for choice in found]
        self._text.tell(index, choices, "It could have been")

    async def _pick(self, index: int) -> None:
        draft, stretch = self._shown, self._stretch(index)
        if draft is None or not 0 <= stretch < len(draft.stretches):
            return
        self._halt = True  # whoever wants another token does not wait for the end of this text
        self._dialog.clear()
        with self._dialog, ui.card().classes("write-choices"):
            heading("What else it could have been")
            before = draft.prompt + "".join(shown.text for shown in draft.stretches[:stretch])
            ui.label(safe(f"…{before[-OPENING_CHARS:]}")).classes("quiet text-block")
            choices = draft.possible(stretch)
            most = max(choice.share for choice in choices)
            for choice in choices:
                button = ui.button(on_click=lambda token=choice.token: self._dialog.submit(token))
                button.props("flat no-caps align=left").classes("write-choice")
                shown = safe(choice.text).replace("\n", "↵") or "∅"
                button.props["aria-label"] = f"{shown}, {_share(choice.share)}" + ", which was drawn" * choice.chosen
                button.set_enabled(not choice.chosen)
                with button:
                    ui.label(shown + "  (drawn)" * choice.chosen).classes("write-token" + " chosen" * choice.chosen)
                    with ui.element("span").classes("write-track"):
                        ui.element("span").classes("write-bar").style(f"width: {100 * choice.share / most:.1f}%")
                    ui.label(_share(choice.share)).classes("number")
            ui.button("Leave it", on_click=lambda: self._dialog.submit(None)).props("flat no-caps")
        token = await self._dialog
        if token is not None:
            branch = draft.branch(self._next_number(), stretch, int(token), self._dials.settings())
            await self._go_on(branch)


def _piece(draft: Draft, stretch: int) -> Piece:
    shown = draft.stretches[stretch]
    return Piece(shown.text, draft.shade(stretch), draft.note(stretch))


def _share(share: float) -> str:
    return f"{share:.1%}" if share >= 0.0005 else "< 0.1%"


def _shown_folder(folder: Path) -> str:
    """As one would type it here."""
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)
