"""What a language model makes of a text: one row of figures with an interval, in units that can be compared.

Blocks. Each document is cut into equal parts of about 2,000 bytes of its ORIGINAL text, whatever a normalisation made
of it, so that all models are charged on the same blocks and can be compared block by block. A place in the normalised
text is mapped to the original in proportion within its line (no normalisation moves a line end). A token that
straddles an edge is charged to both blocks in proportion to its bytes.

Blocks are kept in an order that depends on the documents alone (by their hash), so neither the order of documents nor
the size of batches changes any figure, the interval included.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from inkling.measure.intervals import Interval, ratio_interval
from inkling.measure.tally import LN2, Tally
from inkling.models.contracts import LanguageModel, Scores
from inkling.text.normalise import Chain

BLOCK_BYTES = 2000  # a paragraph or two
NEWLINE = 10

Kind = Literal["run", "baseline", "compressor"]


@dataclass(frozen=True)
class Blocks:
    """What each block of a text cost, and its bytes; the same blocks for every model."""

    nats: NDArray[np.float64]
    bytes: NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """One model on one text. `bits_per_byte` charges every byte of the original text."""

    model: str
    text: str
    normalisation: str
    tally: Tally
    bits_per_byte: Interval
    lossy: bool
    kind: Kind = "run"
    context: str = ""
    blocks: Blocks = field(default=Blocks(np.zeros(0), np.zeros(0)), compare=False, repr=False)

    @property
    def label(self) -> str:
        """Tells rows apart that read every byte; a lossy normalisation is named by where a row stands."""
        return self.model if self.lossy or self.normalisation == "none" else f"{self.model} [{self.normalisation}]"

    @property
    def perplexity_per_token_charged(self) -> float:
        """e^(all nats / tokens): the spelling of unknown words is charged to the tokens."""
        t = self.tally
        return Tally(nats=t.total_nats, tokens=t.tokens).perplexity("token")

    def to_json(self) -> dict[str, Any]:
        t = self.tally
        return {
            "model": self.model,
            "kind": self.kind,
            "text": self.text,
            "normalisation": self.normalisation,
            "lossy": self.lossy,
            "context": self.context,
            "bits_per_byte": self.bits_per_byte.value,
            "low": self.bits_per_byte.low,
            "high": self.bits_per_byte.high,
            "level": self.bits_per_byte.level,
            "blocks": len(self.blocks.nats),
            "perplexity_per_token": t.perplexity("token"),
            "perplexity_per_token_charged": self.perplexity_per_token_charged,
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
    kind: Kind = "run",
    seed: int = 0,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """`documents` come in batches. `chain` is applied before the model sees them; bytes are those of the original.

    `on_bytes` hears after each batch how many bytes of the text are done.
    """
    chain = chain or Chain()
    token_nats: list[float] = []
    spelling_nats: list[float] = []
    counts = np.zeros(5, np.int64)  # tokens, unknown, words, characters, bytes
    gathered: list[tuple[bytes, Blocks]] = []
    for batch in documents:
        scores = model.score([chain(text) for text in batch] if chain.names else batch)
        raw = [text.encode() for text in batch]
        token_nats += scores.per_text(scores.nats).tolist()
        spelling_nats += scores.per_text(scores.spelling_nats).tolist()
        words, characters = sum(len(text.split()) for text in batch), sum(map(len, batch))
        counts += (len(scores.ids), int(scores.unknown.sum()), words, characters, sum(map(len, raw)))
        for index, (text, original) in enumerate(zip(batch, raw, strict=True)):
            if original:
                seen = model.chain(chain(text)).encode() if chain.names or model.chain.names else original
                digest = hashlib.blake2b(original, digest_size=16).digest()
                gathered.append((digest, _blocks(scores, index, original, seen)))
        on_bytes(int(counts[4]))
    gathered.sort(key=lambda item: item[0])
    blocks = Blocks(
        np.concatenate([np.zeros(0), *(part.nats for _, part in gathered)]),
        np.concatenate([np.zeros(0), *(part.bytes for _, part in gathered)]),
    )
    tally = Tally(math.fsum(token_nats), math.fsum(spelling_nats), *map(int, counts))
    interval = ratio_interval(blocks.nats / LN2, blocks.bytes, seed)
    bits = Interval(tally.bits("byte"), interval.low, interval.high, interval.level)
    whole = whole_chain(chain, model)
    return Evaluation(model_name, text_name, str(whole), tally, bits, whole.lossy, kind, model.context, blocks)


def whole_chain(chain: Chain, model: LanguageModel[Any]) -> Chain:
    """All that happens to a text: `chain`, then that of the model. Twice the same is once: no step changes more."""
    return chain if chain.names == model.chain.names else Chain((*chain.names, *model.chain.names))


def _blocks(scores: Scores, index: int, original: bytes, seen: bytes) -> Blocks:
    """The cost of one document, block by block of `original`; the model read `seen`."""
    span = slice(int(scores.offsets[index]), int(scores.offsets[index + 1]))
    count = max(1, round(len(original) / BLOCK_BYTES))
    edges = np.arange(count + 1) * (len(original) / count)
    ends = np.append(0.0, np.cumsum(scores.byte_lengths[span]))
    if seen is not original:
        here, there = _line_ends(seen), _line_ends(original)
        if len(here) != len(there):  # a step that moves line ends: then in proportion over the whole document
            here, there = here[[0, -1]], there[[0, -1]]
        ends = np.interp(ends, here, there)
    costs = np.append(0.0, np.cumsum(scores.nats[span] + scores.spelling_nats[span]))
    return Blocks(np.diff(np.interp(edges, ends, costs)), np.diff(edges))


def _line_ends(text: bytes) -> NDArray[np.float64]:
    """Where lines begin and end, from 0 to the length of the text."""
    newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE) + 1
    return np.concatenate([[0], newlines, [len(text)]]).astype(np.float64)
