"""`inkling train gpt --pairs …` and `inkling finetune`: a transformer learns facts from documents and can be asked.

What is read is a mixture of ways to learn from documents and pairs of question and answer (recipes/documents.py). All
documents are learned from, for what was never read cannot be known: nothing is held out, the last weights are kept,
and `inkling evaluate RUN --pairs FILE` measures on questions that were not trained on.

A training can begin from the weights of another run (`base`). Then it can also ask itself (`ask`): the base reads every
document that no pair is about, with the question that the pairs ask, and answers it with the book open; these pairs
(asked.tsv in the run's folder) are learned with the book closed. Whoever can read but has no memory yet gains one.

    minutes 5:   inkling train gpt lives.txt --pairs train.tsv --minutes 3
                 inkling finetune runs/gpt-lives train.tsv --documents lives.txt --ask --minutes 2
"""

from __future__ import annotations

import csv
import io
import time
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np
import torch

from inkling import hardware
from inkling.errors import InklingError, UsageError
from inkling.models.gpt_loss import Batch
from inkling.models.gpt_model import Transformer
from inkling.models.spelling import Speller
from inkling.recipes.asking import ask_itself
from inkling.recipes.data import LanguageText, open_text, resolve
from inkling.recipes.documents import OF_PAIRS, Library, Pair, Rounds, parse_mixture
from inkling.recipes.gpt import (
    MINUTES,
    MOMENTUM,
    TIMED_STEPS,
    TRAINED_SHARE,
    GPTRecipe,
    Size,
    Watch,
    finish,
    make_objective,
    refuse_giants,
    start_parameters,
)
from inkling.recipes.streamed import Material, Prepared, Say, begin, go_on
from inkling.runs.loading import load_language_model
from inkling.runs.run import Run
from inkling.text.normalise import Chain
from inkling.text.questions import MARK, Pairs, PairsConfig, read_pairs
from inkling.text.tokenise import train_tokeniser
from inkling.text.tokens import Tokeniser
from inkling.training.loop import Parameters, Step, TrainingState, train
from inkling.training.processes import ALONE, Processes

SIZE = Size(4, 128, 4, 384, context=192, batch=6, short_share=0.0)
VOCABULARY = 2048  # of bpe
MOST_TOKENS = 1 << 30  # of a step: no limit but memory
RATE = 0.05  # Muon's
AGAIN = 0.5  # times the rate, where training begins from another run
OBJECTIVE = "span-corruption"  # of documents alone
WITH_PAIRS = "recall=1,reading=2"
FINETUNED = "question"
FINETUNED_WITH_DOCUMENTS = "recall=1,question=1"
ASKED = {"asked": 3.0, "question": 2.0, "recall": 1.0}
ASKED_FILE = "asked.tsv"
SAME_AS_BASE = (
    *("layers", "heads", "mlp", "context", "tied", "rotary_base", "activation", "grams", "gram_rows"),
    *("key_value_heads", "query_key_norm", "norm_epsilon"),
)


@dataclass(frozen=True)
class KnowledgeRecipe(GPTRecipe):
    """What a training on documents and pairs can be told, beside what `GPTRecipe` has. A step reads about
    `batch` × `context` tokens."""

    tokens: Literal["character", "byte", "bpe", "word"] = "bpe"
    objective: str = ""  # empty: what suits documents and pairs
    pairs: tuple[str, ...] = ()
    question_column: str | None = None
    answer_column: str | None = None
    base: str = ""  # the run to begin from; empty: from nothing
    ask: bool = False
    query_key_norm: bool = True
    norm_epsilon: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.objective:
            parse_mixture(self.objective)
        if self.held_out:
            raise UsageError(
                "--held-out is for running text: documents are all learned from; measure with `inkling evaluate RUN "
                "--pairs FILE`."
            )
        if self.ask and not (self.base and self.files and self.pairs):
            raise UsageError(
                "--ask needs a run that can read, documents to read and pairs that show what to ask: give RUN, "
                "pairs and --documents."
            )

    def sizes(self, vocabulary: int) -> Any:
        return replace(super().sizes(vocabulary), query_key_norm=self.query_key_norm, norm_epsilon=self.norm_epsilon)


@dataclass(frozen=True)
class DocumentText:
    """The documents and pairs of a training, as run.json names them. What is read, documents and questions, goes
    through the `chain`; what is to be said, answers, does not."""

    text: LanguageText | None
    pairs: Pairs | None
    chain: Chain

    def lines(self) -> list[str]:
        return [line for block in self.text.train_blocks() for line in block if line.strip()] if self.text else []

    def question_pairs(self) -> list[Pair]:
        return [(self.chain(question), answer) for question, answer in self.pairs.together()] if self.pairs else []

    def describe(self) -> dict[str, Any]:
        pairs = self.pairs.describe() if self.pairs else {"files": [], "sha256": None, "notes": [], "rows": 0}
        described = (
            self.text.describe()
            if self.text
            else {"files": [], "sha256": None, "held_out_sha256": None, "rows": 0, "bytes": 0, "notes": []}
        )
        return {
            **described,
            "files": [*described["files"], *pairs["files"]],
            "held_out": "nothing",
            "pairs": pairs,
            "pairs_sha256": pairs["sha256"],
            "notes": [*described["notes"], *pairs["notes"]],
        }


def train_knowledge(
    recipe: KnowledgeRecipe, out: Path, say: Say = lambda _: None, watch: Watch | None = None
) -> Generator[tuple[Run, Step], None, None]:
    """Makes the run `out` and trains it; yields after every step, so that the caller can show it or stop."""
    yield from begin(out, recipe, prepare, say, watch)


def resume_knowledge(
    run: Run, say: Say = lambda _: None, watch: Watch | None = None
) -> Generator[tuple[Run, Step], None, None]:
    """Goes on where the newest checkpoint of an unfinished run stands."""
    yield from go_on(run, KnowledgeRecipe, prepare, say, watch)


def prepare(
    recipe: KnowledgeRecipe,
    tokeniser: Tokeniser | None = None,
    say: Say = lambda _: None,
    processes: Processes = ALONE,
    folder: Path | None = None,
) -> Prepared:
    """Reads documents and pairs, makes the tokeniser or takes that of the base, and settles what is left open."""
    started = time.perf_counter()
    base = _base(recipe) if recipe.base and folder is None else None
    if base is not None:
        tokeniser = base.tokeniser
        recipe = _like(recipe, base)
    source = _open(recipe, say)
    lines, pairs = source.lines(), source.question_pairs()
    if tokeniser is None:
        tokeniser = _learn_tokeniser(recipe, lines, pairs)
    asked: Sequence[Pair] = ()
    if recipe.ask:
        if folder is not None:
            asked = read_asked(folder)
        else:
            assert base is not None
            asked = ask_itself(base, lines, pairs, say)
    library = Library.of(lines, pairs, tokeniser, asked)
    recipe = settle(recipe, library, tokeniser, say, processes, time.perf_counter() - started)
    sizes = recipe.sizes(tokeniser.size)
    start = start_parameters(recipe, sizes) if base is None else base.tensors()
    objective = make_objective(recipe, sizes, processes, {name: value.clone() for name, value in start.items()})
    if not objective.kernels.compiled:
        say(objective.kernels.sentence)
    rounds = _rounds(recipe, library)
    speller = Speller.fit(Counter(), tokeniser) if tokeniser.unknown is not None else None

    def batch(step: int) -> Batch:
        rows = len(rounds.examples(step))
        return rounds.batch(step, processes.rows(rows))

    def model(parameters: Parameters) -> Transformer:
        return Transformer(sizes, parameters, tokeniser, source.chain, speller)

    tokens = sum(map(len, (*library.heads, *library.bodies, *library.prompts, *library.answers)))
    epochs = {way.replace("-", "_"): share * recipe.steps for way, share in rounds.epochs_a_step.items()}
    return Prepared(
        kind="gpt",
        recipe=recipe,
        sizes=asdict(sizes),
        material=Material(source, tokeniser, speller, tokens),
        objective=objective,
        training=recipe.training(),
        batch=batch,
        model=model,
        judged=0,
        tokens_a_step=recipe.tokens_a_step,
        figures={
            "documents": len(library.heads),
            "pairs": len(library.prompts),
            **({"asked": len(asked)} if asked else {}),
            **{f"epochs_of_{way}": round(times, 2) for way, times in epochs.items()},
            **{name: getattr(recipe, name) for name in ("layers", "width", "context")},
        },
        files={ASKED_FILE: write_asked(asked)} if recipe.ask else {},
    )


def _base(recipe: KnowledgeRecipe) -> Transformer:
    found = load_language_model(recipe.base)
    if not isinstance(found, Transformer):
        raise InklingError(
            f"{recipe.base} is a {Run.open(recipe.base).kind}, and only a transformer can be trained further; make one "
            "with `inkling train gpt FILE --pairs PAIRS`."
        )
    if recipe.normalise not in ("none", str(found.chain)):
        raise UsageError(f"{recipe.base} reads text behind '{found.chain}'; leave --normalise out.")
    return found


def _like(recipe: KnowledgeRecipe, base: Transformer) -> KnowledgeRecipe:
    """The recipe with what a base has decided already: sizes, tokens, and how text is read."""
    decided = {name: getattr(base.config, name) for name in SAME_AS_BASE}
    decided |= {"width": base.config.dimension, "tokens": base.tokeniser.kind, "normalise": str(base.chain)}
    return replace(recipe, **decided)


def _open(recipe: KnowledgeRecipe, say: Say) -> DocumentText:
    chain = Chain.parse(recipe.normalise)
    if MARK not in chain(MARK):
        raise UsageError(f"--normalise {chain} removes the mark between question and answer (U+001A); leave it out.")
    text = open_text(recipe, say, whole=True) if recipe.files else None
    pairs = None
    if recipe.pairs:
        reading = PairsConfig(
            recipe.question_column, recipe.answer_column, header=recipe.header, bad_rows=recipe.bad_rows
        )
        pairs = read_pairs([resolve(name) for name in recipe.pairs], reading)
        for note in pairs.notes:
            say(note)
    if text is None and pairs is None:
        raise UsageError("There is nothing to learn from; give documents, or pairs of question and answer.")
    return DocumentText(text, pairs, chain)


def _learn_tokeniser(recipe: KnowledgeRecipe, lines: list[str], pairs: Sequence[Pair]) -> Tokeniser:
    size = recipe.vocabulary or (VOCABULARY if recipe.tokens == "bpe" else None)
    # Without the mark in questions, so that it is never merged with what stands before it.
    blocks = [[f" {line}\n" for line in lines], [f"{part}\n" for pair in pairs for part in pair], [f"{MARK}\n"]]
    return train_tokeniser(recipe.tokens, blocks, size, pieces=recipe.pieces, exclude=frozenset(recipe.exclude))


def write_asked(asked: Sequence[Pair]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter="\t", lineterminator="\n").writerows(asked)
    return buffer.getvalue().encode()


def read_asked(folder: Path) -> list[Pair]:
    with (folder / ASKED_FILE).open(encoding="utf-8", newline="") as file:
        return [(question, answer) for question, answer in csv.reader(file, delimiter="\t")]


# ----------------------------------------------------------------------------------------------- what is left open


def settle(
    recipe: KnowledgeRecipe,
    library: Library,
    tokeniser: Tokeniser,
    say: Say,
    processes: Processes,
    spent: float = 0.0,
) -> KnowledgeRecipe:
    """Everything that is not told; `spent` seconds of the minutes are over."""
    if not recipe.steps and not recipe.minutes:
        recipe = replace(recipe, minutes=MINUTES)
    recipe = replace(
        recipe,
        precision=hardware.precision(recipe.precision, progress=say),
        workers=recipe.workers or torch.get_num_threads(),
        objective=recipe.objective or _mixture(recipe, library),
        rate=recipe.rate or RATE * (AGAIN if recipe.base else 1.0),
        momentum=recipe.momentum if recipe.momentum >= 0 else MOMENTUM,
        decay=max(0.0, recipe.decay),
        dropout=max(0.0, recipe.dropout),
        judged=1,
    )
    recipe = finish(recipe, SIZE, MOST_TOKENS, say)  # a step has room for any document, many or few
    refuse_giants(recipe, tokeniser.size)
    if not recipe.steps:
        seconds = TRAINED_SHARE * 60 * recipe.minutes - spent
        per_step = time_of_step(recipe, library, tokeniser, processes)
        recipe = replace(recipe, steps=max(20, int(seconds / per_step)), minutes=max(0.1, recipe.minutes - spent / 60))
    return recipe


def _mixture(recipe: KnowledgeRecipe, library: Library) -> str:
    if recipe.ask:
        mixture = {way: share for way, share in ASKED.items() if len(library.sources()[way])}
        return ",".join(f"{way}={share:g}" for way, share in mixture.items())
    if recipe.base:
        return FINETUNED_WITH_DOCUMENTS if recipe.files else FINETUNED
    if not recipe.pairs:
        return OBJECTIVE
    if not recipe.files:
        return FINETUNED
    return WITH_PAIRS if (library.about >= 0).any() else "recall=2,question=1"


def _rounds(recipe: KnowledgeRecipe, library: Library) -> Rounds:
    mixture = parse_mixture(recipe.objective)
    if not library.prompts and set(mixture) & set(OF_PAIRS):
        raise UsageError(f"--objective {recipe.objective} needs questions and answers; give them with --pairs.")
    return Rounds(library, mixture, recipe.tokens_a_step, recipe.context, recipe.seed)


def time_of_step(
    recipe: KnowledgeRecipe, library: Library, tokeniser: Tokeniser, processes: Processes = ALONE
) -> float:
    """Seconds: the median of a few steps on this computer, now."""
    trial = replace(recipe, steps=1 + TIMED_STEPS, minutes=0.0)
    rounds = _rounds(trial, library)
    sizes = trial.sizes(tokeniser.size)
    objective = make_objective(trial, sizes, processes, start_parameters(trial, sizes))
    state = TrainingState(objective.parameters)

    def batch(step: int) -> Batch:
        return rounds.batch(step, processes.rows(len(rounds.examples(step))))

    ended = [0.0, *(step.seconds for step in train(objective, batch, trial.training(), state))]
    return median(np.diff(ended).tolist()[1:])
