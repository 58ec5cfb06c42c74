"""`inkling train ngram`: the Kneser-Ney count model. One pass of counting; nothing to resume."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from inkling.errors import InklingError, UsageError
from inkling.measure.tally import tally, total
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.spelling import Speller
from inkling.recipes.card import write_card
from inkling.recipes.data import LanguageText, TextConfig, learn_tokeniser, open_text
from inkling.runs.loading import constant_files, dump_arrays
from inkling.runs.run import Checkpoint, Run
from inkling.text.tokenise import Pieces
from inkling.text.tokens import Encodings

MOST_TOKENS = 100  # in an n-gram; memory grows with each, and nothing is gained long before


@dataclass(frozen=True)
class NGramRecipe(TextConfig):
    """All that `inkling train ngram` can be told."""

    order: int = 2
    tokens: Literal["word", "character", "byte", "bpe"] = "word"
    vocabulary: int = 0  # zero: 4096 words or pieces, all characters
    pieces: Pieces = "words"
    exclude: tuple[str, ...] = ()
    discounts: Literal["modified", "single"] = "modified"

    def __post_init__(self) -> None:
        kinds = ("word", "character", "byte", "bpe")
        limits = (
            ("order", 1 <= self.order <= MOST_TOKENS, f"a whole number from 1 to {MOST_TOKENS}"),
            ("tokens", self.tokens in kinds, f"one of {', '.join(kinds)}"),
            ("vocabulary", self.vocabulary == 0 or self.vocabulary >= 2, "at least 2"),
            ("pieces", self.pieces in get_args(Pieces), f"one of {', '.join(get_args(Pieces))}"),
            ("discounts", self.discounts in ("modified", "single"), "modified or single"),
        )
        for name, fits, wanted in limits:
            if not fits:
                raise UsageError(f"--{name} is {getattr(self, name)}; give {wanted}.")


def fit_ngram(recipe: NGramRecipe, text: LanguageText) -> NGram:
    """The model alone, without a run."""
    tokeniser = learn_tokeniser(text, recipe.tokens, recipe.vocabulary, recipe.pieces, recipe.exclude)
    spellings: Counter[str] = Counter()

    def encoded() -> Iterator[Encodings]:
        # Lines of one running text are one text to the model, so each block is joined: contexts cross line ends.
        for block in text.train_blocks():
            encodings = tokeniser.encode(block if text.scattered else ["".join(block)])
            spellings.update(encodings.spellings)
            yield encodings

    config = NGramConfig(recipe.order, recipe.discounts)
    model = NGram.fit(encoded(), tokeniser, config, text.chain)
    speller = Speller.fit(spellings, tokeniser) if tokeniser.unknown is not None else None
    return NGram(tokeniser, text.chain, config, speller, model.table)


def train_ngram(recipe: NGramRecipe, out: Path, say: Callable[[str], None] = lambda _: None) -> Run:
    if out.exists():
        raise UsageError(f"{out} exists already; name another with --out, or remove it with `inkling runs rm`.")
    started = time.perf_counter()
    text = open_text(recipe, say)
    model = fit_ngram(recipe, text)
    held_out = total(
        tally(model.score(block if text.scattered else ["".join(block)])) for block in text.held_out_blocks()
    )
    if not held_out.tokens:
        raise InklingError(f"{', '.join(recipe.files)} has no text to learn from; give a file with text in it.")
    weights = dump_arrays(model.tensors())
    run = Run.create(
        out,
        info={
            "kind": "ngram",
            "recipe": asdict(recipe),
            "normalise": str(text.chain),
            "seed": 0,
            "threads": 1,
            "data": text.describe(),
        },
        constant=constant_files("ngram", asdict(model.config), model.tokeniser, model.speller),
        checkpoint=Checkpoint(0, weights, dump_arrays({}), {"step": 0}),
    )
    nats = held_out.nats / held_out.tokens
    summary = {
        "seconds": round(time.perf_counter() - started, 3),
        "held_out_tokens": held_out.tokens,
        "held_out_nats_per_token": nats,
        "held_out_perplexity": math.exp(nats),
        "held_out_bits_per_byte": held_out.bits("byte"),
        "vocabulary": model.tokeniser.size,
    }
    run.finish(model=weights, card=write_card(run, summary), summary=summary)
    return run
