"""What a language model makes of a text: one row of figures with an interval, in units that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from inkling.figures import Column, Table
from inkling.measure.intervals import Interval, bootstrap_ratio
from inkling.measure.tally import LN2, Tally, tally
from inkling.models.contracts import LanguageModel
from inkling.text.normalise import Chain

BLOCK_BYTES = 2000  # a block of the bootstrap: a paragraph or two


@dataclass(frozen=True)
class Evaluation:
    """One model on one text. `bits_per_byte` charges every byte of the original text."""

    model: str
    text: str
    normalisation: str
    tally: Tally
    bits_per_byte: Interval
    lossy: bool

    def to_json(self) -> dict[str, Any]:
        t = self.tally
        return {
            "model": self.model,
            "text": self.text,
            "normalisation": self.normalisation,
            "lossy": self.lossy,
            "bits_per_byte": self.bits_per_byte.value,
            "low": self.bits_per_byte.low,
            "high": self.bits_per_byte.high,
            "level": self.bits_per_byte.level,
            "perplexity_per_token": t.perplexity("token"),
            "perplexity_per_word": t.perplexity("word"),
            "perplexity_per_character": t.perplexity("char"),
            "bits_per_token": t.bits("token"),
            "bits_per_word": t.bits("word"),
            "bits_per_character": t.bits("char"),
            "unknown_share": t.unknown_share,
            **asdict(t),
        }


def evaluate(
    model: LanguageModel[Any],
    documents: Iterable[Sequence[str]],
    *,
    model_name: str,
    text_name: str,
    chain: Chain | None = None,
    seed: int = 0,
) -> Evaluation:
    """`documents` come in batches. `chain` is applied before the model sees them; bytes are those of the original."""
    chain = chain or Chain()
    whole = Tally()
    nats, sizes = [], []
    for batch in documents:
        scores = model.score([chain(text) for text in batch] if chain.names else batch)
        sums = tally(scores)
        original = sum(len(text.encode()) for text in batch)
        characters, words = sum(map(len, batch)), sum(len(text.split()) for text in batch)
        whole += Tally(sums.nats, sums.spelling_nats, sums.tokens, sums.unknown, words, characters, original)
        places = np.cumsum(scores.byte_lengths) - scores.byte_lengths
        block = places // BLOCK_BYTES
        # Bytes that a normalisation removed are spread over the blocks that are left, so that the sums stay true.
        scale = original / max(1, int(scores.byte_lengths.sum()))
        nats.append(np.bincount(block, scores.nats + scores.spelling_nats, minlength=1))
        left = np.bincount(block, scores.byte_lengths, minlength=1) * scale
        sizes.append(left if left.any() else np.array([float(original)]))
    joined = (np.concatenate(nats), np.concatenate(sizes)) if nats else (np.zeros(0), np.zeros(0))
    bits = bootstrap_ratio(joined[0] / LN2, joined[1], np.random.default_rng(seed))
    lossy = chain.lossy or model.chain.lossy
    name = str(Chain((*chain.names, *model.chain.names)))
    return Evaluation(model_name, text_name, name, whole, bits, lossy)


def evaluation_table(rows: Sequence[Evaluation]) -> Table:
    """Best first within each text."""
    ordered = sorted(rows, key=lambda row: (row.text, row.bits_per_byte.value))
    columns = (
        Column("text"),
        Column("model"),
        Column("normalisation"),
        Column("bits per byte", ".4f"),
        Column("low", ".4f"),
        Column("high", ".4f"),
        Column("perplexity", ".2f", unit="per token"),
        Column("perplexity", ".2f", unit="per word"),
        Column("unknown", ".1%"),
        Column("tokens", ",d"),
        Column("bytes", ",d"),
    )
    cells = tuple(
        (
            row.text,
            row.model,
            row.normalisation + (" (lossy)" if row.lossy else ""),
            row.bits_per_byte.value,
            row.bits_per_byte.low,
            row.bits_per_byte.high,
            row.tally.perplexity("token"),
            row.tally.perplexity("word"),
            row.tally.unknown_share,
            row.tally.tokens,
            row.tally.bytes,
        )
        for row in ordered
    )
    notes = [
        "Bits per byte charges every byte of the text, unknown words letter by letter: it compares any two models. "
        "low and high: 95 % bootstrap interval over blocks of text.",
        "Perplexity per token forgives unknown words and depends on the tokens: never compare it between vocabularies.",
    ]
    if any(row.lossy for row in rows):
        notes.append("lossy: the normalisation removed information, so those figures are of an easier text.")
    return Table("What each model makes of each text, best first", columns, cells, tuple(notes))
