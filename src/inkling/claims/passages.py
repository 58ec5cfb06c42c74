"""The two passages of claims C2 to C4, and the models that are measured on them, trained once.

The passage from Shakespeare lies in the text that the character model learns from. Its lines are taken out first; how
much they would have helped is shown by a second model that has read them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inkling.claims.bigram import fit, sentences
from inkling.claims.ledger import Context
from inkling.claims.tokens import fit_gru
from inkling.models.bigram import Bigram
from inkling.models.contracts import Scores
from inkling.models.gru import GRU
from inkling.models.ngram import NGram
from inkling.recipes.bigram import BigramRecipe
from inkling.recipes.data import LanguageText
from inkling.recipes.gru import GRURecipe
from inkling.recipes.ngram import NGramRecipe, fit_ngram
from inkling.text.normalise import Chain
from inkling.text.tokenise import UNKNOWN, WordTokeniser, piece_pattern

Floats = NDArray[np.float64]

SHAKESPEARE, WIKIPEDIA = "Shakespeare", "Wikipedia"
PASSAGES = {SHAKESPEARE: "shakespeare_for_perplexity.txt", WIKIPEDIA: "wikipedia_for_perplexity.txt"}
COURSE = ("vocab.ptb.txt", "ptb-dev.txt", "vocab2000.glove50.derived.txt")
PUBLISHED_WORD = {SHAKESPEARE: 5.43, WIKIPEDIA: 24.69}
PUBLISHED_CHARACTER = {SHAKESPEARE: 7.12, WIKIPEDIA: 18.97}
COURSE_WORDS = 2000
GRU_RECIPE = GRURecipe(hidden=192, chunk=64, batch=48, steps=1000, rate=0.01, dropout=0.05)
NEEDS = "needs --data with ptb/tau/ and tinyshakespeare/"


@dataclass(frozen=True)
class Models:
    """All that C2 to C4 share, trained once."""

    bigram: Bigram  # of the newspaper: the course's vocabulary, lower case, digits as shapes
    same_bigram: NGram  # of the text that the network has read
    counts: NGram
    network: GRU
    leaky: GRU  # has read the passage as well
    held_out: str  # Shakespeare that no model has read
    removed: int  # lines of the passage taken out of the training text
    seconds: float


def passages(context: Context) -> dict[str, str] | None:
    paths = {name: context.file(f"ptb/tau/{file}") for name, file in PASSAGES.items()}
    if not all(paths.values()):
        return None
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items() if path}


def models(context: Context) -> Models | None:
    """None where a file is missing."""
    needed = ["tinyshakespeare/input.txt", *(f"ptb/tau/{name}" for name in (*COURSE, *PASSAGES.values()))]
    if context.data is None or not all(context.file(name) for name in needed):
        return None
    context.say("C2 to C4: the models, trained once …")
    return _models(context.data)


@cache
def _models(data: Path) -> Models:
    bigram = course_bigram(data / "ptb/tau")
    whole = (data / "tinyshakespeare/input.txt").read_text(encoding="utf-8")
    passage = (data / "ptb/tau" / PASSAGES[SHAKESPEARE]).read_text(encoding="utf-8")
    lines = whole.splitlines(keepends=True)
    kept = len(lines) - len(lines) // 10
    leaky_text, held_out = "".join(lines[:kept]), "".join(lines[kept:])
    text = without(leaky_text, passage)
    with tempfile.TemporaryDirectory() as folder:
        files = {name: str(Path(folder, name)) for name in ("clean.txt", "leaky.txt", "held_out.txt")}
        for file, body in zip(files.values(), (text, leaky_text, held_out), strict=True):
            Path(file).write_text(body, encoding="utf-8", newline="")
        apart = (files["held_out.txt"],)
        network, _, seconds = fit_gru(_recipe(files["clean.txt"], apart))
        leaky, _, _ = fit_gru(_recipe(files["leaky.txt"], apart))
        words = NGramRecipe(files=(files["clean.txt"],), held_out=apart, order=2, vocabulary=COURSE_WORDS)
        letters = NGramRecipe(files=(files["clean.txt"],), held_out=apart, order=6, tokens="character")
        same_bigram, counts = (fit_ngram(recipe, LanguageText(recipe)) for recipe in (words, letters))
    removed = len(leaky_text.split("\n")) - len(text.split("\n"))
    return Models(bigram, same_bigram, counts, network, leaky, held_out, removed, seconds)


def _recipe(file: str, held_out: tuple[str, ...]) -> GRURecipe:
    return replace(GRU_RECIPE, files=(file,), held_out=held_out)


def without(text: str, passage: str) -> str:
    """`text` less every line that is a line of `passage`; blank lines stay."""
    gone = {line for line in passage.split("\n") if line.strip()}
    return "\n".join(line for line in text.split("\n") if line not in gone)


def course_tokeniser(folder: Path) -> WordTokeniser:
    lines = (folder / COURSE[0]).read_text(encoding="utf-8").split("\n")[:COURSE_WORDS]
    words = [line.split("\t")[0].strip() for line in lines]
    ordinary = [word for word in words if word not in ("UUUNKKK", "<s>", "</s>", "")]
    return WordTokeniser((UNKNOWN, " \n", *(f" {word}" for word in ordinary)), piece_pattern("spaces"))


def course_bigram(folder: Path) -> Bigram:
    """The course's network on its own vocabulary and the largest part of its own text that is to be had, the dev part.

    Fitted on all pairs at once (claim A5 shows that this ends where the published training ends, in less time).
    """
    _, tagged, vectors = (folder / name for name in COURSE)
    tokeniser = course_tokeniser(folder)
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary, "train.txt")
        file.write_text(sentences(tagged.read_text(encoding="utf-8")), encoding="utf-8", newline="")
        recipe = BigramRecipe(files=(str(file),), vectors=str(vectors), hidden=50, patience=8, learn_vectors=False)
        return fit("", recipe, tokeniser)[0].model


def newspaper_form(text: str) -> str:
    """As the course's text is: marks apart, small letters, digits as shapes, an end after each sentence."""
    words = re.findall(r"\w+(?:[-.,]\w+)*|['’]\w+|[^\w\s]", text)
    chain = Chain(("lower", "digits"))
    return "".join(f" {chain(word)}" + (" \n" if word in (".", "!", "?") else "") for word in words)


def charged(scores: Scores, units: Sequence[str]) -> Floats:
    """Nats of one scored text, spelling included, in each of its units; a token across an edge is shared by bytes."""
    edges = np.cumsum([0, *(len(unit.encode()) for unit in units)])
    ends = np.append(0.0, np.cumsum(scores.byte_lengths))
    costs = np.append(0.0, np.cumsum(scores.nats + scores.spelling_nats))
    return np.diff(np.interp(edges, ends, costs))


def slug(label: str) -> str:
    return re.sub(r"\W+", "_", label.lower()).strip("_")
