"""`inkling demo`: everything that exists so far, at work on one text, in two minutes.

Text → three models → one ruler, baselines beside them → samples → a page. The text is generated (and then the truth is
known: no model can need fewer bits than the grammar that wrote it), or with `real` a set of the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inkling.errors import InklingError
from inkling.figures import Cell, Column, Exhibit, Page, Prose, Table
from inkling.measure.matrix import Matrix
from inkling.measure.tally import LN2
from inkling.models.sampling import SamplingConfig, sample
from inkling.recipes.bigram import BigramRecipe, train_bigram
from inkling.recipes.evaluation import EvaluationRecipe, evaluate_runs
from inkling.recipes.gru import GRURecipe, train_gru
from inkling.recipes.ngram import NGramRecipe, train_ngram
from inkling.runs.loading import load_language_model
from inkling.runs.run import Run
from inkling.text.catalogue import get_data
from inkling.text.grammar import grammar_bigram_nats, grammar_entropy, grammar_text
from inkling.training.loop import Step

Say = Callable[[str], None]
GENERATED_WORDS = 300_000
REAL_SET = "shakespeare"
BIGRAM_MINUTES = 1.0
GRU_MINUTES = 0.7


@dataclass(frozen=True)
class Demonstration:
    """What the demo found, ready to be shown; `runs` are on disk, the recurrent model last."""

    page: Page
    matrix: Matrix
    runs: tuple[Run, ...]
    real: bool


def demonstrate(
    folder: Path, real: bool, say: Say, on_step: Callable[[Step], None] | None = None, seed: int = 0
) -> Demonstration:
    """Trains into `folder`, which must not exist, and measures."""
    folder.mkdir(parents=True)
    what, train_file, test_file, real = _texts(folder, real, say, seed)
    files = (str(train_file),)
    say(f"Text: {what}.")

    vocabulary = 4096 if real else 512
    say("1/3  A neural word bigram model, trained exactly on all pair counts at once …")
    words = BigramRecipe(files=files, vocabulary=vocabulary, minutes=BIGRAM_MINUTES, seed=seed)
    _watch(train_bigram(words, folder / "word-bigram", say), on_step)
    say("2/3  A Kneser-Ney bigram over the same words: counting, the honest baseline …")
    train_ngram(NGramRecipe(files=files, vocabulary=vocabulary), folder / "word-counts", say)
    say("3/3  A recurrent model, character by character …")
    characters = GRURecipe(files=files, minutes=GRU_MINUTES, seed=seed)
    _watch(train_gru(characters, folder / "character-gru", say), on_step)

    say("Measuring all of them, and baselines, on text that none has seen …")
    names = tuple(str(folder / name) for name in ("word-bigram", "word-counts", "character-gru"))
    matrix = evaluate_runs(EvaluationRecipe(names, (str(test_file),), seed=seed))
    runs = tuple(Run.open(name) for name in names)
    exhibits: list[Exhibit] = [
        Prose(f"Trained on {what}; measured on text held back from all of them."),
        comparison(matrix, real),
        Prose("\n\n".join(matrix.sentences()), "What can be said"),
        *_samples(runs[0], "word bigram", 60, seed),
        *_samples(runs[2], "character model", 300, seed),
        Prose(
            f"The models are runs in {folder}: try `inkling sample {folder}/character-gru --temperature 0.7`, "
            f"`inkling surprise {folder}/character-gru {folder}/test.txt --html surprise.html`, or your own text with "
            "`inkling train gru FILE --minutes 2`.",
            title="Next",
        ),
    ]
    return Demonstration(Page("Inkling at work", tuple(exhibits)), matrix, runs, real)


def _watch(steps: Iterator[tuple[Run, Step]], on_step: Callable[[Step], None] | None) -> None:
    for _, step in steps:
        if on_step:
            on_step(step)


def comparison(matrix: Matrix, real: bool) -> Table:
    """Best first, in bits per byte, with the truth below where it is known."""
    names = {"word-bigram": "neural word bigram", "word-counts": "Kneser-Ney word bigram"}
    names |= {"character-gru": "recurrent character model", "uniform bytes": "nothing known: every byte equally likely"}
    cells: list[tuple[Cell, ...]] = [
        (
            names.get(row.model, row.model),
            row.bits_per_byte.value,
            row.bits_per_byte.low,
            row.bits_per_byte.high,
            row.tally.unknown_share,
        )
        for row in matrix.rows
    ]
    cells += [(f"{row.label} (compressor)", row.bits_per_byte, None, None, None) for row in matrix.compressions]
    notes = [
        "Bits per byte: how many yes/no questions a model needs, on average, for each byte of the text; every byte "
        "is charged, words outside a vocabulary letter by letter. low and high: 95 % interval.",
    ]
    if not real:
        truth = grammar_entropy()
        tokens_per_byte = truth.bits_per_byte * LN2 / truth.nats_per_token
        cells.append(("the truth (entropy of the grammar)", truth.bits_per_byte, None, None, None))
        best = grammar_bigram_nats() * tokens_per_byte / LN2
        cells.append(("the best possible for one word of memory", best, None, None, None))
        notes.append("The text was generated, so what a perfect model would need is known exactly.")
    columns = (
        Column("model"),
        Column("bits per byte", ".3f"),
        Column("low", ".3f"),
        Column("high", ".3f"),
        Column("unknown words", ".1%"),
    )
    cells.sort(key=lambda row: float(row[1] or 0.0))
    return Table("Who predicts the text best?", columns, tuple(cells), tuple(notes))


def _samples(run: Run, name: str, tokens: int, seed: int) -> list[Exhibit]:
    model = load_language_model(run)
    found: list[Exhibit] = []
    for temperature, reads in ((0.6, "careful"), (1.0, "as it learned")):
        drawn = sample(model, SamplingConfig(temperature, tokens=tokens), np.random.default_rng(seed))
        text = b"".join(token.text for token in drawn).decode("utf-8", "replace")
        lines = "\n".join(line for line in text.split("\n") if line.strip())
        found.append(Prose(lines, f"The {name} writes ({reads}, temperature {temperature:g})", True))
    return found


def _texts(folder: Path, real: bool, say: Say, seed: int) -> tuple[str, Path, Path, bool]:
    """What the text is, the files to train and to measure on, and whether they are real."""
    train_file, test_file = folder / "train.txt", folder / "test.txt"
    if real:
        try:
            texts = sorted(get_data(REAL_SET, progress=say).glob("*.txt"))
        except InklingError as error:
            say(f"Real text is out of reach, so a generated one serves ({error})")
        else:
            held = texts[9::10]  # whole works, so that nothing of them is known
            kept = [path for path in texts if path not in held]
            _join(kept, train_file)
            _join(held, test_file)
            return f"{len(kept)} works of Shakespeare, {len(held)} more held back", train_file, test_file, True
    generator = np.random.default_rng(seed)
    train_file.write_text(grammar_text(generator, GENERATED_WORDS), encoding="utf-8", newline="")
    test_file.write_text(grammar_text(generator, GENERATED_WORDS // 10), encoding="utf-8", newline="")
    return f"{GENERATED_WORDS:,} words of a generated language", train_file, test_file, False


def _join(paths: list[Path], out: Path) -> None:
    with out.open("wb") as file:
        for path in paths:
            file.write(path.read_bytes().rstrip(b"\n") + b"\n")
