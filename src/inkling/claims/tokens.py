"""Claim B2: characters against words, every part of the statement measured on its own.

The same recurrent model (GRU, the same number of units) reads the same number of bytes of the same text, cut into
characters, bytes, BPE pieces or words. A step is the same stretch of text for all of them, so all make the same number
of steps at the same rate; only the number of tokens in a stretch differs, and with it the time. A Kneser-Ney n-gram
over the same tokens stands beside each, as a second opinion that needs no training.

Texts: running English with a tenth held out, that tenth again with typing errors in 5 % of its characters, and a
generated agglutinative language. Without data the English is the generated grammar.

Related words: of pairs such as king and kings, how often the vector of king is closer (cosine) to that of kings than to
that of another plural; both have the same ending, so the ending alone helps nobody, and 50 % is chance. The vector is
the embedding for the word model, and the state after reading the word at the start of a line for the others.

Every figure is bits per byte with unknown words spelled out; differences are judged block by block, by
measure/comparison.py, so they are sure or not for these two trained models. Left out: what another seed would do.
"""

from __future__ import annotations

import lzma
import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inkling.claims.ledger import Claim, Context, Finding, Verdict
from inkling.figures import Column, Table
from inkling.measure.comparison import compare
from inkling.measure.evaluation import Evaluation, evaluate
from inkling.measure.intervals import Interval, ratio_interval
from inkling.models.gru import GRU
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.spelling import Speller
from inkling.recipes.gru import GRURecipe, prepare
from inkling.recipes.streamed import Prepared
from inkling.text.agglutinative import NUMBERS, Language, inflect
from inkling.text.grammar import grammar_text
from inkling.text.noise import add_typos
from inkling.text.tokenise import train_tokeniser
from inkling.text.tokens import Tokeniser
from inkling.training.loop import train

Kind = Literal["character", "byte", "bpe", "word"]

KINDS: tuple[Kind, ...] = ("character", "byte", "bpe", "word")
VOCABULARY = {"character": 0, "byte": 0, "bpe": 1024, "word": 4096}  # zero: all there are
ORDERS = {"character": 6, "byte": 6, "bpe": 4, "word": 3}  # of the n-gram: as far back, about
TYPOS = 0.05
FEW = 0.002  # of the tokens: less than this is as good as no unknown ones
CLEAN, NOISY = "clean", "5 % typos"
NOTICEABLE = 1.1  # a speed is another speed from here on; below, the clock of a busy computer decides
PAIRS, LEAST_COUNT = 120, 4
TIMED_CHARACTERS = 200_000  # of which the speed of scoring is measured


@dataclass(frozen=True)
class Budget:
    """How much each model reads, and its size."""

    hidden: int
    bytes_read: int
    step_bytes: int = 32  # of one reader; short, so that there are many steps
    readers: int = 32
    rate: float = 0.012
    held_out_bytes: int = 100_000


WITH_DATA = Budget(hidden=128, bytes_read=700_000)
WITHOUT_DATA = Budget(hidden=64, bytes_read=350_000, held_out_bytes=40_000)


@dataclass(frozen=True)
class Sample:
    """A text to learn, one to be judged by, and pairs of related words."""

    name: str
    train: str
    held_out: str
    pairs: tuple[tuple[str, str], ...]
    noisy: bool = True  # judged with typing errors as well

    @property
    def texts(self) -> dict[str, str]:
        found = {CLEAN: self.held_out}
        if self.noisy:
            found[NOISY] = add_typos(self.held_out, TYPOS, np.random.default_rng(1))
        return found


@dataclass(frozen=True)
class Trial:
    """One way of cutting one sample: what it is, how fast, and what it makes of each text."""

    sample: str
    kind: Kind
    vocabulary: int
    parameters: int
    tokens_per_byte: float
    train_bytes_per_second: float
    score_bytes_per_second: float
    rows: Mapping[str, Evaluation]  # by text: CLEAN, NOISY
    counted: Mapping[str, Evaluation]  # the n-gram's
    related: Interval  # share of related words that are closer than unrelated ones


def fit_gru(recipe: GRURecipe, tokeniser: Tokeniser | None = None) -> tuple[GRU, Prepared, float]:
    """Trains in memory and keeps the last weights; the model, what it was made from, and the seconds of training."""
    prepared = prepare(recipe, tokeniser)
    state = prepared.fresh_state()
    for _ in train(prepared.objective, prepared.batch, prepared.training, state):
        pass
    return prepared.model(state.parameters), prepared, state.seconds


# ------------------------------------------------------------------------------------------------ the texts


def samples(context: Context, budget: Budget) -> list[Sample]:
    found = []
    shakespeare = context.file("tinyshakespeare/input.txt")
    if shakespeare:
        found.append(running_text("Shakespeare", shakespeare.read_text(encoding="utf-8"), budget))
    wikipedia = context.file("wikitext2/wiki.valid.raw.xz")
    if wikipedia:
        with lzma.open(wikipedia, "rt", encoding="utf-8") as file:
            found.append(running_text("Wikipedia", file.read(), budget))
    if not found:
        words = (budget.bytes_read + budget.held_out_bytes) // 6
        found.append(running_text("generated English", grammar_text(np.random.default_rng(0), words), budget))
    return [*found, agglutinative_sample(budget)]


def running_text(name: str, text: str, budget: Budget) -> Sample:
    """The last tenth is held out, cut at a line end."""
    lines = text.splitlines(keepends=True)
    kept = len(lines) - max(1, len(lines) // 10)
    train_text, held_out = "".join(lines[:kept]), _first_lines(lines[kept:], budget.held_out_bytes)
    return Sample(name, train_text, held_out, tuple(inflected_pairs(train_text)))


def agglutinative_sample(budget: Budget) -> Sample:
    generator = np.random.default_rng(2)
    language = Language.invent(generator)
    lines = language.text(generator, (budget.bytes_read + budget.held_out_bytes) // 11).splitlines(keepends=True)
    kept = len(lines) - len(lines) // 8
    pairs = [(stem, inflect(stem, NUMBERS[1:])) for topic in language.topics for stem in topic.nouns]
    held_out = _first_lines(lines[kept:], budget.held_out_bytes)
    return Sample("agglutinative", "".join(lines[:kept]), held_out, tuple(pairs), noisy=False)


def inflected_pairs(text: str) -> list[tuple[str, str]]:
    """Small-letter words that occur with and without an s at their end, the commonest first."""
    counts = Counter(re.findall(r"(?<= )[a-z]{3,}(?![\w'’-])", text))
    both = [(word, word + "s") for word in counts if min(counts[word], counts[word + "s"]) >= LEAST_COUNT]
    both.sort(key=lambda pair: (-min(counts[pair[0]], counts[pair[1]]), pair))
    return both[:PAIRS]


def _first_lines(lines: Sequence[str], at_most: int) -> str:
    ends = np.cumsum([len(line.encode()) for line in lines])
    return "".join(lines[: max(1, int(np.searchsorted(ends, at_most, side="right")))])


# ------------------------------------------------------------------------------------------------ the trials


def try_all(sample: Sample, budget: Budget, context: Context) -> list[Trial]:
    tokenisers = {kind: train_tokeniser(kind, [[sample.train]], VOCABULARY[kind] or None) for kind in KINDS}
    known = {token.decode() for token in map(tokenisers["word"].piece, range(tokenisers["word"].size))}
    pairs = [pair for pair in sample.pairs if {f" {word}" for word in pair} <= known]
    trials = []
    with tempfile.TemporaryDirectory() as folder:
        train_file, held_out_file = Path(folder, "train.txt"), Path(folder, "held_out.txt")
        train_file.write_text(sample.train, encoding="utf-8", newline="")
        held_out_file.write_text(sample.held_out, encoding="utf-8", newline="")
        recipe = GRURecipe(files=(str(train_file),), held_out=(str(held_out_file),), hidden=budget.hidden)
        for kind, tokeniser in tokenisers.items():
            context.say(f"B2: {sample.name}, {kind} …")
            trials.append(_try(sample, kind, tokeniser, recipe, budget, pairs))
    return trials


def _try(
    sample: Sample,
    kind: Kind,
    tokeniser: Tokeniser,
    recipe: GRURecipe,
    budget: Budget,
    pairs: Sequence[tuple[str, str]],
) -> Trial:
    encodings = tokeniser.encode([sample.train])
    train_bytes = len(sample.train.encode())
    tokens_per_byte = len(encodings.ids) / train_bytes
    chunk = max(1, round(budget.step_bytes * tokens_per_byte))
    steps = max(1, round(budget.bytes_read / (budget.step_bytes * budget.readers)))
    recipe = replace(recipe, tokens=kind, chunk=chunk, batch=budget.readers, steps=steps, rate=budget.rate, dropout=0.0)
    model, prepared, seconds = fit_gru(recipe, tokeniser)
    bytes_read = steps * prepared.recipe.chunk * prepared.recipe.batch / tokens_per_byte
    speller = Speller.fit(Counter(encodings.spellings), tokeniser) if tokeniser.unknown is not None else None
    counts = NGram.fit([encodings], tokeniser, NGramConfig(ORDERS[kind]), speller=speller)
    rows = {text: evaluate(model, [[body]], model_name=kind, text_name=text) for text, body in sample.texts.items()}
    started = time.perf_counter()
    long_text = model.score([sample.train[:TIMED_CHARACTERS]])
    score_seconds = time.perf_counter() - started
    return Trial(
        sample=sample.name,
        kind=kind,
        vocabulary=tokeniser.size,
        parameters=sum(value.numel() for value in model.parameters.values()),
        tokens_per_byte=rows[CLEAN].tally.tokens / rows[CLEAN].tally.bytes,
        train_bytes_per_second=bytes_read / seconds,
        score_bytes_per_second=int(long_text.bytes.sum()) / score_seconds,
        rows=rows,
        counted={
            text: evaluate(counts, [[body]], model_name=kind, text_name=text) for text, body in sample.texts.items()
        },
        related=closeness(vectors(model, [a for a, _ in pairs]), vectors(model, [b for _, b in pairs])),
    )


def vectors(model: GRU, words: Sequence[str]) -> NDArray[np.float64]:
    """A row for each word: its embedding where words are tokens, else the state after reading it on a fresh line."""
    encodings = model.tokeniser.encode([f" {word}" for word in words])
    rows = np.zeros((len(words), model.config.dimension if model.tokeniser.kind == "word" else model.config.hidden))
    for i in range(len(words)):
        ids = encodings.ids[encodings.offsets[i] : encodings.offsets[i + 1]].tolist()
        if model.tokeniser.kind == "word":
            rows[i] = model.parameters["embedding"][ids[0]].numpy()
            continue
        state, _ = model.begin()
        for token in ids:
            state, _ = model.step(state, token)
        rows[i] = state[-1].numpy()
    return rows


def closeness(first: NDArray[np.float64], second: NDArray[np.float64]) -> Interval:
    """How often row i of `first` is closer to row i of `second` than to another row of it: 0.5 is chance."""
    if len(first) < 2:
        return Interval(float("nan"), float("nan"), float("nan"))
    unit = [rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (first, second)]
    cosines = unit[0] @ unit[1].T
    own = np.diag(cosines)[:, None]
    closer = (cosines < own).sum(axis=1) + (np.abs(cosines - own) < 1e-12).sum(axis=1) / 2 - 0.5  # a tie is half
    shares = np.random.default_rng(0).permutation(closer / (len(first) - 1))
    return ratio_interval(shares, np.ones(len(shares)))


# ------------------------------------------------------------------------------------------------ the verdict


@dataclass(frozen=True)
class Part:
    """One part of the statement; `holds` is None where it depends on the text or the model, or cannot be told."""

    name: str
    holds: bool | None
    evidence: str


def judge(trials: Sequence[Trial]) -> list[Part]:
    """Character against word, part by part; what is said of a text must be so on every text of its kind."""
    by_sample: dict[str, dict[str, Trial]] = {}
    for trial in trials:
        by_sample.setdefault(trial.sample, {})[trial.kind] = trial
    pairs = {name: (kinds["character"], kinds["word"]) for name, kinds in by_sample.items()}
    english = {name: pair for name, pair in pairs.items() if NOISY in pair[0].rows}
    rich = {name: pair for name, pair in pairs.items() if name not in english}

    most_unknown = max(row.tally.unknown_share for c, _ in pairs.values() for row in c.rows.values())
    word_unknown = [max(row.tally.unknown_share for row in w.rows.values()) for _, w in pairs.values()]
    rates = {
        what: {name: getattr(c, what) / getattr(w, what) for name, (c, w) in pairs.items()}
        for what in ("train_bytes_per_second", "score_bytes_per_second")
    }
    lengths = [c.tokens_per_byte / w.tokens_per_byte for c, w in pairs.values()]
    return [
        Part(
            "no unknown words",
            most_unknown < FEW and max(word_unknown) >= FEW,
            f"unknown tokens at most {most_unknown:.2%} against up to {max(word_unknown):.1%}",
        ),
        Part(
            "smaller vocabulary",
            all(c.vocabulary < w.vocabulary for c, w in pairs.values()),
            ", ".join(f"{name}: {c.vocabulary:,d} against {w.vocabulary:,d}" for name, (c, w) in pairs.items()),
        ),
        _of_gains("better on noisy text", english, NOISY, "character"),
        _of_gains("better on rich morphology", rich, CLEAN, "character"),
        Part("longer sequences", min(lengths) > 1, f"at least {min(lengths):.1f} times as many tokens"),
        _of_rates("slower training", rates["train_bytes_per_second"]),
        _of_rates("slower scoring", rates["score_bytes_per_second"]),
        _of_gains("weaker on standard text", english, CLEAN, "word"),
    ]


def _of_gains(name: str, pairs: Mapping[str, tuple[Trial, Trial]], text: str, wanted: str) -> Part:
    """Recurrent model and n-gram are both asked, on every text."""
    found = {}
    for sample, (character, word) in pairs.items():
        found[f"{sample}, GRU"] = compare([character.rows[text], word.rows[text]])[0]
        found[f"{sample}, n-gram"] = compare([character.counted[text], word.counted[text]])[0]
    decided = [c.better == wanted if c.real else None for c in found.values()]
    evidence = ", ".join(
        f"{where}: {c.better} by {c.difference.value:.3f} bits per byte "
        f"({c.difference.low:.3f} to {c.difference.high:.3f})"
        for where, c in found.items()
    )
    return Part(name, _all_of(decided), evidence)


def _of_rates(name: str, rates: Mapping[str, float]) -> Part:
    decided = [True if rate < 1 / NOTICEABLE else False if rate > NOTICEABLE else None for rate in rates.values()]
    return Part(name, _all_of(decided), ", ".join(f"{text}: {rate:.2f} of the speed" for text, rate in rates.items()))


def _all_of(decided: Sequence[bool | None]) -> bool | None:
    """True if all are, False if none is; None where they disagree or cannot be told."""
    if decided and None not in decided and len(set(decided)) == 1:
        return decided[0]
    return None


def conclude(parts: Sequence[Part]) -> Verdict:
    """It holds as a whole, holds but for parts that depend, or has parts that are the other way round."""
    answers = [part.holds for part in parts]
    if all(answers):
        return "holds"
    if True not in answers:
        return "fails"
    return "corrected" if False in answers else "holds if"


def characters_or_words(context: Context) -> Finding:
    budget = WITH_DATA if context.file("tinyshakespeare/input.txt") or context.file("wikitext2") else WITHOUT_DATA
    trials = [trial for sample in samples(context, budget) for trial in try_all(sample, budget, context)]
    parts = judge(trials)
    groups = {
        "held": [part for part in parts if part.holds],
        "the other way round": [part for part in parts if part.holds is False],
        "it depends": [part for part in parts if part.holds is None],
    }
    said = ". ".join(
        f"{heading.capitalize()}: {', '.join(part.name for part in group)}"
        for heading, group in groups.items()
        if group
    )
    shown = ", ".join(
        f"{sample} {text} " + "/".join(f"{t.rows[text].bits_per_byte.value:.2f}" for t in trials if t.sample == sample)
        for sample, text in dict.fromkeys((t.sample, text) for t in trials for text in t.rows)
    )
    figures = {f"{_key(t.sample)}_{t.kind}_{name}": value for t in trials for name, value in _figures(t).items()}
    said = f"{said}. Bits per byte of {'/'.join(KINDS)}: {shown}"
    return Finding(f"{said}.", conclude(parts), figures, (_table(trials, budget), _parts_table(parts)))


def _key(name: str) -> str:
    return name.lower().replace(" ", "_")


def _figures(trial: Trial) -> dict[str, float]:
    found: dict[str, float] = {
        "vocabulary": trial.vocabulary,
        "parameters": trial.parameters,
        "tokens_per_byte": trial.tokens_per_byte,
        "train_bytes_per_second": trial.train_bytes_per_second,
        "score_bytes_per_second": trial.score_bytes_per_second,
        "related_closer_share": trial.related.value,
    }
    for text, name in ((CLEAN, "clean"), (NOISY, "typos")):
        if text in trial.rows:
            found[f"{name}_bits_per_byte"] = trial.rows[text].bits_per_byte.value
            found[f"{name}_unknown_share"] = trial.rows[text].tally.unknown_share
            found[f"{name}_ngram_bits_per_byte"] = trial.counted[text].bits_per_byte.value
    return {name: value for name, value in found.items() if np.isfinite(value)}


def _table(trials: Sequence[Trial], budget: Budget) -> Table:
    columns = (
        Column("text"),
        Column("tokens"),
        Column("vocabulary", ",d"),
        Column("unknown", ".1%"),
        Column("unknown, typos", ".1%"),
        Column("tokens per byte", ".3f"),
        Column("parameters", ",d"),
        Column("training", ",.0f", unit="bytes/s"),
        Column("scoring", ",.0f", unit="bytes/s"),
        Column("clean", ".3f", unit="bits per byte"),
        Column("5 % typos", ".3f", unit="bits per byte"),
        Column("n-gram, clean", ".3f", unit="bits per byte"),
        Column("n-gram, 5 % typos", ".3f", unit="bits per byte"),
        Column("related words closer"),
    )
    rows = []
    for t in trials:
        clean, noisy = t.rows[CLEAN], t.rows.get(NOISY)
        counted = t.counted.get(NOISY)
        r = t.related
        rows.append(
            (
                t.sample,
                t.kind,
                t.vocabulary,
                clean.tally.unknown_share,
                noisy.tally.unknown_share if noisy else None,
                t.tokens_per_byte,
                t.parameters,
                t.train_bytes_per_second,
                t.score_bytes_per_second,
                clean.bits_per_byte.value,
                noisy.bits_per_byte.value if noisy else None,
                t.counted[CLEAN].bits_per_byte.value,
                counted.bits_per_byte.value if counted else None,
                f"{r.value:.0%} ({r.low:.0%} to {r.high:.0%})" if np.isfinite(r.low) else None,
            )
        )
    notes = (
        f"All recurrent models: {budget.hidden} units, {budget.bytes_read:,} bytes read in the same number of steps. "
        "Bits per byte charge every byte, unknown words by their spelling.",
        "Related words closer: how often a word is nearer to its own inflected form than to that of another word; "
        "50 % is chance. All but the word model see the spelling that the two forms share.",
    )
    return Table("B2: one model, four ways to cut a text", columns, tuple(rows), notes)


def _parts_table(parts: Sequence[Part]) -> Table:
    answers = {True: "held", False: "the other way round", None: "it depends"}
    rows = tuple((part.name, answers[part.holds], part.evidence) for part in parts)
    columns = (Column("of characters, against words"), Column("here"), Column("measured"))
    return Table("B2: the parts of the statement", columns, rows)


CLAIMS = (
    Claim(
        "B2",
        "Characters against words: no unknown words, small vocabulary, good for rich morphology and noisy text; "
        "against that longer sequences, slower training and scoring, weaker on standard text.",
        "asserted, not measured",
        characters_or_words,
    ),
)
