"""`inkling study pretraining`: does reading a corpus help to answer questions about it? The trainings behind the study.

For each seed two trainings with the same pairs and the same budget, in a folder that can be gone on with:

    study.json                  what is trained on what, with the SHA-256 of everything
    train.jsonl, test.jsonl     the pairs that are learned and those that judge
    seed-0/reading              learns from corpus and pairs, for `READING_SHARE` of the budget
    seed-0/pretrained           begins there, asks itself about all other documents, and learns that, for the rest
    seed-0/not-pretrained       learns from the pairs alone, for all of the budget
    result.json                 what came out

Without test pairs a fifth of all questions is set aside to judge by; with test pairs, training pairs that ask the same
question are left out. So neither training sees a question that it is judged by. The same command on the same folder
goes on where it stopped, to the bit; more seeds may be asked for later. `studies/pretraining` has the tests and the
verdict. Left out: a budget that stops either training where it is best, for that would need questions of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from inkling.errors import InklingError, UsageError
from inkling.measure.answers import exactly
from inkling.measure.neighbours import baselines
from inkling.models.answering import AnsweringConfig, answer_questions
from inkling.recipes.asking import question_form
from inkling.recipes.data import open_corpus, resolve
from inkling.recipes.documents import Pair
from inkling.recipes.gpt import MINUTES
from inkling.recipes.knowledge import KnowledgeRecipe, resume_knowledge, train_knowledge
from inkling.runs.files import finite, sweep, write_file
from inkling.runs.loading import load_language_model
from inkling.runs.run import Run
from inkling.studies.pretraining import Pretraining, Trained, study_pretraining
from inkling.text.questions import PairsConfig, read_pairs

Say = Callable[[str], None]
OnProgress = Callable[[int, int, str], None]  # steps done, of how many as far as can be seen, of which training

FORMAT = "inkling study of pretraining 1"
STUDY, RESULT, TRAIN, TEST = "study.json", "result.json", "train.jsonl", "test.jsonl"
TEST_SHARE = 0.2
READING_SHARE = 0.7  # of the budget, where there is a corpus; the rest is for what the model asked itself
MOST_SEEDS = 1000


@dataclass(frozen=True)
class PretrainingRecipe:
    """All that `inkling study pretraining` can be told. `training` has corpus, pairs and the budget of one training."""

    training: KnowledgeRecipe
    test: tuple[str, ...] = ()
    seeds: int = 3
    answering: AnsweringConfig = field(default_factory=AnsweringConfig)

    def __post_init__(self) -> None:
        told = self.training
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise UsageError(f"--seeds is {self.seeds}; give a whole number from 1 to {MOST_SEEDS:,}.")
        if not told.files or not told.pairs:
            raise UsageError("A study needs a corpus and pairs of question and answer; name a file of each.")
        if "-" in (*told.files, *told.pairs, *self.test):
            raise UsageError("Each training reads the files anew, which - cannot give; name files.")
        if told.base or told.ask:
            raise UsageError("A study trains from nothing and decides itself what to ask; leave base and ask out.")


@dataclass(frozen=True)
class Stage:
    """A training on the way to answers, and its share of the budget."""

    name: str
    recipe: KnowledgeRecipe
    share: float


def stages_with(recipe: KnowledgeRecipe, ask: bool = True) -> tuple[Stage, Stage]:
    """Reading, then going on from there with what the model asked itself. The base of the second is named later."""
    reading = replace(_budget(recipe, READING_SHARE), base="", ask=False)
    further = replace(_budget(recipe, 1 - READING_SHARE), base="reading", ask=ask)
    return Stage("reading", reading, READING_SHARE), Stage("pretrained", further, 1 - READING_SHARE)


def stages_without(recipe: KnowledgeRecipe) -> tuple[Stage]:
    """The pairs alone."""
    return (Stage("not-pretrained", replace(recipe, files=(), base="", ask=False, text_column=None), 1.0),)


def _budget(recipe: KnowledgeRecipe, share: float) -> KnowledgeRecipe:
    """A share of the budget; of what a training has that is told none, if neither minutes nor steps are told."""
    minutes = recipe.minutes if recipe.minutes or recipe.steps else MINUTES
    return replace(recipe, minutes=share * minutes, steps=max(1, round(share * recipe.steps)) * bool(recipe.steps))


def train_stages(
    stages: Sequence[Stage],
    folder: Path,
    say: Say = lambda _: None,
    on_step: Callable[[Stage, int, int], None] | None = None,
) -> list[Run]:
    """One after the other into `folder`; what is finished there is kept, and what was begun is gone on with."""
    runs = []
    for stage in stages:
        path = folder / stage.name
        recipe = replace(stage.recipe, base=str(folder / stage.recipe.base)) if stage.recipe.base else stage.recipe
        if path.exists() and Run.open(path).finished:
            if on_step:
                steps = int(Run.open(path).info["summary"]["steps"])
                on_step(stage, steps, steps)
        else:
            training = resume_knowledge(Run.open(path), say) if path.exists() else train_knowledge(recipe, path, say)
            for _, step in training:
                if on_step:
                    on_step(stage, step.step, step.steps)
        runs.append(Run.open(path))
    return runs


def run_study(
    recipe: PretrainingRecipe,
    folder: Path,
    say: Say = lambda _: None,
    on_progress: OnProgress = lambda done, total, what: None,
) -> Pretraining:
    """Trains what is not yet trained, and gives what all trainings show together."""
    train, test, notes = read_parts(recipe, say)
    _open_folder(folder, recipe, train, test)
    ask = _can_ask(train)
    if not ask:
        notes.append("The questions have no form in common, so the model could not ask itself about other documents.")
        say(notes[-1])
    questions, truth = [question for question, _ in test], [answer for _, answer in test]
    told = replace(recipe.training, pairs=(str(folder / TRAIN),), question_column=None, answer_column=None, held_out=())
    counted = _Count(2 * recipe.seeds, on_progress)

    def trained(seed: int, pretrained: bool) -> Trained:
        seeded = replace(told, seed=told.seed + seed)
        stages = stages_with(seeded, ask) if pretrained else stages_without(seeded)
        what = f"seed {seed}, {'with' if pretrained else 'without'} the corpus"
        counted.begin(what)
        runs = train_stages(stages, folder / f"seed-{seed}", _quiet, counted.step)
        said = answer_questions(load_language_model(runs[-1]), questions, recipe.answering)
        seconds = sum(float(run.info["summary"]["seconds"]) for run in runs)
        return Trained(tuple(answer.text for answer in said), seconds)

    found = Pretraining(
        tuple(study_pretraining(trained, truth, recipe.seeds)),
        text_name=", ".join(Path(name).name for name in recipe.test) or "the questions set aside",
        corpus_name=", ".join(Path(name).name for name in recipe.training.files),
        levels=_levels(train, test),
        notes=tuple(notes),
    )
    write_file(folder / RESULT, json.dumps(finite(found.to_json()), ensure_ascii=False, indent=1))
    return found


class _Count:
    """Steps of all trainings. How many there will be is guessed from those that are known, by their shares."""

    def __init__(self, trainings: int, on_progress: OnProgress) -> None:
        self.trainings, self.on_progress, self.what = trainings, on_progress, ""
        self.steps: dict[tuple[str, str], int] = {}  # by training and stage
        self.shares: dict[tuple[str, str], float] = {}
        self.before = 0  # steps of all stages but the one that runs
        self.running: tuple[str, str] | None = None

    def begin(self, what: str) -> None:
        self.what = what

    def step(self, stage: Stage, done: int, steps: int) -> None:
        key = (self.what, stage.name)
        if key != self.running:
            self.before, self.running = sum(self.steps.values()), key
        self.steps[key], self.shares[key] = steps, stage.share
        total = sum(self.steps.values()) / sum(self.shares.values()) * self.trainings
        self.on_progress(self.before + done, max(round(total), self.before + steps), self.what)


def _quiet(_: str) -> None:
    """What there is to say about the files was said once."""


def _can_ask(train: Sequence[Pair]) -> bool:
    try:
        question_form([question for question, _ in train])
    except UsageError:
        return False
    return True


def _levels(train: Sequence[Pair], test: Sequence[Pair]) -> tuple[tuple[str, float], ...]:
    """What can be had without a model, from the same pairs."""
    truth = [answer for _, answer in test]
    found = baselines(train, [question for question, _ in test])
    return tuple((one.name, float(exactly(one.answers, truth).mean())) for one in found)


# ------------------------------------------------------------------------------------------------- pairs, folder


def read_parts(recipe: PretrainingRecipe, say: Say = lambda _: None) -> tuple[list[Pair], list[Pair], list[str]]:
    """The pairs to learn from, those to judge by, and what there is to say about it."""
    told = recipe.training
    reading = PairsConfig(told.question_column, told.answer_column, header=told.header, bad_rows=told.bad_rows)
    whole, notes = _read(told.pairs, reading)
    if recipe.test:
        test, more = _read(recipe.test, reading)
        notes += more
        asked = {question for question, _ in test}
        train = [pair for pair in whole if pair[0] not in asked]
        if len(train) < len(whole):
            notes.append(
                f"{len(whole) - len(train):,} of {len(whole):,} training pairs ask a question of the test pairs; they "
                "are left out of training."
            )
    else:
        different = list(dict.fromkeys(question for question, _ in whole))
        order = np.random.default_rng((told.seed, 17)).permutation(len(different))
        apart = {different[place] for place in order[: max(1, round(TEST_SHARE * len(different)))].tolist()}
        train, test = ([pair for pair in whole if (pair[0] in apart) == judged] for judged in (False, True))
        notes.append(
            f"No test pairs were given: {len(test):,} of {len(whole):,} pairs were set aside to judge by, and no "
            "training saw them."
        )
    if not train:
        raise InklingError(
            f"{', '.join(told.pairs)} has no pair left to learn from ({len(whole):,} in all, {len(test):,} to judge "
            "by); give more pairs."
        )
    for note in notes:
        say(note)
    return train, test, notes


def _read(files: Sequence[str], reading: PairsConfig) -> tuple[list[Pair], list[str]]:
    found = read_pairs([resolve(name) for name in files], reading)
    return found.together(), list(found.notes)


def _open_folder(folder: Path, recipe: PretrainingRecipe, train: Sequence[Pair], test: Sequence[Pair]) -> None:
    """Makes the folder, or finds that it holds the same study; a sentence otherwise."""
    told = {
        name: value
        for name, value in asdict(recipe.training).items()
        if name not in ("files", "pairs", "question_column", "answer_column")
    }
    lines = {name: pair_lines(pairs) for name, pairs in ((TRAIN, train), (TEST, test))}
    record: dict[str, Any] = {
        "format": FORMAT,
        "training": json.loads(json.dumps(told)),  # as it comes back
        "answering": asdict(recipe.answering),
        "corpus": open_corpus(recipe.training.files, recipe.training).fingerprint(),
        **{name: hashlib.sha256(content.encode()).hexdigest() for name, content in lines.items()},
    }
    place = folder / STUDY
    if place.exists():
        try:
            earlier = json.loads(place.read_text(encoding="utf-8"))
            differs = [key for key in record if earlier.get(key) != record[key]]
        except (OSError, ValueError, AttributeError) as error:
            raise InklingError(f"{place} cannot be used ({error}); name another folder with --out.") from error
        if differs:
            raise UsageError(
                f"{folder} holds another study ({', '.join(differs)} differ); name another folder with --out."
            )
        sweep(folder)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is no folder of a study; name a new one with --out.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in lines.items():
        write_file(folder / name, content)
    write_file(place, json.dumps(record, ensure_ascii=False, indent=1))


def pair_lines(pairs: Sequence[Pair]) -> str:
    """A file of pairs: JSON lines, in which any text can stand."""
    return "".join(
        json.dumps({"question": question, "answer": answer}, ensure_ascii=False) + "\n" for question, answer in pairs
    )
