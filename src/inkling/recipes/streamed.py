"""From a long row of tokens to a run: what the trainings of all models that read text in batches have in common.

A recipe says what is its own (sizes, objective, batches, schedule: `Prepared`); here the text is opened and cut, the
run is made, trained, judged on held-out text, recorded, resumed and finished.

Of several processes (`torchrun`) the first one settles the recipe, makes the run and tells the others where it is; they
read text, recipe, tokeniser and checkpoint from there, as for resuming, and write nothing.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from inkling.configuration import from_record
from inkling.errors import InklingError, UsageError
from inkling.measure.tally import LN2
from inkling.models.spelling import Speller
from inkling.recipes.card import write_card
from inkling.recipes.data import TextConfig, learn_tokeniser, open_text, same_text, spelling_nats, units
from inkling.recipes.stream import TokenStream, encode_stream
from inkling.runs import files
from inkling.runs.loading import constant_files
from inkling.runs.presence import present
from inkling.runs.recording import Recorder, checkpoint, dump, restore, take_up
from inkling.runs.run import Run
from inkling.text.normalise import Chain
from inkling.text.tokenise import Pieces, load_tokeniser
from inkling.text.tokens import Tokeniser
from inkling.training.loop import Parameters, Step, TrainingConfig, TrainingState, train
from inkling.training.processes import Processes, joined

Say = Callable[[str], None]
MEASURED_TOKENS = 1 << 21  # of the held-out text, at most, at the end
WATCH_SECONDS = 15.0
LOG_EVERY = 1  # so that Ctrl-C can save at any step


class Text(Protocol):
    """Where a training's text comes from."""

    @property
    def chain(self) -> Chain: ...
    def describe(self) -> dict[str, Any]:
        """For run.json."""
        ...


@dataclass(frozen=True)
class Material:
    """What a run is made from. `train_tokens` are there to learn from."""

    text: Text
    tokeniser: Tokeniser
    speller: Speller | None
    train_tokens: int


@dataclass(frozen=True)
class Source(Material):
    """A text, cut: what is learned from and what is held out."""

    stream: TokenStream
    held_out: TokenStream

    def spelling_nats(self) -> float:
        """What the unknown tokens of the held-out text cost letter by letter."""
        return spelling_nats(self.speller, self.held_out.spellings)

    def units(self) -> dict[str, float]:
        return units(self.tokeniser, self.held_out.counts, self.held_out.spellings, self.speller)

    def unigram_nats(self) -> float:
        """A token of the held-out text by the frequencies of the training text."""
        softened = self.stream.counts + 0.1
        return -float(np.log(softened / softened.sum()) @ self.held_out.counts) / len(self.held_out)


class Scorer(Protocol):
    def score_ids(self, ids: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """Nats of each token of texts that begin at `offsets`."""
        ...


class StreamObjective(Protocol):
    @property
    def parameters(self) -> Parameters: ...
    def gradient(self, batch: Any, step: int) -> tuple[float, float]: ...
    def plain(self, parameters: Parameters) -> Parameters:
        """The model's parameters, from the trained ones."""
        ...


@dataclass(frozen=True)
class Prepared:
    """Text turned into everything that training needs; the same for the same bytes and recipe."""

    kind: str
    recipe: Any  # a frozen dataclass: TextConfig and more
    sizes: Mapping[str, Any]
    material: Material
    objective: StreamObjective
    training: TrainingConfig
    batch: Callable[[int], Any]
    model: Callable[[Parameters], Any]
    judged: int  # tokens of the held-out text, at most, while training; nothing is held out where there is no `Source`
    tokens_a_step: int
    figures: Mapping[str, Any]  # of the summary, beside those that all models have
    memory: Parameters = field(default_factory=dict)
    reader: Callable[[Parameters, int], Scorer] | None = None  # the model after so many steps, where it is another
    files: Mapping[str, bytes] = field(default_factory=dict)  # of the run, beside those that all models have

    def validate(self, source: Source, parameters: Parameters, step: int) -> tuple[float, float]:
        scorer: Scorer = self.model(parameters) if self.reader is None else self.reader(parameters, step)
        nats = scorer.score_ids(*source.held_out.part(self.judged))
        return float(nats.sum()), len(nats)

    def fresh_state(self) -> TrainingState:
        return TrainingState(self.objective.parameters, memory=self.memory)


def read_source(
    config: TextConfig,
    tokeniser: Tokeniser | None,
    tokens: str,
    vocabulary: int,
    pieces: Pieces,
    exclude: tuple[str, ...],
    say: Say,
) -> Source:
    """Opens the text, learns a tokeniser from it unless one is given, and cuts it."""
    text = open_text(config, say)
    if tokeniser is None:
        tokeniser = learn_tokeniser(text, tokens, vocabulary, pieces, exclude)
    stream = encode_stream(text.train_blocks(), tokeniser, text.scattered)
    held_out = encode_stream(text.held_out_blocks(), tokeniser, text.scattered)
    if len(stream) < 2 or not len(held_out):
        raise InklingError(f"{', '.join(config.files)} has no text to learn from; give a file with text in it.")
    speller = Speller.fit(stream.spellings, tokeniser) if tokeniser.unknown is not None else None
    return Source(text, tokeniser, speller, len(stream), stream, held_out)


class Prepare(Protocol):
    """From a recipe, and for going on the tokeniser and folder of the run, to all that training needs in one of the
    processes."""

    def __call__(
        self, recipe: Any, tokeniser: Tokeniser | None, say: Say, processes: Processes, folder: Path | None
    ) -> Prepared: ...


def begin(
    out: Path, recipe: TextConfig, prepare: Prepare, say: Say, watch: Callable[[Any], None] | None
) -> Generator[tuple[Run, Step], None, None]:
    """Makes the run `out` and trains it; yields after every step, so that the caller can show it or stop."""
    with joined() as processes:
        if not processes.leads:
            run = Run.open(processes.tell(""))
            yield from _accompany(run, type(recipe), prepare, processes)
            return
        if out.exists():
            raise UsageError(f"{out} exists already; name another with --out, or remove it with `inkling runs rm`.")
        if processes.count > 1 and "-" in (*recipe.files, *getattr(recipe, "pairs", ())):
            raise UsageError(f"{processes.count} processes cannot all read -; give a file.")
        prepared = prepare(recipe, None, say, processes, None)
        processes.check_memory(prepared.memory)
        material = prepared.material
        state = prepared.fresh_state()
        run = Run.create(
            out,
            info={
                "kind": prepared.kind,
                "recipe": asdict(prepared.recipe),
                "normalise": str(material.text.chain),
                "seed": prepared.recipe.seed,
                "threads": torch.get_num_threads(),
                "processes": processes.count,
                **({"units": material.units()} if isinstance(material, Source) else {}),
                "data": material.text.describe(),
            },
            constant={
                **constant_files(prepared.kind, prepared.sizes, material.tokeniser, material.speller),
                **prepared.files,
            },
            checkpoint=checkpoint(state, prepared.objective.plain),
        )
        processes.tell(str(run.path.absolute()))
        with present(run):
            yield from _train(run, prepared, state, say, watch, processes)


def go_on(
    run: Run, kind: type[TextConfig], prepare: Prepare, say: Say, watch: Callable[[Any], None] | None
) -> Generator[tuple[Run, Step], None, None]:
    """Goes on where the newest checkpoint of an unfinished run stands."""
    with joined() as processes:
        if not processes.leads:
            processes.tell("")  # the first one has swept up
            yield from _accompany(run, kind, prepare, processes)
            return
        before = int(run.info.get("processes", 1))
        if before != processes.count:
            say(
                f"{run.path} was begun in {before} process(es) and goes on in {processes.count}: the numbers will be "
                "the same but for rounding."
            )
        prepared = _prepared_again(run, kind, prepare, say, processes)
        files.sweep(run.path)
        files.sweep(run.path / "checkpoints")
        state = prepared.fresh_state()
        with present(run):
            restore(run, state, prepared.objective.plain)
            processes.tell("")
            yield from _train(run, prepared, state, say, watch, processes)


def _prepared_again(run: Run, kind: type[TextConfig], prepare: Prepare, say: Say, processes: Processes) -> Prepared:
    torch.set_num_threads(min(int(run.info["threads"]), os.cpu_count() or 1))
    recipe = from_record(kind, run.info["recipe"], str(run.path / "run.json"))
    tokeniser = load_tokeniser((run.path / "tokenizer.json").read_text(encoding="utf-8"))
    prepared = prepare(recipe, tokeniser, say, processes, run.path)
    same_text(run, prepared.recipe, prepared.material.text.describe())
    return prepared


def _accompany(
    run: Run, kind: type[TextConfig], prepare: Prepare, processes: Processes
) -> Generator[tuple[Run, Step], None, None]:
    """What another process than the first does: the same steps, in silence."""
    prepared = _prepared_again(run, kind, prepare, lambda _: None, processes)
    state = prepared.fresh_state()
    take_up(run, state, prepared.objective.plain)
    judge = _nobody if isinstance(prepared.material, Source) else None
    for step in train(prepared.objective, prepared.batch, prepared.training, state, judge, processes):
        yield run, step


def _nobody(_: Parameters) -> tuple[float, float]:
    """The first process judges."""
    raise AssertionError


def _train(
    run: Run,
    prepared: Prepared,
    state: TrainingState,
    say: Say,
    watch: Callable[[Any], None] | None,
    processes: Processes,
) -> Generator[tuple[Run, Step], None, None]:
    recorder = Recorder(run, state, prepared.objective.plain, LOG_EVERY)
    source = prepared.material if isinstance(prepared.material, Source) else None

    def validate(parameters: Parameters) -> tuple[float, float]:
        assert source is not None
        return prepared.validate(source, parameters, state.step)

    judge = validate if source else None
    steps = train(prepared.objective, prepared.batch, prepared.training, state, judge, processes)
    watched = time.monotonic()
    for step in recorder.record(steps):
        yield run, step
        if watch and time.monotonic() - watched >= WATCH_SECONDS:
            watch(prepared.model(state.parameters))
            watched = time.monotonic()
    chosen = state.chosen()
    summary = {
        "steps": state.step,
        "seconds": round(state.seconds, 3),
        "train_tokens": prepared.material.train_tokens,
        "train_tokens_read": state.step * prepared.tokens_a_step,
        **(_held_out_figures(source, prepared.model(chosen)) if source else {}),
        "parameters": sum(value.numel() for value in state.parameters.values()),
        "vocabulary": prepared.material.tokeniser.size,
        **prepared.figures,
    }
    run.finish(model=dump(prepared.objective.plain(chosen)), card=write_card(run, summary), summary=summary)
    if source and summary["held_out_nats_per_token"] > source.unigram_nats():
        say(
            f"The model needs {summary['held_out_nats_per_token']:.3g} nats a token, and the frequencies of the tokens "
            f"alone would need {source.unigram_nats():.3g}: it learned nothing of use; train longer, or with a smaller "
            f"--rate than {prepared.training.rate:g}."
        )


def _held_out_figures(source: Source, model: Scorer) -> dict[str, Any]:
    held_out = source.held_out
    nats = model.score_ids(*held_out.part(MEASURED_TOKENS))
    share = len(nats) / len(held_out)  # of a long text, the first part was measured
    mean = float(nats.mean())
    return {
        "held_out_tokens": len(nats),
        "held_out_unknown_tokens": sum(held_out.spellings.values()),
        "held_out_nats_per_token": mean,
        "held_out_perplexity": math.exp(min(mean, 700.0)),
        "held_out_bits_per_character": (float(nats.sum()) / share + source.spelling_nats()) / LN2 / held_out.chars,
    }
