"""`inkling evaluate`: runs on texts, with baselines beside them and a look at what the runs have read before.

Baselines come free: uniform over bytes, and fitted on the training text of the runs (where it is still at hand, byte
for byte) a unigram and a Kneser-Ney 6-gram over characters; compressors on the text itself. A baseline is fitted behind
the normalisation of the run that it stands beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from inkling.configuration import from_record
from inkling.errors import InklingError
from inkling.measure.compression import Compression, compressed_sizes
from inkling.measure.evaluation import Evaluation, Kind, evaluate, whole_chain
from inkling.measure.matrix import Matrix
from inkling.measure.overlap import Overlap, OverlapSearch
from inkling.models.baselines import Uniform
from inkling.models.contracts import LanguageModel
from inkling.recipes.data import LanguageText, TextConfig, documents, open_corpus, resolve
from inkling.recipes.ngram import NGramRecipe, fit_ngram
from inkling.runs.loading import load_language_model
from inkling.runs.run import Run
from inkling.text.corpus import Corpus
from inkling.text.normalise import Chain, Losses
from inkling.text.tokenise import ByteTokeniser

BASELINE_BYTES = 20_000_000  # of training text on disk; 11 MB of it took 8 seconds and 0.8 GB for the 6-gram
COMPRESSED_BYTES = 50_000_000  # of text
OVERLAP_BYTES = 200_000_000  # of training text

OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class EvaluationRecipe:
    """All that `inkling evaluate` can be told. `overlap` None: unless the training text is large."""

    runs: tuple[str, ...]
    on: tuple[str, ...]
    normalise: tuple[str, ...] = ("none",)
    reading: TextConfig = field(default_factory=TextConfig)
    baselines: bool = True
    overlap: bool | None = None
    seed: int = 0


@dataclass(frozen=True)
class Training:
    """The training text of some runs, still as it was."""

    config: TextConfig
    sha256: str
    size_bytes: int
    runs: tuple[str, ...]

    @property
    def name(self) -> str:
        return ", ".join(Path(file).name for file in self.config.files)

    def title(self, beside: Sequence[Training]) -> str:
        """The name, and whose training text it is where there are several."""
        return f"{self.name} of {', '.join(self.runs)}" if len(beside) > 1 else self.name


@dataclass(frozen=True)
class Contender:
    name: str
    kind: Kind
    model: LanguageModel[Any]


def evaluate_runs(recipe: EvaluationRecipe, on_progress: OnProgress = lambda done, total, what: None) -> Matrix:
    """Measures every run and baseline on every text behind every normalisation. Progress is in bytes of text."""
    run_names = distinct_names(recipe.runs)
    runs = {name: Run.open(run) for name, run in zip(run_names, recipe.runs, strict=True)}
    contenders = [Contender(name, "run", load_language_model(run)) for name, run in runs.items()]
    chains = [Chain.parse(names) for names in dict.fromkeys(recipe.normalise)]
    texts = {
        name: open_corpus([text], recipe.reading, keep_line_ends=True, keep_empty=True)
        for name, text in zip(distinct_names(recipe.on), recipe.on, strict=True)
    }
    notes: list[str] = []
    trainings = _trainings(runs, recipe, notes)
    learned = [training for training in trainings if recipe.baselines and _is_small(training, notes)]
    sizes = {name: corpus.size_bytes for name, corpus in texts.items()}
    models = len(runs) + (1 + 2 * len(learned) if recipe.baselines else 0)
    total = sum(sizes.values()) * models * len(chains) + sum(training.size_bytes for training in learned)
    done = 0
    if recipe.baselines:
        contenders.append(Contender("uniform bytes", "baseline", Uniform(ByteTokeniser())))
    for training in learned:
        on_progress(done, total, f"fitting baselines on {training.name}")
        contenders += _fitted(training, learned)
        done += training.size_bytes
    rows: list[Evaluation] = []
    for text, corpus in texts.items():
        for contender in contenders:
            # A model behind a chain of its own reads the same without that chain and with it.
            for chain in {whole_chain(chain, contender.model): chain for chain in chains}.values():
                before = done  # a packed file holds more bytes than its size says, so a row counts for that at most

                def count(read: int, before: int = before, text: str = text, what: str = contender.name) -> None:
                    on_progress(before + min(read, sizes[text]), total, f"{what} on {text}")

                count(0)
                rows.append(
                    evaluate(
                        contender.model,
                        documents(corpus),
                        model_name=contender.name,
                        text_name=text,
                        chain=chain,
                        kind=contender.kind,
                        seed=recipe.seed,
                        on_bytes=count,
                    )
                )
                done += sizes[text]
    compressions: list[Compression] = []
    overlaps: list[Overlap] = []
    for text, corpus in texts.items():
        fingerprint = corpus.fingerprint()
        chose = [name for name, run in runs.items() if run.info["data"].get("held_out_sha256") == fingerprint]
        if chose:
            notes.append(f"{text} chose the weights of {', '.join(chose)}, so the figures there flatter them a little.")
        if recipe.baselines:
            on_progress(done, total, f"compressing {text}")
            compressions += _compressions(text, corpus, chains, notes)
        if recipe.overlap is not False:
            on_progress(done, total, f"looking for {text} in the training text")
            overlaps += _overlaps(text, corpus, trainings, recipe, notes)
    return Matrix.of(
        rows,
        seed=recipe.seed,
        compressions=tuple(compressions),
        losses=tuple(_losses(rows, texts)),
        overlaps=tuple(overlaps),
        notes=tuple(dict.fromkeys(notes)),
        neural=tuple(name for name, run in runs.items() if run.kind != "ngram"),
    )


def distinct_names(paths: Sequence[str]) -> list[str]:
    """The last part of each path, or the whole of each where two would be called the same."""
    names = [Path(path).absolute().name for path in paths]
    return names if len(set(names)) == len(set(paths)) else list(paths)


# --------------------------------------------------------------------------------------------- what the runs have read


def _trainings(runs: dict[str, Run], recipe: EvaluationRecipe, notes: list[str]) -> list[Training]:
    if not recipe.baselines and recipe.overlap is False:
        return []
    found: dict[TextConfig, Training] = {}
    for name, run in runs.items():
        try:
            training = _training(name, run)
        except InklingError as error:
            notes.append(
                f"What {name} was trained on cannot be read again ({str(error).rstrip('.')}): no baseline was fitted "
                "on it, and whether the texts occur in it is not known."
            )
            continue
        # With held-out text of its own a run has read all of the file, whatever that other text was.
        config = replace(training.config, held_out=("named",) if training.config.held_out else ())
        earlier = found.get(config)
        found[config] = replace(earlier, runs=(*earlier.runs, name)) if earlier else training
    return list(found.values())


def _training(name: str, run: Run) -> Training:
    known = {field.name for field in fields(TextConfig)}
    record = {key: value for key, value in run.info["recipe"].items() if key in known}
    config = from_record(TextConfig, record, str(run.path / "run.json"))
    if not config.files:
        asked = run.info["recipe"].get("pairs")
        raise InklingError("it was questions and answers" if asked else "the model was imported without it")
    if "-" in config.files:
        raise InklingError("it came through standard input")
    corpus = open_corpus(config.files, config, keep_line_ends=True, keep_empty=True)
    sha256 = corpus.fingerprint()
    if sha256 != run.info["data"].get("sha256"):
        raise InklingError(f"{', '.join(config.files)} has changed since")
    files = tuple(str(Path(resolve(file)).absolute()) for file in config.files)
    # Documents are all learned from: of the last lines, too, one wants to know that they were read.
    held_out = files if run.info["data"].get("held_out") == "nothing" else config.held_out
    return Training(replace(config, files=files, held_out=held_out), sha256, corpus.size_bytes, (name,))


def _is_small(training: Training, notes: list[str]) -> bool:
    if training.size_bytes <= BASELINE_BYTES:
        return True
    notes.append(
        f"No baseline was fitted on {training.name}, for its {training.size_bytes:,} bytes are more than "
        f"{BASELINE_BYTES:,}."
    )
    return False


def _fitted(training: Training, beside: Sequence[Training]) -> Iterator[Contender]:
    """A unigram and a 6-gram over characters, named by what tells their training text from the others."""
    config = training.config
    of = f" of {training.name}" if len({other.config.files for other in beside}) > 1 else ""
    if len(beside) > 1 and config.normalise != "none":
        of += f" after {config.normalise}"
    if sum((other.name, other.config.normalise) == (training.name, config.normalise) for other in beside) > 1:
        of = f" like {training.runs[0]}"  # the same name, but read in another way or from another folder
    record = {field.name: getattr(config, field.name) for field in fields(TextConfig)}
    for order, name in ((1, "character unigram"), (6, "character 6-gram")):
        recipe = NGramRecipe(**record, order=order, tokens="character")
        yield Contender(f"{name}{of}", "baseline", fit_ngram(recipe, LanguageText(recipe)))


def _overlaps(
    text: str, corpus: Corpus, trainings: Sequence[Training], recipe: EvaluationRecipe, notes: list[str]
) -> Iterator[Overlap]:
    plain = {replace(training.config, normalise="none"): training for training in trainings}
    fingerprint = corpus.fingerprint()
    for config, training in plain.items():
        if training.size_bytes > OVERLAP_BYTES and recipe.overlap is None:
            notes.append(
                f"Whether the texts occur in {training.name} was not looked at: {training.size_bytes:,} bytes; "
                "--overlap does it all the same."
            )
            continue
        search = OverlapSearch(document for batch in documents(corpus) for document in batch)
        if search.too_short:
            notes.append(f"{text} is too short to be looked for in the training text.")
            return
        for block in LanguageText(config).train_blocks():
            search.read(block)
        yield search.found(text, training.title(trainings), same_file=fingerprint == training.sha256)


# --------------------------------------------------------------------------------------------- what the texts are


def _compressions(text: str, corpus: Corpus, chains: Sequence[Chain], notes: list[str]) -> Iterator[Compression]:
    size = sum(len(document.encode()) for batch in documents(corpus) for document in batch)
    if size > COMPRESSED_BYTES:
        notes.append(f"{text} was not compressed: {size:,} bytes, and the limit is {COMPRESSED_BYTES:,}.")
        return
    if not size:
        return
    for chain in chains:
        read = (chain(document).encode() for batch in documents(corpus) for document in batch)
        for name, compressed in compressed_sizes(read).items():
            yield Compression(name, text, str(chain), chain.lossy, compressed, size)


def _losses(rows: Sequence[Evaluation], texts: dict[str, Corpus]) -> Iterator[tuple[str, Losses]]:
    for text, normalisation in dict.fromkeys((row.text, row.normalisation) for row in rows if row.lossy):
        chain = Chain.parse(normalisation)
        lost: Losses | None = None
        for batch in documents(texts[text]):
            for document in batch:
                part = chain.losses(document)
                lost = part if lost is None else lost + part
        if lost is not None:
            yield text, lost
