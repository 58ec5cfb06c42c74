"""Mistakes of a classifier drawn: on a terminal, and as one HTML page that needs nothing else.

Each word is shaded by its share of the margin: orange what spoke for the verdict, blue what spoke for the label given,
both on one scale for the whole page, which the legend tells. In black and white the two are told apart as well: strong
words for the verdict are bold, those for the label given bold and slanted; the sentence that decided has a line under
it, the one that spoke against it a dotted one. Exact numbers stand in the title of a word, which a pointer over it
shows. Long texts are cut around the sentences that weighed most; the whole text unfolds below, without a script.

All text passes `safe` and is escaped; the page's policy forbids everything but its own style sheet.
Left out: scripts, and so sorting and filtering (`--json` has every mistake).
"""

from __future__ import annotations

import html
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np

from inkling.explain.errors import ErrorReport, Group
from inkling.explain.faithfulness import Faithfulness
from inkling.explain.reasons import Mistake
from inkling.explain.weighing import Weighed, percent
from inkling.report import page, terminal
from inkling.report.terminal import one_line, safe

EXCERPT_CHARS = 1_500
SENTENCE_CHARS = 500  # of one sentence in an excerpt; the rest of a longer one is left out
QUOTED_CHARS = 220  # of the sentence that stands for a group
WHOLE_CHARS = 20_000  # of a text that unfolds
TERMINAL_MISTAKES, TERMINAL_CHARS = 10, 600
STEPS = (0.1, 0.2, 0.5, 1.0)  # where the shades begin, of a share that is typical for the loudest word of a text

# Colours of the 256 that terminals share, readable on black and on white.
VERDICT_SHADES = ("", "38;5;137", "38;5;166", "1;38;5;166", "1;4;38;5;166")
LABEL_SHADES = ("", "38;5;67", "38;5;32", "1;38;5;32", "1;4;38;5;32")

_BREAKS = re.compile(r"\s*(?:<br\s*/?>\s*)+", re.IGNORECASE)

STYLE = """
:root {
  --v1: #fdefe2; --v2: #fbd7b7; --v3: #f5b078; --v4: #b9540d;
  --g1: #e6f0fb; --g2: #c4dcf6; --g3: #93bdec; --g4: #2a6cb5; --deep: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --v1: #2f241a; --v2: #4d341d; --v3: #7a481a; --v4: #b0520f;
    --g1: #1b2735; --g2: #203b59; --g3: #265788; --g4: #2a6cb5; --deep: #ffffff;
  }
}
main { max-width: 56rem; }
h2 { margin-top: 0; }
.lead { font-size: 1.08rem; max-width: 62ch; }
.legend {
  display: grid; grid-template-columns: max-content max-content; gap: 0.4rem 0.9rem; align-items: center;
  margin: 0 0 1.6rem; font-size: 0.84rem; color: var(--muted);
}
.legend div { display: flex; flex-wrap: wrap; gap: 0.3rem; }
.legend span { padding: 0.1rem 0.5rem; border-radius: 3px; color: var(--ink); }
.legend span.v4, .legend span.g4 { color: var(--deep); }
.legend span.x { color: var(--muted); }
.key { margin: -0.8rem 0 1.6rem; }
.reasons { margin: 0; padding: 0; list-style: none; }
.reasons li { padding: 0.5rem 0; }
.reasons strong { font-weight: 620; }
.reasons .count { float: right; font-variant-numeric: tabular-nums; }
.reasons .count small { color: var(--muted); font-size: 0.85rem; margin-left: 0.4rem; }
.reasons p { margin: 0; color: var(--muted); font-size: 0.87rem; line-height: 1.45; max-width: none; }
.bar { display: block; width: 100%; height: 5px; margin: 0.35rem 0 0.3rem; }
.bar .whole { fill: var(--grid); } .bar .part { fill: var(--line-1); }
.groups { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); gap: 0.9rem; }
.group { border: 1px solid var(--grid); border-radius: 6px; padding: 0.85rem 1rem 0.9rem; }
.group h3 { margin: 0 0 0.5rem; font-size: 0.95rem; font-weight: 620; }
.group h3 b { font-size: 1.15rem; font-weight: 680; margin-right: 0.15rem; }
.chips { display: flex; flex-wrap: wrap; gap: 0.3rem; margin: 0 0 0.65rem; padding: 0; list-style: none; }
.chips li { background: var(--v1); border-radius: 3px; padding: 0.05rem 0.45rem; font-size: 0.87rem; }
.chips small { color: var(--muted); font-variant-numeric: tabular-nums; }
.group q { display: block; font: italic 0.87rem/1.5 Georgia, serif; quotes: "“" "”"; overflow-wrap: anywhere; }
.group .from { margin: 0.3rem 0 0; font-size: 0.8rem; color: var(--muted); }
.group a, .group a:visited { color: inherit; }
.card { border: 1px solid var(--grid); border-radius: 6px; margin: 0 0 1.4rem; padding: 1rem 1.2rem 0.9rem; }
.card:target { border-color: var(--line-2); }
.head { display: flex; flex-wrap: wrap; gap: 0.25rem 0.9rem; align-items: baseline; margin: 0 0 0.35rem; }
.head .row { color: var(--muted); font-size: 0.85rem; font-variant-numeric: tabular-nums; }
.head .sure { font-variant-numeric: tabular-nums; }
.head .kind {
  margin-left: auto; border: 1px solid var(--rule); border-radius: 99px; padding: 0 0.65rem; font-size: 0.8rem;
}
.pair { font-weight: 640; overflow-wrap: anywhere; }
.pair .given { color: var(--line-1); } .pair .taken { color: var(--line-2); }
.why { margin: 0 0 0.75rem; font-size: 0.93rem; line-height: 1.5; max-width: none; white-space: normal; }
.text { font: 1rem/1.75 Georgia, "Times New Roman", serif; white-space: pre-line; overflow-wrap: anywhere; }
.text p { max-width: none; margin: 0; }
.text span { border-radius: 2px; padding: 0.1em 0; }
.cut { color: var(--muted); letter-spacing: 0.1em; }
.v1 { background: var(--v1); } .v2 { background: var(--v2); }
.v3 { background: var(--v3); font-weight: 700; }
.v4 { background: var(--v4); color: var(--deep); font-weight: 700; }
.g1 { background: var(--g1); } .g2 { background: var(--g2); }
.g3 { background: var(--g3); font-weight: 700; font-style: italic; }
.g4 { background: var(--g4); color: var(--deep); font-weight: 700; font-style: italic; }
.x { color: var(--muted); }
u { text-decoration: underline 2px; text-underline-offset: 0.32em; text-decoration-skip-ink: none; }
u.decided { text-decoration-color: var(--line-2); }
u.against { text-decoration-style: dotted; text-decoration-color: var(--line-1); }
.told { margin: 0.7rem 0 0; font-size: 0.82rem; color: var(--muted); max-width: none; }
details { margin: 0.6rem 0 0; font-size: 0.9rem; }
summary { cursor: pointer; color: var(--muted); font-size: 0.82rem; }
details .text { font-size: 0.93rem; margin-top: 0.6rem; border-top: 1px solid var(--grid); padding-top: 0.7rem; }
@media (max-width: 36rem) {
  .card { padding: 0.8rem 0.9rem; }
  .head .kind { margin-left: 0; }
  .legend { grid-template-columns: 1fr; gap: 0.2rem; }
  .legend div { margin-bottom: 0.4rem; }
}
@media print {
  .text span, .legend span, .chips li, .bar { print-color-adjust: exact; }
  section { break-inside: auto; } .card, .group { break-inside: avoid; } details { display: none; }
}
"""


def scale(texts: Iterable[Weighed]) -> tuple[float, ...]:
    """Where the shades begin, in nats: parts of the share that the loudest word of a text typically has, rounded."""
    loudest = [float(np.abs(text.shares).max(initial=0.0)) for text in texts]
    typical = float(np.median([share for share in loudest if share > 0] or [1.0]))
    power = 10.0 ** math.floor(math.log10(typical))
    top = power * max(digit for digit in (1, 2, 5) if digit * power <= typical * (1 + 1e-9))
    return tuple(step * top for step in STEPS)


def level(share: float, levels: tuple[float, ...]) -> int:
    """How many of the levels a share reaches, below zero for one that speaks for the label given."""
    reached = sum(abs(share) >= limit for limit in levels)
    return reached if share > 0 else -reached


def excerpt(weighed: Weighed, most: int = EXCERPT_CHARS) -> list[tuple[int, int]]:
    """The places to show of a text, in characters: sentences that weigh most, first those that decided and opposed."""
    size = len(weighed.text)
    if size <= most:
        return [(0, size)]
    if not len(weighed.sentences):
        return [(0, most)]
    weights = np.abs(weighed.sentence_shares)
    special = [place for place in (weighed.decider, weighed.opponent) if place is not None]
    chosen: list[tuple[int, int]] = []
    left = most
    for place in dict.fromkeys([*special, *np.argsort(-weights, kind="stable").tolist()]):
        start, end = _shortened(weighed, place)
        if end - start <= left:
            chosen.append((start, end))
            left -= end - start + 1  # and the space to the next
        elif place not in special:
            break
    chosen.sort()
    merged = chosen[:1]
    for start, end in chosen[1:]:
        if not _BREAKS.sub("", weighed.text[merged[-1][1] : start]).strip():  # nothing but space was left out
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def _shortened(weighed: Weighed, sentence: int, most: int = SENTENCE_CHARS) -> tuple[int, int]:
    """The place of a sentence; of a long one, as many words as fit around the one that weighs most."""
    start, end = weighed.span(sentence)
    if end - start <= most:
        return start, end
    first, last = weighed.sentences[sentence].tolist()
    loudest = first + int(np.abs(weighed.shares[first:last]).argmax())
    low, high = loudest, loudest + 1
    while True:
        wider = [(low - 1, high)] * (low > first) + [(low, high + 1)] * (high < last)
        fitting = [(a, b) for a, b in wider if weighed.ends[b - 1] - weighed.starts[a] <= most]
        if not fitting:
            break
        middle = weighed.starts[loudest] + weighed.ends[loudest]
        low, high = min(fitting, key=lambda span: abs(weighed.starts[span[0]] + weighed.ends[span[1] - 1] - middle))
    start = int(weighed.starts[low])
    return start, min(int(weighed.ends[high - 1]), start + most)


# ------------------------------------------------------------------------------------------------ the page


def render(report: ErrorReport, faithfulness: Faithfulness | None = None, notes: Sequence[str] = ()) -> str:
    """The whole HTML document. `notes`, which say how to read the figures, stand below the first paragraph."""
    where = f" on {report.text_name}" if report.text_name else ""
    title = f"Where {report.name or 'the model'} errs{where}"
    told = "".join(f'\n<p class="note">{_text(note)}</p>' for note in notes)
    sections = [f'<p class="lead">{_text(report.summary())}</p>{told}']
    sections += [page.draw(table) for table in (report.report.tables() if report.report else ())]
    if report.cases:
        sections.append(_reasons(report))
        if report.groups:
            sections.append(_groups(report))
        sections.append(_mistakes(report))
    if faithfulness:
        sections += [page.draw(faithfulness.chart()), page.draw(faithfulness.table())]
    return page.document(title, sections, STYLE)


def write(report: ErrorReport, path: Path, faithfulness: Faithfulness | None = None, notes: Sequence[str] = ()) -> None:
    """Write the page so that `path` holds either the old or the whole new file, whatever happens in between."""
    page.save(render(report, faithfulness, notes), path)


def _reasons(report: ErrorReport) -> str:
    table = report.reason_table()
    items = [
        f'<li><span class="count">{n:,}<small>{share:.0f} %</small></span><strong>{_line(str(kind))}</strong>'
        f'<svg class="bar" viewBox="0 0 100 5" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="whole" width="100" height="5"/><rect class="part" width="{share:.2f}" height="5"/></svg>'
        f"<p>{_line(str(rule))}</p></li>"
        for kind, n, share, rule in table.rows
    ]
    notes = "".join(f'<p class="note">{_text(note)}</p>' for note in table.notes)
    return f'<h2>{_line(table.title)}</h2>\n<ul class="reasons">\n{chr(10).join(items)}\n</ul>{notes}'


def _groups(report: ErrorReport) -> str:
    table = report.group_table()
    shown = {mistake.case.row for mistake in report.mistakes}
    cards = "\n".join(_group(report, group, group.example.case.row in shown) for group in report.groups)
    notes = "".join(f'<p class="note">{_text(note)}</p>' for note in table.notes)
    return f'<h2>{_line(table.title)}</h2>\n<div class="groups">\n{cards}\n</div>{notes}'


def _group(report: ErrorReport, group: Group, linked: bool) -> str:
    chips = "".join(f"<li>{_line(word.word)} <small>{word.holders}</small></li>" for word in group.words)
    row = group.example.case.row
    named = f'<a href="#row-{row}">row {row}</a>' if linked else f"row {row}"
    sentence = ""
    decider = group.example.weighed.decider
    if decider is not None:
        sentence = f"<q>{_line(_quoted(group.example.weighed, decider, QUOTED_CHARS))}</q>"
    return (
        f'<div class="group"><h3><b>{len(group.rows):,}</b> × '
        f'<span class="pair">{_pair(report, group.truth, group.verdict)}</span></h3>'
        f'<ul class="chips">{chips}</ul>{sentence}'
        f'<p class="from">{named}, {_line(group.example.case.kind)}</p></div>'
    )


def _mistakes(report: ErrorReport) -> str:
    table = report.mistake_table()
    levels = scale(mistake.weighed for mistake in report.mistakes)
    cards = "\n".join(_card(report, mistake, levels) for mistake in report.mistakes)
    notes = "".join(f'<p class="note">{_text(note)}</p>' for note in table.notes)
    return f"<h2>{_line(table.title)}</h2>\n{_legend(levels)}\n{cards}{notes}"


def _legend(levels: tuple[float, ...]) -> str:
    def chips(letter: str) -> str:
        return "".join(f'<span class="{letter}{i}">{name}</span>' for i, name in enumerate(_ranges(levels), 1))

    return (
        f'<div class="legend">for the verdict, in nats<div>{chips("v")}</div>for the label given<div>{chips("g")}</div>'
        'sentences<div><span><u class="decided">decided</u></span><span><u class="against">spoke against it</u></span>'
        '<span class="x">unknown word</span></div></div>\n'
        '<p class="note key">Nats of a word or sentence: its share of the log-odds of the verdict against the label '
        "given. The shares of a text add up to them, less those of an empty text. “Left out alone” is what they would "
        "lose without it, exactly; of a word that stands twice, one can often go and nothing changes.</p>"
    )


def _ranges(levels: tuple[float, ...]) -> list[str]:
    return [f"{low:g}–{high:g}" for low, high in pairwise(levels)] + [f"≥{levels[-1]:g}"]


def _card(report: ErrorReport, mistake: Mistake, levels: tuple[float, ...]) -> str:
    case, weighed = mistake.case, mistake.weighed
    names = report.labels[case.truth], report.labels[case.verdict]
    places = excerpt(weighed)
    cut = '<span class="cut"> … </span>'
    shown = cut.join(_shaded(weighed, start, end, levels, names) for start, end in places)
    if places and places[0][0] > 0:
        shown = cut + shown
    if places and places[-1][1] < len(weighed.text):
        shown += cut
    whole = ""
    if places != [(0, len(weighed.text))]:
        end = min(len(weighed.text), WHOLE_CHARS)
        more = cut if end < len(weighed.text) else ""
        text = _shaded(weighed, 0, end, levels, names)
        whole = (
            f"<details><summary>The whole text, {len(weighed.text):,} characters</summary>"
            f'<div class="text">{text}{more}</div></details>'
        )
    told = _told(weighed, *names)
    note = f'<p class="told">{_line(told)}</p>' if told else ""
    return (
        f'<article class="card" id="row-{case.row}">\n<div class="head"><span class="row">row {case.row}</span>'
        f'<span class="pair">{_pair(report, case.truth, case.verdict)}</span>'
        f'<span class="sure">{_line(percent(case.probability))}</span>'
        f'<span class="kind">{_line(case.kind)}</span></div>\n'
        f'<p class="why">{_text(case.reason)}</p>\n<div class="text">{shown}</div>\n{note}{whole}\n</article>'
    )


def _told(weighed: Weighed, given: str, taken: str) -> str:
    decider, opponent = weighed.decider, weighed.opponent
    parts: list[str] = []
    if len(weighed.sentences) == 1:  # nothing to tell apart
        return ""
    if decider is not None:
        alone = weighed.sentence_effects[decider]
        parts.append(
            f"The sentence that decided: {weighed.sentence_shares[decider]:.2f} nats for {taken} "
            f"(left out alone: {alone:+.2f})."
        )
    if opponent is not None:
        alone = -weighed.sentence_effects[opponent]
        parts.append(
            f"The one against it: {-weighed.sentence_shares[opponent]:.2f} nats for {given} "
            f"(left out alone: {alone:+.2f})."
        )
    return " ".join(parts)


def _shaded(weighed: Weighed, start: int, end: int, levels: tuple[float, ...], names: tuple[str, str]) -> str:
    """The text from `start` to `end` with its words shaded and the two sentences marked."""
    marked: dict[int, str] = {}
    for kind, sentence in (("decided", weighed.decider), ("against", weighed.opponent)):
        if sentence is not None and len(weighed.sentences) > 1:
            first, last = weighed.sentences[sentence].tolist()
            marked.update(dict.fromkeys(range(first, last), kind))
    parts: list[str] = []
    place, open_kind = start, ""
    for word, word_start, word_end in _words_between(weighed, start, end):
        kind = marked.get(word, "")
        between = _gap(weighed.text[place:word_start])
        if open_kind and kind != open_kind:
            parts.append("</u>")
        parts.append(between)
        if kind and kind != open_kind:
            parts.append(f'<u class="{kind}">')
        open_kind = kind
        parts.append(_word(weighed, word, weighed.text[word_start:word_end], levels, names))
        place = word_end
    if open_kind:
        parts.append("</u>")
    parts.append(_gap(weighed.text[place:end]))
    return "".join(parts)


def _words_between(weighed: Weighed, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    first, last = np.searchsorted(weighed.starts, [start, end])
    for word in range(int(first), int(last)):
        yield word, int(weighed.starts[word]), min(end, int(weighed.ends[word]))


def _word(weighed: Weighed, word: int, text: str, levels: tuple[float, ...], names: tuple[str, str]) -> str:
    share, body = float(weighed.shares[word]), _text(text)
    shade = level(share, levels)
    if not weighed.known[word]:
        return f'<span class="x" title="unknown">{body}</span>'
    if not shade:
        return body
    side = names[1] if share > 0 else names[0]
    alone = float(weighed.effects[word]) * (1 if share > 0 else -1)
    title = f"{abs(share):.2f} nats for {side} (left out alone: {alone:+.2f})"
    return f'<span class="{"v" if share > 0 else "g"}{abs(shade)}" title="{_line(title)}">{body}</span>'


def _gap(text: str) -> str:
    """What stands between words: line breaks of the web become line ends, as a reader of the web saw them."""
    return _text(_BREAKS.sub(lambda found: "\n\n" if found[0].count("<") > 1 else "\n", text))


def _quoted(weighed: Weighed, sentence: int, most: int = SENTENCE_CHARS) -> str:
    """A sentence in one line, with … where it was shortened."""
    start, end = _shortened(weighed, sentence, most)
    first, last = weighed.span(sentence)
    text = " ".join(_BREAKS.sub(" ", weighed.text[start:end]).split())
    return "… " * (start > first) + text + " …" * (end < last)


def _pair(report: ErrorReport, truth: int, verdict: int) -> str:
    given, taken = report.labels[truth], report.labels[verdict]
    return f'<span class="given">{_line(given)}</span> → <span class="taken">{_line(taken)}</span>'


def _text(text: str) -> str:
    return html.escape(safe(text))


def _line(text: str) -> str:
    return html.escape(one_line(text))


# ------------------------------------------------------------------------------------------------ the terminal


def write_terminal(report: ErrorReport, file: IO[str] | None = None, most: int = TERMINAL_MISTAKES) -> None:
    """Summary, tables and the `most` confident mistakes with their words coloured, on stdout; the legend on stderr."""
    out = file or sys.stdout
    colourful = terminal.is_colourful(out)
    terminal.write_safely(safe(report.summary()) + "\n", out)
    tables = report.tables()[:-1]  # the last lists the mistakes, which follow with their texts
    for table in tables:
        terminal.write_safely("\n", out)
        terminal.print_table(table, file=out)
    levels = scale(mistake.weighed for mistake in report.mistakes)
    if report.mistakes and colourful:
        for name, shades in (("the verdict", VERDICT_SHADES), ("the label given", LABEL_SHADES)):
            chips = zip(_ranges(levels), shades[1:], strict=True)
            drawn = "  ".join(paint(text, shade) for text, shade in chips)
            terminal.write_safely(f"Nats for {name}: {drawn}\n", sys.stderr)
    for mistake in report.mistakes[:most]:
        case, weighed = mistake.case, mistake.weighed
        given, taken = report.labels[case.truth], report.labels[case.verdict]
        head = one_line(f"row {case.row}  {given} → {taken}  {percent(case.probability)}  {case.kind}")
        lines = ["", paint(head, "1") if colourful else head, one_line(case.reason)]
        lines.append(draw_in_line(weighed, levels, colourful))
        for name, sentence in (("decided by", weighed.decider), ("against it", weighed.opponent)):
            if sentence is not None and len(weighed.sentences) > 1:
                words = one_line(_quoted(weighed, sentence))
                lines.append(f"  {name} ({weighed.sentence_shares[sentence]:+.2f} nats): “{words}”")
        terminal.write_safely("\n".join(lines) + "\n", out)
    left = len(report.cases) - min(most, len(report.mistakes))
    if left > 0:
        terminal.notice(f"{left:,} more mistakes; --html shows more of them, --json all.")


def draw_in_line(weighed: Weighed, levels: tuple[float, ...], colourful: bool) -> str:
    """An excerpt in one line; words coloured where that is wanted."""
    places = excerpt(weighed, TERMINAL_CHARS)
    parts: list[str] = []
    for start, end in places:
        drawn: list[str] = []
        place = start
        for word, word_start, word_end in _words_between(weighed, start, end):
            shade = level(float(weighed.shares[word]), levels) if colourful else 0
            drawn.append(_flat(weighed.text[place:word_start]))
            text = one_line(weighed.text[word_start:word_end])
            drawn.append(paint(text, VERDICT_SHADES[shade] if shade > 0 else LABEL_SHADES[-shade]))
            place = word_end
        parts.append("".join([*drawn, _flat(weighed.text[place:end])]).strip())
    before = "… " if places[0][0] > 0 else ""
    after = " …" if places[-1][1] < len(weighed.text) else ""
    return f"  {before}{' … '.join(parts)}{after}"


def _flat(text: str) -> str:
    return one_line(_BREAKS.sub(" ", text).replace("\n", " "))


def paint(text: str, shade: str) -> str:
    return f"\x1b[{shade}m{text}\x1b[0m" if shade and text else text
