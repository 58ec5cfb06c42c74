"""`inkling demo`: everything that exists so far, at work on one text, on reviews and on questions, in three minutes.

Text → four models → one ruler, baselines beside them → samples → a page. The text is generated (and then the truth is
known: no model can need fewer bits than the grammar that wrote it), or with `real` a set of the catalogue.

Reviews → a classifier → how many it reads rightly, of those held back → its most confident mistakes, with reasons. The
reviews are generated too (and then it is known how many can be read rightly at all), or with `real` those of IMDB.

Biographies and questions → a transformer that reads, and is asked (demo_answers.py).

Attention → one experiment of the laboratory: two heads, one uncertain key, what is exact and what samples say.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inkling.attention.exhibits import failure_chart, part_bars, sentences
from inkling.attention.laboratory import Setting, experiment
from inkling.errors import InklingError
from inkling.explain.errors import ErrorReport
from inkling.figures import Cell, Column, Exhibit, Page, Prose, Table
from inkling.measure.classification import ClassificationReport
from inkling.measure.matrix import Matrix
from inkling.measure.tally import LN2
from inkling.models.sampling import SamplingConfig, sample
from inkling.recipes.bigram import BigramRecipe, train_bigram
from inkling.recipes.dan import DANRecipe, train_dan
from inkling.recipes.demo_answers import Answers, answers_table, ask_about_people, examples_table
from inkling.recipes.errors import find_mistakes
from inkling.recipes.evaluation import EvaluationRecipe, evaluate_runs
from inkling.recipes.gpt import GPTRecipe, train_gpt
from inkling.recipes.gru import GRURecipe, train_gru
from inkling.recipes.labelled import LabelledConfig, read_for, read_parts
from inkling.recipes.ngram import NGramRecipe, train_ngram
from inkling.runs.files import write_file
from inkling.runs.loading import load_classifier, load_language_model
from inkling.runs.run import Run
from inkling.text.catalogue import get_data
from inkling.text.grammar import grammar_bigram_nats, grammar_entropy, grammar_text
from inkling.text.world import AGREEMENT, reviews
from inkling.training.loop import Step

Say = Callable[[str], None]
OnProgress = Callable[[int, int, str], None]  # steps done, of how many as far as can be seen, of which run
GENERATED_WORDS = 300_000
REAL_SET = "shakespeare"
BIGRAM_MINUTES = 1.0
GRU_MINUTES = 0.7
GPT_MINUTES = 0.3

GENERATED_REVIEWS = 10_000
REAL_REVIEWS = "imdb-train"
REVIEW_LABELS = {"0": "negative", "1": "positive"}  # what the numbers in the file of IMDB mean
HELD_BACK_SHARE = 0.2
SHOWN_MISTAKES = 5
ERRORS_PAGE = "errors.html"
# Of generated reviews, as text/world.py writes them: judgements, chance of a last word, of it being meant, wrong labels
JUDGEMENTS = range(2, 7)
LAST_WORD, MEANT, WRONG_LABELS = 0.4, 0.95, 0.05


@dataclass(frozen=True)
class Demonstration:
    """What the demo found, ready to be shown; `runs` are on disk, the transformer last."""

    page: Page
    matrix: Matrix
    runs: tuple[Run, ...]
    real: bool
    reading: Reading
    answers: Answers


@dataclass(frozen=True)
class Reading:
    """How a classifier, the run `run`, reads reviews that were held back from it, and why it errs."""

    what: str
    run: Run
    test_file: Path
    report: ClassificationReport
    errors: ErrorReport
    real: bool


def demonstrate(
    folder: Path,
    real: bool,
    say: Say,
    on_progress: OnProgress = lambda done, total, run: None,
    seed: int = 0,
) -> Demonstration:
    """Trains into `folder`, which must not exist, and measures."""
    folder.mkdir(parents=True)
    what, train_file, test_file, real_text = _texts(folder, real, say, seed)
    files = (str(train_file),)
    say(f"Text: {what}.")

    vocabulary = 4096 if real_text else 512
    say("1/7  A neural word bigram model, trained exactly on all pair counts at once …")
    words = BigramRecipe(files=files, vocabulary=vocabulary, minutes=BIGRAM_MINUTES, seed=seed)
    _watch(train_bigram(words, folder / "word-bigram", say), on_progress)
    say("2/7  A Kneser-Ney bigram over the same words: counting, the honest baseline …")
    train_ngram(NGramRecipe(files=files, vocabulary=vocabulary), folder / "word-counts", say)
    say("3/7  A recurrent model, character by character …")
    characters = GRURecipe(files=files, minutes=GRU_MINUTES, seed=seed)
    _watch(train_gru(characters, folder / "character-gru", say), on_progress)
    say("4/7  A small transformer, character by character …")
    attending = GPTRecipe(files=files, minutes=GPT_MINUTES, seed=seed)
    _watch(train_gpt(attending, folder / "character-gpt", say), on_progress)

    say("Measuring all of them, and baselines, on text that none has seen …")
    names = tuple(str(folder / name) for name in ("word-bigram", "word-counts", "character-gru", "character-gpt"))
    matrix = evaluate_runs(EvaluationRecipe(names, (str(test_file),), seed=seed))
    runs = tuple(Run.open(name) for name in names)

    say("5/7  A classifier, which says why …")
    reading = read_reviews(folder, real, say, on_progress, seed)
    say("6/7  A transformer that reads biographies, and answers from memory …")
    answers = ask_about_people(folder, say, on_progress, seed)
    say("7/7  Attention, exactly and simulated …")
    heads = experiment(Setting("heads", noise=0.5, seed=seed))
    exhibits: list[Exhibit] = [
        Prose(
            f"Four language models, trained on {what}, a classifier, trained on {reading.what}, and a transformer that "
            f"answers, trained on {answers.what}; all measured on what was held back from them."
        ),
        comparison(matrix, real_text),
        Prose("\n\n".join(matrix.sentences()), "What can be said"),
        *_samples(runs[0], "word bigram", 60, seed),
        *_samples(runs[2], "recurrent model", 300, seed),
        *_samples(runs[3], "transformer", 300, seed),
        reading_table(reading),
        mistake_table(reading.errors),
        answers_table(answers),
        examples_table(answers),
        Prose("\n\n".join(sentences(heads)), "Attention: two heads, and a key that cannot be trusted"),
        part_bars(heads),
        failure_chart(heads),
        Prose(
            _next_commands(folder, reading, answers),
            f"Next: try the runs in {folder}, or train on text of your own",
            True,
        ),
    ]
    return Demonstration(Page("Inkling at work", tuple(exhibits)), matrix, runs, real_text, reading, answers)


def _watch(steps: Iterator[tuple[Run, Step]], on_progress: OnProgress) -> None:
    for run, step in steps:
        on_progress(step.step, step.steps, run.path.name)


def _next_commands(folder: Path, reading: Reading, answers: Answers) -> str:
    """One a line, so that a line can be copied."""
    gru, dan = folder / "character-gru", reading.run.path
    return "\n".join(
        (
            f"inkling sample {gru} --temperature 0.7",
            f"inkling surprise {gru} {folder / 'test.txt'} --html surprise.html",
            f'echo "The plot was not bad, and the music was superb." | inkling classify {dan} - --why',
            f"inkling errors {dan} --on {reading.test_file} --html mistakes.html",
            f"inkling evaluate {answers.run.path} --pairs {answers.questions} --html answers.html",
            "inkling attention heads --html heads.html",
            "inkling train gpt YOUR.txt --minutes 2",
            "inkling train dan YOUR.csv",
        )
    )


def comparison(matrix: Matrix, real: bool) -> Table:
    """Best first, in bits per byte, with the truth below where it is known."""
    names = {"word-bigram": "neural word bigram", "word-counts": "Kneser-Ney word bigram"}
    names |= {"character-gru": "recurrent character model", "character-gpt": "small transformer over characters"}
    names |= {"uniform bytes": "nothing known: every byte equally likely"}
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


# ------------------------------------------------------------------------------------------------ reviews


def read_reviews(
    folder: Path,
    real: bool,
    say: Say,
    on_progress: OnProgress = lambda done, total, run: None,
    seed: int = 0,
) -> Reading:
    """Trains a classifier into `folder` on four fifths of the reviews, and diagnoses its verdicts on the last."""
    what, train_file, test_file, real = _reviews(folder, real, say, seed)
    say(f"Reviews: {what}.")
    out = folder / "reviews-dan"
    recipe = DANRecipe(files=(str(train_file),), seed=seed)
    steps = train_dan(recipe, out, _keep_quiet, lambda done, total, _: on_progress(done, total, out.name))
    _watch(steps, on_progress)
    run = Run.open(out)
    network = load_classifier(run)
    text = read_for(network.labels, LabelledConfig(files=(str(test_file),)), _keep_quiet)
    say("Measuring it on the reviews held back, and looking for the reasons of its mistakes …")
    log_probs = network.log_probs(text.texts).numpy()
    errors = find_mistakes(network, text, log_probs, name=run.path.name, text_name=test_file.name)
    assert errors.report is not None
    return Reading(what, run, test_file, errors.report, errors, real)


def reading_table(reading: Reading) -> Table:
    """The classifier between what can be had without reading and, where it is known, what can be had at all."""
    report = reading.report
    right = report.accuracy
    cells: list[tuple[Cell, ...]] = [
        ("the classifier", 100 * right.value, 100 * right.low, 100 * right.high, report.right),
        (
            f"nothing read: always '{report.majority.label}'",
            100 * report.majority_accuracy,
            None,
            None,
            report.majority.support,
        ),
    ]
    classes = " and ".join(f"{score.support:,} {score.label}" for score in report.classes)
    notes = [f"Of {report.rows:,} reviews held back from it, {classes}. low and high: 95 % interval (Wilson)."]
    if not reading.real:
        best = best_accuracy()
        cells.insert(0, ("the best possible, on average", 100 * best, None, None, round(best * report.rows)))
        notes.append(
            f"The reviews were generated: {100 * WRONG_LABELS:.0f} % of the labels are wrong on purpose and some "
            "judgements contradict the rest, so what a perfect reader would reach is known exactly."
        )
    else:
        notes.append(
            "Reviews of one film may stand on both sides, which flatters a little: the official test half, which has "
            "films of its own, is `inkling data get imdb-test`."
        )
    columns = (
        Column("who"),
        Column("right", ".1f", "%"),
        Column("low", ".1f", "%"),
        Column("high", ".1f", "%"),
        Column("reviews", ",d"),
    )
    return Table("How many reviews are read rightly?", columns, tuple(cells), tuple(notes))


def mistake_table(errors: ErrorReport) -> Table:
    """The first few mistakes; the page of `report/errors.py` has more, with their words."""
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (case.row, errors.labels[case.truth], errors.labels[case.verdict], 100 * case.probability, case.reason)
        for case in errors.cases[:SHOWN_MISTAKES]
    )
    columns = (
        Column("row", "d"),
        Column("label"),
        Column("verdict"),
        Column("sure", ".2f", "%"),
        Column("reason"),
    )
    notes = (
        f"Rows of {errors.text_name}. {ERRORS_PAGE}, beside this page, shows {len(errors.mistakes):,} of the "
        f"{len(errors.cases):,} mistakes word by word, how often each reason was found, and which mistakes are alike.",
    )
    return Table("Its most confident mistakes, and why", columns, cells, notes)


def best_accuracy() -> float:
    """How many generated reviews one can hope to read rightly who knows how they are made, as a share.

    All that tells about the label is how many of the n judgements praise, and the last word if there is one; the best
    reader takes the likelier label:  Σ max(p(seen, positive), p(seen, negative)). Some labels are then turned round.
    """
    right = 0.0
    for n in JUDGEMENTS:
        for praising in range(n + 1):
            ways = math.comb(n, praising) / len(JUDGEMENTS)
            if_positive = ways * AGREEMENT**praising * (1 - AGREEMENT) ** (n - praising)
            if_negative = ways * AGREEMENT ** (n - praising) * (1 - AGREEMENT) ** praising
            right += (1 - LAST_WORD) * max(if_positive, if_negative) / 2
            for agrees, disagrees in ((MEANT, 1 - MEANT), (1 - MEANT, MEANT)):
                right += LAST_WORD * max(if_positive * agrees, if_negative * disagrees) / 2
    return right * (1 - WRONG_LABELS) + (1 - right) * WRONG_LABELS


def _reviews(folder: Path, real: bool, say: Say, seed: int) -> tuple[str, Path, Path, bool]:
    """What the reviews are, the files to train and to measure on, and whether they are real."""
    train_file, test_file = folder / "reviews-train.csv", folder / "reviews-test.csv"
    if real:
        try:
            whole = get_data(REAL_REVIEWS, progress=say)
        except InklingError as error:
            say(f"Real reviews are out of reach, so generated ones serve ({error})")
        else:
            config = LabelledConfig(files=(str(whole),), held_out_share=HELD_BACK_SHARE, seed=seed)
            parts = read_parts(config, _keep_quiet)
            for part, file in ((parts.train, train_file), (parts.held_out, test_file)):
                labels = [REVIEW_LABELS[part.labels[place]] for place in part.truth.tolist()]
                _write_reviews(file, list(zip(part.texts, labels, strict=True)))
            kept, held = len(parts.train), len(parts.held_out)
            return f"{kept:,} film reviews of IMDB, {held:,} more held back", train_file, test_file, True
    held = round(GENERATED_REVIEWS * HELD_BACK_SHARE)
    written = reviews(np.random.default_rng(seed), GENERATED_REVIEWS, WRONG_LABELS)
    _write_reviews(test_file, written[:held])
    _write_reviews(train_file, written[held:])
    kept = GENERATED_REVIEWS - held
    return f"{kept:,} generated film reviews, {held:,} more held back", train_file, test_file, False


def _keep_quiet(note: str) -> None:
    """How files that we wrote ourselves are read is news to nobody; run.json has what is odd about them."""


def _write_reviews(path: Path, rows: Sequence[tuple[str, str]]) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([("text", "label"), *rows])
    write_file(path, buffer.getvalue())
