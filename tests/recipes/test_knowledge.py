"""Documents and pairs from the inside: what is learned from, what is asked, and runs that begin from other runs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inkling.errors import InklingError, UsageError
from inkling.models.answering import Answer, answer_prompts
from inkling.models.gpt_loss import IGNORED
from inkling.models.gpt_model import Transformer
from inkling.recipes import asking, knowledge
from inkling.recipes.asking import ask_itself, question_form
from inkling.recipes.evaluation import EvaluationRecipe, evaluate_runs
from inkling.recipes.knowledge import (
    ASKED_FILE,
    KnowledgeRecipe,
    prepare,
    read_asked,
    resume_knowledge,
    train_knowledge,
    write_asked,
)
from inkling.recipes.ngram import NGramRecipe, train_ngram
from inkling.runs.loading import load
from inkling.runs.recording import read
from inkling.runs.run import Run
from inkling.text.questions import MARK
from inkling.text.world import biographies

WORLD = biographies(np.random.default_rng(2), 60)
HELD_OUT = dict(WORLD.pairs_held_out)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("knowledge")
    (folder / "lives.txt").write_text(WORLD.text, encoding="utf-8")
    (folder / "pairs.tsv").write_text("".join(f"{q}\t{a}\n" for q, a in WORLD.pairs_train), encoding="utf-8")
    for _ in train_knowledge(told(folder, steps=60), folder / "reader"):
        pass
    return folder


def told(lab: Path, **changes: Any) -> KnowledgeRecipe:
    recipe = KnowledgeRecipe(
        files=(str(lab / "lives.txt"),),
        pairs=(str(lab / "pairs.tsv"),),
        vocabulary=400,
        layers=1,
        width=32,
        context=96,
        batch=4,
        steps=8,
        precision="float32",
    )
    return replace(recipe, **changes)


def trained(recipe: KnowledgeRecipe, out: Path, until: int | None = None) -> Run:
    steps = train_knowledge(recipe, out)
    for _, step in steps:
        if step.step == until:
            steps.close()  # what Ctrl-C does
            break
    return Run.open(out)


def tensors(run: Run) -> dict[str, torch.Tensor]:
    return read(run.weights().read_bytes())


# ------------------------------------------------------------------------------------------------ trainings


def test_it_learns_from_all_documents_and_says_so(lab: Path) -> None:
    run = Run.open(lab / "reader")
    summary, data = run.info["summary"], run.info["data"]
    assert run.finished
    assert (summary["documents"], summary["pairs"], summary["steps"]) == (60, 48, 60)
    assert data["held_out"] == "nothing"
    assert data["pairs"]["rows"] == 48
    rows = run.metrics()
    means = [sum(row["nats"] for row in part) / sum(row["tokens"] for row in part) for part in (rows[:10], rows[-10:])]
    assert means[1] < 0.7 * means[0]


@pytest.mark.parametrize(
    ("given", "mixture"),
    [
        ({}, knowledge.WITH_PAIRS),
        ({"pairs": ()}, "span-corruption"),
        ({"files": ()}, "question"),
        ({"base": "reader"}, knowledge.FINETUNED_WITH_DOCUMENTS),
        ({"base": "reader", "files": ()}, "question"),
        ({"objective": "next=2,question"}, "next=2,question"),
    ],
)
def test_the_mixture_is_chosen_by_what_is_given(lab: Path, given: dict[str, Any], mixture: str) -> None:
    if "base" in given:
        given = given | {"base": str(lab / given["base"])}
    assert prepare(told(lab, **given)).recipe.objective == mixture


def test_questions_about_nobody_in_the_documents_are_learned_without_reading(lab: Path, tmp_path: Path) -> None:
    strangers = tmp_path / "strangers.tsv"
    strangers.write_text("Where was Cleo Foo born?\tZell\nWhere was Otto Bar born?\tMarrow\n", encoding="utf-8")
    assert "reading" not in prepare(told(lab, pairs=(str(strangers),))).recipe.objective


def test_resuming_gives_the_same_bits(lab: Path, tmp_path: Path) -> None:
    recipe = told(lab, dropout=0.1, decay=0.1)
    whole = trained(recipe, tmp_path / "whole")
    broken = trained(recipe, tmp_path / "part", until=3)
    assert not broken.finished
    assert [step.step for _, step in resume_knowledge(broken)] == list(range(4, 9))
    resumed = tensors(Run.open(tmp_path / "part"))
    assert all(torch.equal(value, resumed[name]) for name, value in tensors(whole).items())


def test_what_it_asked_itself_is_kept_and_resumed_from(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = told(lab, base=str(lab / "reader"), ask=True)
    asked = [(question, place) for question, place in zip(HELD_OUT, ["Velden", "Zell", "Marrow"] * 4, strict=True)]
    monkeypatch.setattr(knowledge, "ask_itself", lambda *_: asked)
    whole = trained(recipe, tmp_path / "whole")
    assert whole.info["summary"]["asked"] == len(asked)
    assert "asked=" in whole.info["recipe"]["objective"]
    broken = trained(recipe, tmp_path / "part", until=3)
    assert read_asked(broken.path) == asked
    monkeypatch.setattr(knowledge, "ask_itself", pytest.fail)  # it has asked already
    for _ in resume_knowledge(broken):
        pass
    resumed = tensors(Run.open(tmp_path / "part"))
    assert all(torch.equal(value, resumed[name]) for name, value in tensors(whole).items())
    assert (whole.path / ASKED_FILE).read_bytes() == (tmp_path / "part" / ASKED_FILE).read_bytes()


def test_a_run_without_an_answer_of_its_own_can_be_gone_on_with(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge, "ask_itself", lambda *_: [])
    broken = trained(told(lab, base=str(lab / "reader"), ask=True), tmp_path / "part", until=3)
    assert "asked=" not in broken.info["recipe"]["objective"]
    assert len(list(resume_knowledge(broken))) == 5


def test_answers_of_any_kind_come_back_as_they_were(tmp_path: Path) -> None:
    asked = [('Where was "X\tY" born?', "Île-de-\tFrance"), ("a", "'\"")]
    (tmp_path / ASKED_FILE).write_bytes(write_asked(asked))
    assert read_asked(tmp_path) == asked


def test_a_training_begins_with_the_weights_sizes_and_tokens_of_its_base(lab: Path, tmp_path: Path) -> None:
    base = Run.open(lab / "reader")
    recipe = KnowledgeRecipe(
        pairs=(str(lab / "pairs.tsv"),), base=str(base.path), batch=4, steps=4, precision="float32"
    )
    broken = trained(recipe, tmp_path / "further", until=1)
    first = read((broken.path / "checkpoints" / "step-000000000" / "model.safetensors").read_bytes())
    assert first.keys() == tensors(base).keys()
    assert all(torch.equal(value, first[name]) for name, value in tensors(base).items())
    for name in ("config.json", "tokenizer.json"):
        assert (broken.path / name).read_bytes() == (base.path / name).read_bytes()
    assert prepare(recipe).recipe.rate == pytest.approx(knowledge.RATE * knowledge.AGAIN)
    assert not all(torch.equal(value, first[name]) for name, value in tensors(broken).items())


@pytest.mark.slow
def test_the_run_opens_in_transformers(lab: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    theirs, tokenizer = (
        AutoModelForCausalLM.from_pretrained(lab / "reader"),
        AutoTokenizer.from_pretrained(lab / "reader"),
    )
    ours = load(lab / "reader")
    assert isinstance(ours, Transformer)
    text = f"{WORLD.pairs_train[0][0]}{MARK} Velden\n"
    ids = ours.tokeniser.encode([text]).ids.tolist()
    assert tokenizer(text, add_special_tokens=False)["input_ids"] == ids
    with torch.no_grad():
        logits = theirs(torch.tensor([[ours.tokeniser.begin, *ids]])).logits[0, :-1]
    nats = -torch.log_softmax(logits.double(), dim=1)[torch.arange(len(ids)), ids]
    np.testing.assert_allclose(ours.score([text]).nats, nats.numpy(), atol=1e-5)


# ------------------------------------------------------------------------------------------------ asking


def test_the_form_of_a_question_is_what_stands_around_its_subject() -> None:
    born = [f"Where was {name} born?" for name in ("Ada Oak", "Bo Elm", "Cy Fir", "Di Ash")]
    assert question_form(born) == ("Where was ", " born?")
    assert question_form([*born, "Who is Ed Yew?"]) == ("Where was ", " born?")
    with pytest.raises(UsageError, match="have no form in common"):
        question_form(["Ada Oak", "Bo Elm", "Cy Fir"])


def test_it_asks_about_documents_that_no_pair_is_about_and_takes_its_own_answers(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(lab / "reader")
    assert isinstance(model, Transformer)
    lines = [*WORLD.text.splitlines(), "A head without a body"]
    given: list[list[int]] = []
    answer = answer_prompts

    def heard(model: Any, prompts: list[list[int]], config: Any) -> Any:
        given.extend(prompts)
        return answer(model, prompts, config)

    monkeypatch.setattr(asking, "answer_prompts", heard)
    said: list[str] = []
    found = ask_itself(model, lines, WORLD.pairs_train, said.append)
    assert len(given) == len(HELD_OUT) == 12
    assert f"Asked itself 12 questions about documents, and has an answer to {len(found)} of them." in said
    bodies = {line.split(".")[0]: line for line in lines}
    for ids in given:  # the book is open, and the question stands behind it; nothing else is told
        document, _, _ = (text := ids_text(model, ids)).partition("Where was ")
        name = document.strip().split(".")[0]
        assert f" {bodies[name]}".startswith(document)  # as much of it as there is room for
        assert text == f"{document}Where was {name} born?{MARK}"
        assert f"Where was {name} born?" in HELD_OUT
    greedy = {ids_text(model, ids): one.text for ids, one in zip(given, answer(model, given, None), strict=True)}
    assert found
    for question, said_itself in found:
        (own,) = [text for prompt, text in greedy.items() if prompt.endswith(f"{question}{MARK}")]
        assert said_itself == own.strip()


def ids_text(model: Transformer, ids: list[int]) -> str:
    return b"".join(model.tokeniser.piece(token) for token in ids).decode()


def test_answers_that_do_not_end_or_are_empty_are_not_learned(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(lab / "reader")
    assert isinstance(model, Transformer)
    answers = [Answer("Velden", -1.0), Answer(" ", -1.0), Answer("Zell", -1.0, ended=False)] * 4
    monkeypatch.setattr(asking, "answer_prompts", lambda *_: answers)
    found = ask_itself(model, WORLD.text.splitlines(), WORLD.pairs_train)
    assert [place for _, place in found] == ["Velden"] * 4


def test_questions_are_read_like_documents_and_so_by_whoever_goes_on(lab: Path, tmp_path: Path) -> None:
    low = trained(told(lab, normalise="lower", tokens="character", vocabulary=0, steps=2), tmp_path / "low")
    further = prepare(told(lab, base=str(low.path), files=()))
    assert (further.recipe.normalise, further.recipe.tokens) == ("lower", "character")
    model = further.model(further.objective.parameters)
    assert isinstance(model, Transformer)
    places = {question.lower(): place for question, place in WORLD.pairs_train}
    for row in further.batch(0).inputs:
        question, _, said = ids_text(model, row.tolist()).partition(MARK)
        assert said.startswith(f" {places[question.strip()]}")  # what is said keeps its letters


def test_the_card_tells_texts_pairs_and_what_the_training_began_from(lab: Path, tmp_path: Path) -> None:
    run = trained(told(lab, base=str(lab / "reader"), files=(), steps=1), tmp_path / "further")
    card = (run.path / "README.md").read_text(encoding="utf-8")
    digest = hashlib.sha256((lab / "pairs.tsv").read_bytes()).hexdigest()
    assert f"`{lab / 'pairs.tsv'}`: 48 questions with answers,\nSHA-256 `{digest}`.\n" in card
    assert f"It began with the weights of `{lab / 'reader'}`.\n" in card
    assert "None" not in card.partition("## Use")[0]
    first = (lab / "reader" / "README.md").read_text(encoding="utf-8")
    assert f"`{lab / 'lives.txt'}`: 60 rows" in first
    assert "It began" not in first


def test_all_documents_are_looked_through_for_the_text_of_a_measurement(lab: Path, tmp_path: Path) -> None:
    last = tmp_path / "last.txt"  # what of running text would be held out
    last.write_text("".join(WORLD.text.splitlines(keepends=True)[-5:]), encoding="utf-8")
    found = evaluate_runs(EvaluationRecipe((str(lab / "reader"),), (str(last),), baselines=False, overlap=True))
    assert found.overlaps[0].exact_share == 1.0


def test_a_single_document_is_enough(lab: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.txt"
    one.write_text(WORLD.text.splitlines()[0], encoding="utf-8")
    assert prepare(told(lab, files=(str(one),), objective="recall")).figures["documents"] == 1


def test_a_context_with_little_room_still_teaches_something(lab: Path) -> None:
    prepared = prepare(told(lab, objective="naming,recall", context=3, batch=60))
    for step in range(16):
        assert (prepared.batch(step).targets != IGNORED).any(axis=1).all()


# ------------------------------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"files": (), "pairs": ()}, "nothing to learn from; give documents, or pairs"),
        ({"ask": True}, "--ask needs a run that can read"),
        ({"held_out": ("x.txt",)}, "--held-out is for running text"),
        ({"objective": "dream"}, "--objective has the part 'dream'"),
        ({"pairs": (), "objective": "question"}, "needs questions and answers; give them with --pairs"),
        ({"files": (), "objective": "next"}, "no documents to learn from"),
        ({"objective": "asked"}, "no questions that the model asked itself"),
        ({"tokens": "word", "vocabulary": 50}, "word tokens have none for the mark"),
        ({"normalise": "letters"}, "--normalise letters removes the mark"),
    ],
)
def test_a_mistake_is_one_sentence(lab: Path, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        prepare(told(lab, **changes))


def test_only_a_transformer_with_the_same_reading_can_be_a_base(lab: Path, tmp_path: Path) -> None:
    train_ngram(NGramRecipe(files=(str(lab / "lives.txt"),), vocabulary=300), tmp_path / "counts")
    with pytest.raises(InklingError, match=r"counts is a ngram, and only a transformer can be trained further"):
        prepare(told(lab, base=str(tmp_path / "counts")))
    with pytest.raises(UsageError, match=r"reads text behind '.*'; leave --normalise out"):
        prepare(told(lab, base=str(lab / "reader"), normalise="lower"))


@pytest.mark.parametrize("name", ["lives.txt", "pairs.tsv"])
def test_changed_files_are_noticed(lab: Path, tmp_path: Path, name: str) -> None:
    copies = {which: tmp_path / which for which in ("lives.txt", "pairs.tsv")}
    for which, path in copies.items():
        path.write_bytes((lab / which).read_bytes())
    recipe = told(lab, files=(str(copies["lives.txt"]),), pairs=(str(copies["pairs.tsv"]),))
    broken = trained(recipe, tmp_path / "run", until=2)
    copies[name].write_bytes((lab / name).read_bytes() + b"Who was Di Ash?\tZell\n")
    with pytest.raises(InklingError, match=rf"{name} is not the text that .* was trained on"):
        next(resume_knowledge(broken))
