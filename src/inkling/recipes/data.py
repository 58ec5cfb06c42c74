"""Which text a language model learns from, and which it is judged by while it learns.

Held-out text is never trained on. Named files serve if given; otherwise a part of the training files is set aside:
of running text the last tenth (neighbouring lines resemble each other, so a scattered tenth would leak), of tables
every tenth row (tables are often sorted).

A name such as `data:wikitext2-raw/train` stands for a set of the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.models.contracts import Speller
from inkling.runs.run import Run
from inkling.text.corpus import Corpus
from inkling.text.folders import find_format
from inkling.text.normalise import Chain
from inkling.text.tokenise import Pieces, train_tokeniser
from inkling.text.tokens import Tokeniser

CATALOGUE_PREFIX = "data:"


@dataclass(frozen=True)
class TextConfig:
    """Where the text is and how it is read."""

    files: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()
    held_out_share: float = 0.1
    text_column: str | None = None
    encoding: str | None = None
    header: bool | None = None
    format: str | None = None
    bad_rows: Literal["stop", "skip"] = "stop"
    normalise: str = "none"


def resolve(name: str) -> str:
    """The path that a name stands for: `data:NAME` is a set of the catalogue, anything else is itself."""
    if not name.startswith(CATALOGUE_PREFIX):
        if "." not in name and not Path(name).exists():
            from inkling.text.data_sets import DATA_SETS

            if name.partition("/")[0] in DATA_SETS:
                raise InklingError(f"{name} does not exist; the data set of that name is called data:{name}.")
        return name
    from inkling.text.catalogue import data_path

    return str(data_path(name.removeprefix(CATALOGUE_PREFIX)))


def open_corpus(files: Sequence[str], config: TextConfig, **options: Any) -> Corpus:
    return Corpus(
        [resolve(name) for name in files],
        text_column=config.text_column,
        encoding=config.encoding,
        header=config.header,
        format=config.format,
        bad_rows=config.bad_rows,
        **options,
    )


class LanguageText:
    """The training and held-out text, in normalised blocks, read anew each time they are asked for.

    `whole`: all of the files is training text, and nothing is held out.
    """

    def __init__(
        self, config: TextConfig, on_bytes: Callable[[int], None] | None = None, *, whole: bool = False
    ) -> None:
        if not config.files:
            raise UsageError("No text was given: name a file, a folder, - or a set such as data:shakespeare.")
        if not 0 < config.held_out_share < 1:
            raise UsageError(f"--held-out-share is {config.held_out_share:g}; give a share between 0 and 1.")
        self.config, self.whole = config, whole
        self.chain = Chain.parse(config.normalise)
        self.corpus = open_corpus(config.files, config, keep_line_ends=True, keep_empty=True)
        self.judged = (
            open_corpus(config.held_out, config, keep_line_ends=True, keep_empty=True) if config.held_out else None
        )
        self.rows = sum(len(block) for block in self.corpus.text_blocks(on_bytes=on_bytes))
        if self.judged is None and self.rows < 2 and not whole:
            raise InklingError(
                f"{', '.join(self.corpus.sources)} has {self.rows} line(s) of text, and one in ten is held out: "
                "give at least two lines, or name held-out text with --held-out."
            )
        formats = {config.format or find_format(source) or "txt" for source in self.corpus.sources}
        self.scattered = "txt" not in formats

    def train_blocks(self) -> Iterator[list[str]]:
        return self._part(held_out=False)

    def held_out_blocks(self) -> Iterator[list[str]]:
        if self.judged is not None:
            return self._normalised(self.judged.text_blocks())
        return self._part(held_out=True)

    def describe(self) -> dict[str, Any]:
        """For run.json: where the text came from and exactly which bytes it was."""
        return {
            "files": list(self.config.files),
            "held_out": list(self.config.held_out) or self._where(),
            "sha256": self.corpus.fingerprint(),
            "held_out_sha256": self.judged.fingerprint() if self.judged else None,
            "rows": self.rows,
            "bytes": self.corpus.size_bytes,
            "rows_reported": self.corpus.intake.rows_reported,
            "notes": self.corpus.notes,
        }

    def _where(self) -> str:
        share = f"{self.config.held_out_share:.0%}"
        return f"{share} of the rows, spread evenly" if self.scattered else f"the last {share} of the lines"

    def _part(self, held_out: bool) -> Iterator[list[str]]:
        if self.judged is not None or self.whole:  # nothing of the named files is held out
            if not held_out:
                yield from self._normalised(self.corpus.text_blocks())
            return
        kept = max(1, min(self.rows - 1, round(self.rows * (1 - self.config.held_out_share))))
        first = 0
        for block in self._normalised(self.corpus.text_blocks()):
            if self.scattered:
                part = [text for i, text in enumerate(block, first) if self._is_scattered(i) == held_out]
            else:
                cut = min(max(kept - first, 0), len(block))
                part = block[cut:] if held_out else block[:cut]
            first += len(block)
            if part:
                yield part

    def _is_scattered(self, row: int) -> bool:
        """Whether this row of a table is held out: where the whole part of row × share goes up, and at least once."""
        share = self.config.held_out_share
        rises = int((row + 1) * share) > int(row * share)
        return rises or (int(self.rows * share) == 0 and row == self.rows - 1)

    def _normalised(self, blocks: Iterable[list[str]]) -> Iterator[list[str]]:
        for block in blocks:
            yield [self.chain(text) for text in block] if self.chain.names else block


def open_text(config: TextConfig, say: Callable[[str], None], *, whole: bool = False) -> LanguageText:
    """The text of a training, with what there is to say about it said; refused when there is nothing in it."""
    text = LanguageText(config, whole=whole)
    if not any(line.strip() for block in text.train_blocks() for line in block):
        raise InklingError(f"{', '.join(config.files)} has nothing but white space; give a file with text in it.")
    for note in text.corpus.notes:
        say(note)
    if text.corpus.intake.rows_reported:
        say(text.corpus.intake.describe())
    return text


def learn_tokeniser(text: LanguageText, kind: str, size: int, pieces: Pieces, exclude: tuple[str, ...]) -> Tokeniser:
    """From the training text. A `size` of zero: 4,096 words or pieces, all characters."""
    wanted = size or (4096 if kind in ("word", "bpe") else None)
    return train_tokeniser(kind, text.train_blocks(), wanted, pieces=pieces, exclude=frozenset(exclude))


def units(
    tokeniser: Tokeniser, counts: NDArray[Any], spellings: Mapping[str, int], speller: Speller | None
) -> dict[str, float]:
    """What a token of a text with these counts stands for, on average: from its nats to bits per byte."""
    spelled = sum(len(spelling.encode()) * times for spelling, times in spellings.items())
    size, tokens = float(counts @ tokeniser.byte_lengths) + spelled, float(counts.sum())
    return {"bytes_per_token": size / tokens, "spelling_nats_per_token": spelling_nats(speller, spellings) / tokens}


def spelling_nats(speller: Speller | None, spellings: Mapping[str, int]) -> float:
    """What unknown tokens cost letter by letter, each as often as it occurs."""
    if speller is None or not spellings:
        return 0.0
    return float(speller.nats(list(spellings)) @ np.array(list(spellings.values())))


def same_text(run: Run, config: TextConfig, described: Mapping[str, Any]) -> None:
    """Refuses to go on with a run when its files are no longer what they were."""
    pairs = getattr(config, "pairs", ())
    for names, key in ((config.files, "sha256"), (config.held_out, "held_out_sha256"), (pairs, "pairs_sha256")):
        if described.get(key) != run.info["data"].get(key):
            raise InklingError(
                f"{', '.join(names)} is not the text that {run.path} was trained on (its SHA-256 differs): "
                "put the old file back, or train anew."
            )


def documents(corpus: Corpus, chars: int = 1 << 20) -> Iterator[list[str]]:
    """Whole texts, in batches: the lines of a file joined, the rows of a table each by itself.

    A file longer than `chars` characters is cut at a line end, and the next part begins as after a line end.
    """
    lines: list[str] = []
    size = 0
    for rows in corpus.batches():
        texts: list[str] = []
        for row in rows:
            if lines and (not row.continues or size >= chars):
                texts.append("".join(lines))
                lines, size = [], 0
            lines.append(row.text)
            size += len(row.text)
        if texts:
            yield texts
    if lines:
        yield ["".join(lines)]


def run_name(kind: str, files: Sequence[str]) -> str:
    """`bigram-shakespeare` for `data:shakespeare` or `texts/shakespeare.txt.gz`."""
    last = Path(files[0].removeprefix(CATALOGUE_PREFIX)).name if files[0] != "-" else "stdin"
    return f"{kind}-{last.split('.')[0] or 'text'}"
