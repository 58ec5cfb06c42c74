"""The study of pretraining: what each training is given, the folder, and going on after an interruption."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inkling.errors import InklingError, UsageError
from inkling.recipes import knowledge, pretraining
from inkling.recipes.gpt import MINUTES
from inkling.recipes.knowledge import KnowledgeRecipe, read_asked
from inkling.recipes.pretraining import PretrainingRecipe, read_parts, run_study, stages_with, stages_without
from inkling.runs.recording import read
from inkling.runs.run import Run
from inkling.text.world import biographies

WORLD = biographies(np.random.default_rng(5), 60)
PAIRS = [*WORLD.pairs_train, *WORLD.pairs_held_out]


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> str:
    path.write_text("question\tanswer\n" + "".join(f"{q}\t{a}\n" for q, a in pairs), encoding="utf-8")
    return str(path)


@pytest.fixture
def recipe(tmp_path: Path) -> PretrainingRecipe:
    lives = tmp_path / "lives.txt"
    lives.write_text(WORLD.text, encoding="utf-8")
    training = KnowledgeRecipe(
        files=(str(lives),),
        pairs=(write_pairs(tmp_path / "pairs.tsv", PAIRS),),
        vocabulary=400,
        layers=1,
        width=32,
        context=96,
        batch=4,
        steps=10,
        precision="float32",
    )
    return PretrainingRecipe(training, seeds=2)


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """After so few steps a model has nothing to say; what it is told to ask about is what matters here."""

    def ask(model: object, lines: list[str], pairs: list[tuple[str, str]], say: object) -> list[tuple[str, str]]:
        assert len(lines) == len(PAIRS)
        return [(question, "Velden") for question, _ in PAIRS if question not in dict(pairs)]

    monkeypatch.setattr(knowledge, "ask_itself", ask)


def pairs_in(path: Path) -> list[tuple[str, str]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row["question"], row["answer"]) for row in rows]


def test_a_fifth_of_the_questions_judges_and_no_training_sees_it(recipe: PretrainingRecipe, tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    out = tmp_path / "out"
    found = run_study(recipe, out, on_progress=lambda *step: seen.append(step))
    train, test = pairs_in(out / "train.jsonl"), pairs_in(out / "test.jsonl")
    assert sorted(train + test) == sorted(PAIRS)
    assert (len(train), len(test)) == (48, 12)
    assert (found.seeds, found.questions) == (2, 12)
    for seed in (0, 1):
        runs = {name: Run.open(out / f"seed-{seed}" / name) for name in ("reading", "pretrained", "not-pretrained")}
        for run in runs.values():
            assert run.finished
            assert run.info["recipe"]["pairs"] == [str(out / "train.jsonl")]
            assert run.info["seed"] == seed
        steps = {name: run.info["summary"]["steps"] for name, run in runs.items()}
        assert steps == {"reading": 7, "pretrained": 3, "not-pretrained": 10}
        assert runs["not-pretrained"].info["data"]["rows"] == 0  # no documents
        assert runs["not-pretrained"].info["recipe"]["objective"] == "question"
        assert runs["pretrained"].info["recipe"]["base"] == str(runs["reading"].path)
        assert {question for question, _ in read_asked(runs["pretrained"].path)} == {question for question, _ in test}
    done = [step[0] for step in seen]
    assert done == list(range(1, 41))
    assert seen[-1] == (40, 40, "seed 1, without the corpus")
    assert seen[0][1] == 40  # seven steps are seven tenths of the first of four trainings
    assert [name for name, _ in found.levels] == [
        f"always '{max(dict(train).values(), key=list(dict(train).values()).count)}'",
        "nearest name",
    ]
    assert json.loads((out / "result.json").read_text(encoding="utf-8"))["verdict"] == found.verdict()
    assert any("12 of 60 pairs were set aside" in note for note in found.notes)


def test_after_an_interruption_it_goes_on_to_the_same_bits(
    recipe: PretrainingRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = replace(recipe, seeds=1)
    whole = run_study(one, tmp_path / "whole")
    begun: list[str] = []
    train = knowledge.train_knowledge

    def stopped(told: KnowledgeRecipe, out: Path, *rest: Any) -> Generator[Any, None, None]:
        begun.append(out.name)
        steps = train(told, out, *rest)
        for run, step in steps:
            if begun == ["reading", "pretrained"] and step.step == 2:
                steps.close()
                raise KeyboardInterrupt
            yield run, step

    monkeypatch.setattr(pretraining, "train_knowledge", stopped)
    with pytest.raises(KeyboardInterrupt):
        run_study(one, tmp_path / "part")
    assert begun == ["reading", "pretrained"]
    assert not Run.open(tmp_path / "part" / "seed-0" / "pretrained").finished
    part = run_study(one, tmp_path / "part")
    assert begun == ["reading", "pretrained", "not-pretrained"]  # what is finished is not trained again
    for name in ("reading", "pretrained", "not-pretrained"):
        weights = [
            read((tmp_path / which / "seed-0" / name / "model.safetensors").read_bytes()) for which in ("whole", "part")
        ]
        assert all(bool((weights[1][key] == value).all()) for key, value in weights[0].items())
    assert part.pairs[0].pretrained.answers == whole.pairs[0].pretrained.answers
    run_study(replace(recipe, seeds=2), tmp_path / "part")  # a study may grow
    assert begun[3:] == ["reading", "pretrained", "not-pretrained"]


def test_a_folder_of_another_study_is_refused(recipe: PretrainingRecipe, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_study(replace(recipe, seeds=1), out)
    told = recipe.training
    with pytest.raises(UsageError, match=r"holds another study \(training differ\)"):
        run_study(replace(recipe, training=replace(told, steps=11)), out)
    Path(told.files[0]).write_text(WORLD.text + "One more. A line.\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds another study \(corpus differ\); name another folder with --out"):
        run_study(recipe, out)
    with pytest.raises(UsageError, match="is no folder of a study"):
        run_study(recipe, tmp_path)


def test_training_pairs_that_ask_a_test_question_are_left_out(recipe: PretrainingRecipe, tmp_path: Path) -> None:
    other = ("Where was Nobody At All born?", "Velden")
    test = write_pairs(tmp_path / "dev.tsv", [*PAIRS[:7], other])
    said: list[str] = []
    train, judged, _ = read_parts(replace(recipe, test=(test,)), said.append)
    assert judged == [*PAIRS[:7], other]
    assert train == PAIRS[7:]
    assert "7 of 60 training pairs ask a question of the test pairs; they are left out of training." in said
    everything = write_pairs(tmp_path / "all.tsv", PAIRS)
    with pytest.raises(InklingError, match="no pair left to learn from"):
        read_parts(replace(recipe, test=(everything,)))


def test_a_question_that_is_asked_twice_stands_on_one_side(recipe: PretrainingRecipe, tmp_path: Path) -> None:
    twice = write_pairs(tmp_path / "twice.tsv", PAIRS + PAIRS)
    train, test, _ = read_parts(replace(recipe, training=replace(recipe.training, pairs=(twice,))))
    assert (len(train), len(test)) == (96, 24)
    assert not {question for question, _ in train} & {question for question, _ in test}


def test_both_trainings_have_the_same_budget() -> None:
    told = KnowledgeRecipe(files=("a",), pairs=("b",), minutes=5)
    reading, further = stages_with(told)
    assert reading.recipe.minutes + further.recipe.minutes == pytest.approx(5)
    assert (reading.recipe.steps, further.recipe.steps) == (0, 0)
    assert (reading.recipe.ask, further.recipe.ask, further.recipe.base) == (False, True, "reading")
    (alone,) = stages_without(told)
    assert (alone.recipe.minutes, alone.recipe.files, alone.recipe.pairs) == (5, (), ("b",))
    assert [stage.recipe.steps for stage in stages_with(replace(told, minutes=0, steps=70))] == [49, 21]
    untold = stages_with(replace(told, minutes=0))  # and not what each would have alone
    assert sum(stage.recipe.minutes for stage in untold) == pytest.approx(MINUTES)


def test_without_a_form_of_questions_nothing_is_asked_and_that_is_said(
    recipe: PretrainingRecipe, tmp_path: Path
) -> None:
    strange = write_pairs(tmp_path / "names.tsv", [(f"{q.split()[2]} {q.split()[3]}", a) for q, a in PAIRS])
    training = replace(recipe.training, pairs=(strange,))
    found = run_study(replace(recipe, training=training, seeds=1), tmp_path / "out")
    assert any("have no form in common" in note for note in found.notes)
    assert not Run.open(tmp_path / "out" / "seed-0" / "pretrained").info["recipe"]["ask"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"seeds": 0}, "--seeds is 0; give a whole number from 1"),
        ({"training": {"files": ()}}, "needs a corpus and pairs"),
        ({"training": {"pairs": ("-",)}}, "which - cannot give; name files"),
        ({"training": {"base": "runs/x"}}, "leave base and ask out"),
    ],
)
def test_mistakes_are_one_sentence(recipe: PretrainingRecipe, changes: dict[str, Any], sentence: str) -> None:
    if isinstance(changes.get("training"), dict):
        with pytest.raises(UsageError, match=sentence):
            replace(recipe, training=replace(recipe.training, **changes["training"]))
        return
    with pytest.raises(UsageError, match=sentence):
        replace(recipe, **changes)
