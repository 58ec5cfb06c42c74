"""The mistakes of a classifier on a labelled file, to be browsed: filters, groups, and each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from inkling.errors import InklingError
from inkling.pictures.harmless import one_line
from inkling.studio.components.marked_text import MarkedText, Piece
from inkling.studio.intake import OneFile
from inkling.studio.pages.classify_words import TALL_CHARS, Legend, scroll_to, write_lines
from inkling.studio.state import Studio
from inkling.studio.tasks_classify import MADE_NAME
from inkling.studio.views_classify import Wanted, opening, pair_of, pairs_of, tell_mistake
from inkling.studio.waiting import Waiting
from inkling.studio.work import aside, told

if TYPE_CHECKING:
    from inkling.studio.pages.classify import Desk

PAGE_ROWS = 20
ALL = "all"


class Browser:
    def __init__(self, studio: Studio, desk: Desk) -> None:
        self.studio, self.desk = studio, desk
        with ui.element("div").classes("panel"):
            ui.label(
                "Texts with labels to judge by: a table with a text and a label in each row. Without a file of your "
                "own, reviews are generated that no training has seen."
            ).classes("quiet")
            with ui.element("div").classes("line top classify-source"):
                self._handed = OneFile(studio, "A labelled file (.csv, .tsv, .jsonl, …)", self._name_source)
                with ui.element("div").classes("grow"):
                    self._source = ui.label().props("data-testid=source")
                    with ui.expansion("Which columns").props("dense").classes("classify-columns"):
                        ui.label("Guessed by their names where nothing is said.").classes("quiet")
                        with ui.element("div").classes("line"):
                            self._text_column = ui.input("Text column").props("outlined dense")
                            self._label_column = ui.input("Label column").props("outlined dense")
            with ui.element("div").classes("line"):
                self._start = ui.button("Find mistakes", on_click=told(self._find)).props("unelevated no-caps")
                self._back = ui.button("Use generated reviews", on_click=self._handed.forget).props("flat no-caps")
            self._waiting = Waiting()
        self._found = ui.element("div")
        self._name_source()

    def _name_source(self) -> None:
        self._source.text = f"Judged by: {self._handed.file.name if self._handed.file else MADE_NAME}"
        self._back.visible = self._handed.file is not None

    async def _find(self) -> None:
        if self._handed.file is None and not self.desk.knows_reviews():
            raise InklingError("This classifier has other labels than generated reviews; hand in a file with its own.")
        run = self.studio.run(self.desk.run.value)
        arguments: dict[str, Any] = {"run": str(run.path)}
        if self._handed.file is not None:
            columns = {"text_column": self._text_column.value, "label_column": self._label_column.value}
            arguments |= {"path": str(self._handed.file.path), "name": self._handed.file.name, **columns}
        self._start.disable()
        try:
            found = await self._waiting.result("mistakes", arguments, "Beginning …")
        finally:
            self._start.enable()
        if found is not None:
            self._found.clear()
            with self._found:
                _Found(self.studio, self.desk, found)


class _Found:
    """One result: what can be said, filters and groups, and the list."""

    def __init__(self, studio: Studio, desk: Desk, found: dict[str, Any]) -> None:
        self.studio, self.desk, self.found = studio, desk, found
        self._group = -1
        self._cards: list[ui.element] = []
        self._shown: list[dict[str, Any]] = []
        self._say_all()
        if not found["mistakes"]:
            return
        self._draw_reasons()
        if found["groups"]:
            self._draw_groups()
        self._draw_filters()
        self._count = ui.label().classes("quiet").props("role=status data-testid=count")
        self._list = ui.element("div").classes("classify-list").props("role=list")
        self._pages = ui.pagination(1, 1, direction_links=True, on_change=self._draw_page).props("max-pages=7")
        self._filter()

    # ------------------------------------------------------------------------------------------- above the list

    def _say_all(self) -> None:
        found = self.found
        with ui.element("div").classes("panel"):
            with ui.element("div").classes("line classify-figures"):
                for name, value in (
                    ("right", f"{100 * found['accuracy']:.1f} %"),
                    ("texts", f"{found['text_count']:,}"),
                    ("mistakes", f"{found['mistake_count']:,}"),
                ):
                    with ui.element("div"):
                        ui.label(value).classes("figure-value").props(f"data-testid={name}")
                        ui.label(name).classes("figure-name")
            ui.label(one_line(found["summary"])).props("data-testid=summary")
            for sentence in found["known"]:
                ui.label(one_line(sentence)).classes("quiet classify-known")
            with ui.expansion("Every class, and how the file was read").props("dense"):
                for table in found["tables"]:
                    ui.html(table, tag="section").classes("exhibit")  # drawn and escaped by pictures/markup.py
                for note in found["notes"]:
                    ui.label(one_line(note)).classes("quiet")

    def _draw_reasons(self) -> None:
        whole = self.found["mistake_count"]
        self._reasons: dict[str, ui.element] = {}
        with ui.element("div").classes("panel"):
            ui.label("Why the mistakes happen").classes("classify-title")
            for kind, count, meaning in sorted(self.found["reasons"], key=lambda one: -one[1]):
                with ui.element("button").classes("classify-reason").props("type=button aria-pressed=false") as row:
                    ui.label(kind).classes("name")
                    ui.label(f"{count:,} ({100 * count / whole:.0f} %)").classes("number")
                    ui.linear_progress(count / whole, show_value=False).props(
                        "rounded size=5px instant-feedback aria-hidden=true"
                    )
                    ui.label(meaning).classes("quiet")
                row.on("click", lambda kind=kind: self._choose_kind(kind))
                self._reasons[kind] = row

    def _draw_groups(self) -> None:
        with ui.element("div").classes("panel"):
            ui.label("Mistakes that are alike").classes("classify-title")
            ui.label("Beside a word: how many of the group have it among their strongest.").classes("quiet")
            with ui.element("div").classes("classify-groups"):
                for place, group in enumerate(self.found["groups"]):
                    with ui.element("button").classes("classify-group").props("type=button aria-pressed=false") as card:
                        ui.label(one_line(f"{len(group['rows']):,} × {pair_of(group)}")).classes("name")
                        with ui.element("div").classes("classify-chips"):
                            for word in group["words"]:
                                ui.label(one_line(f"{word['word']} {word['holders']}")).classes("chip")
                    card.on("click", lambda place=place: self._choose_group(place))
                    self._cards.append(card)

    def _choose_kind(self, kind: str) -> None:
        self._kind.value = ALL if self._kind.value == kind else kind
        if self._kind.value == kind:
            scroll_to(self._count)

    def _choose_group(self, place: int) -> None:
        self._group = -1 if self._group == place else place
        self._filter()
        if self._group == place:
            scroll_to(self._count)

    def _draw_filters(self) -> None:
        kinds = {ALL: "all reasons"} | {kind: f"{kind} ({count:,})" for kind, count, _ in self.found["reasons"]}
        counted = pairs_of(self.found["mistakes"])
        pairs = {ALL: "all pairs"} | {pair: one_line(f"{pair} ({count:,})") for pair, count in counted.items()}
        with ui.element("div").classes("panel"):
            ui.label("Which to list").classes("classify-title")
            with ui.element("div").classes("line"):
                self._kind = ui.select(kinds, value=ALL, label="Reason", on_change=self._filter)
                self._pair = ui.select(pairs, value=ALL, label="Label → verdict", on_change=self._filter)
                self._part = ui.input("Text contains", on_change=self._filter)
                self._least = ui.number("At least so sure (%)", value=0, min=0, max=100, step=5, on_change=self._filter)
                for field in (self._kind, self._pair, self._part):
                    field.props("outlined dense").classes("grow")
                self._part.props("clearable debounce=200")
                self._least.props("outlined dense debounce=200").classes("classify-least")
            self._of_group = ui.chip(removable=True, on_value_change=self._leave_group).props("outline")

    # ------------------------------------------------------------------------------------------- the list

    def _leave_group(self) -> None:
        if not self._of_group.value and self._group >= 0:
            self._choose_group(self._group)

    def _mark(self) -> None:
        """What is chosen, where it can be chosen."""
        for at, card in enumerate(self._cards):
            card.props(f"aria-pressed={'true' if at == self._group else 'false'}")
        for kind, row in self._reasons.items():
            row.props(f"aria-pressed={'true' if kind == self._kind.value else 'false'}")
        if self._group >= 0:
            group = self.found["groups"][self._group]
            self._of_group.text = one_line(f"alike: {len(group['rows']):,} × {pair_of(group)}")
        self._of_group.value = self._of_group.visible = self._group >= 0

    def _filter(self) -> None:
        self._mark()
        wanted = Wanted(
            "" if self._kind.value == ALL else str(self._kind.value),
            "" if self._pair.value == ALL else str(self._pair.value),
            (self._least.value or 0) / 100,
            self._part.value or "",
            frozenset(self.found["groups"][self._group]["rows"] if self._group >= 0 else ()),
        )
        self._shown = wanted.choose(self.found["mistakes"])
        more = self.found["mistake_count"] - len(self.found["mistakes"])
        beyond = f"; {more:,} less confident ones are counted above and not listed" if more else ""
        listed = f"{len(self._shown):,} of {len(self.found['mistakes']):,} mistakes"
        self._count.text = f"{listed}, most confident first{beyond}."
        self._pages.max = max(1, -(-len(self._shown) // PAGE_ROWS))
        self._pages.visible = self._pages.max > 1
        if self._pages.value == 1:
            self._draw_page()
        else:
            self._pages.value = 1

    def _draw_page(self) -> None:
        first = ((self._pages.value or 1) - 1) * PAGE_ROWS
        self._list.clear()
        with self._list:
            for mistake in self._shown[first : first + PAGE_ROWS]:
                self._draw_row(mistake)

    def _draw_row(self, mistake: dict[str, Any]) -> None:
        row = ui.expansion().classes("classify-mistake").props("role=listitem")
        row.props["header-class"] = "classify-head"
        with row.add_slot("header"), ui.element("div").classes("classify-row"):
            ui.label(f"row {mistake['row']}").classes("quiet number")
            ui.label(one_line(pair_of(mistake))).classes("name")
            ui.label(f"{100 * mistake['probability']:.1f} %").classes("number")
            ui.label(mistake["kind"]).classes("chip")
            ui.label(one_line(opening(mistake["text"], self._part.value or ""))).classes("opening")
        opened = False

        async def open_row() -> None:
            nonlocal opened
            if opened or not row.value:
                return
            opened = True
            found = await aside(self._tell, mistake)
            with row:
                ui.label(one_line(mistake["reason"])).classes("classify-said").props("data-testid=reason")
                words = MarkedText(
                    (Piece(*one) for one in found.pieces), label=f"Row {mistake['row']}, its words coloured"
                )
                if len(mistake["text"]) > TALL_CHARS:
                    words.classes("classify-tall")
                Legend().show(found, mistake["verdict"], mistake["label"])
                write_lines(ui.element("div"), found)
                edit = ui.button("Edit and see", icon="edit").props("flat no-caps dense")
                edit.on_click(told(self._edit_of(mistake)))

        row.on_value_change(told(open_row))

    def _edit_of(self, mistake: dict[str, Any]) -> Any:
        async def edit() -> None:
            await self.desk.edit(mistake, self.found["run"])

        return edit

    def _tell(self, mistake: dict[str, Any]) -> Any:
        network = self.studio.shelf.classifier(self.found["run"])
        return tell_mistake(network, mistake["text"], mistake["label"], mistake["verdict"], self.found["levels"])
