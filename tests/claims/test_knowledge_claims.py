"""Claims F1–F5 on a small generated world: who is judged by what, and verdicts that follow from the answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inkling.claims import birthplaces, knowledge
from inkling.claims.birthplaces import (
    NAMES,
    Learned,
    Material,
    Plan,
    Way,
    learn,
    material_of,
    nats_per_token,
    stages,
    without_answers,
    without_phrases,
)
from inkling.claims.ledger import Context, Finding, LedgerRow, run, select
from inkling.claims.rows import CLAIMS
from inkling.figures import Table
from inkling.measure.answers import AnswerReport
from inkling.measure.classification import wilson
from inkling.models.baselines import Uniform
from inkling.recipes import pretraining
from inkling.text.tokenise import train_tokeniser
from inkling.text.world import PLACES

PEOPLE = 150  # 30 of them judge


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(birthplaces, "PEOPLE", PEOPLE)
    monkeypatch.setattr(birthplaces, "_KEPT", {})
    yield
    birthplaces.read_material.cache_clear()


def report(material: Material, said: list[str], confidence: float = 0.5, name: str = "model") -> AnswerReport:
    questions = tuple(question for question, _ in material.dev)
    return AnswerReport(name, "x", questions, material.truth, tuple(said), np.full(len(said), confidence))


def told(monkeypatch: pytest.MonkeyPatch, **answers: list[str]) -> Material:
    """The claims, with trainings that led to these answers."""
    material = material_of(Context())

    def learned(context: Context, way: Way) -> Learned:
        nats = () if way == "questions" else (1.5, 2.0)
        return Learned(report(material, answers[way], name=NAMES[way]), nats, 3.0)

    monkeypatch.setattr(knowledge, "learn", learned)
    return material


def mixed(material: Material, right: int, wrong: str = "Atlantis") -> list[str]:
    return [place if i < right else wrong for i, place in enumerate(material.truth)]


def claim(name: str, context: Context | None = None) -> LedgerRow:
    (found,) = run(select(CLAIMS, [name]), context or Context())
    return found


# ------------------------------------------------------------------------------------------------ the material


def test_without_the_data_every_row_says_that_the_world_is_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    material = material_of(Context())
    assert not material.real
    assert (len(material.lines), len(material.train), len(material.dev)) == (150, 120, 30)
    half = mixed(material, 15)
    told(monkeypatch, ours=half, published=half, removed=half, questions=half)
    for row in run(select(CLAIMS, ["F"]), Context()):
        assert "a generated world of 150 people" in row.measured
        assert json.loads(json.dumps(row.to_json()))["id"] == row.id


def test_the_files_of_the_folder_are_read_where_all_are_there(tmp_path: Path) -> None:
    folder = tmp_path / "birthplace"
    folder.mkdir()
    (folder / "wiki.txt").write_text("Ada Oak. Ada Oak was born in Rome .\n", encoding="utf-8")
    (folder / "birth_places_train.tsv").write_text("Where was Bo Elm born?\tParis\nWhere was Cy Fir born?\tOslo\n")
    assert not material_of(Context(tmp_path)).real
    (folder / "birth_dev.tsv").write_text("Where was Ada Oak born?\tRome\n", encoding="utf-8")
    found = material_of(Context(tmp_path))
    assert found.real
    assert found.lines == ("Ada Oak. Ada Oak was born in Rome .",)
    assert found.train == (("Where was Bo Elm born?", "Paris"), ("Where was Cy Fir born?", "Oslo"))
    assert found.dev == (("Where was Ada Oak born?", "Rome"),)
    assert found.subjects == ["Ada Oak"]


def test_every_sentence_that_has_the_answer_is_removed_and_no_other() -> None:
    line = "Ada J. Oak. Oak (born in St. Louis) sang. She left Rome in 1901. St. Louis is far!  She died ."
    assert without_phrases(line, {"St. Louis"}) == "Ada J. Oak. She left Rome in 1901. She died ."
    assert without_phrases(line, {"Rome", ""}) == line.replace(" She left Rome in 1901.", "").replace("  ", " ")
    assert without_phrases(line, {"Paris"}) is line
    pairs = [("Where was Ada Oak born?", "Rome"), ("Where was Bo Elm born?", "Oslo")]
    lines = [
        "Ada Oak. Born in Rome. Lived in Oslo.",
        "Bo Elm. Elm met Ada Oak in Rome. Born in Oslo. He sang.",
        "X. Rome.",
    ]
    assert without_answers(lines, pairs) == ["Ada Oak. Lived in Oslo.", "Bo Elm. He sang.", "X. Rome."]


def test_in_a_world_without_birthplaces_no_line_pairs_name_and_answer() -> None:
    material = material_of(Context())
    lines = without_answers(material.lines, (*material.train, *material.dev))
    removed = replace(material, lines=tuple(lines))
    heard = [knowledge._heard(one, report(one, list(one.truth))).corroboration for one in (material, removed)]
    assert [one.ceiling.value for one in heard if one] == [1.0, 0.0]
    assert [line.split(".")[0] for line in lines] == [line.split(".")[0] for line in material.lines]


def test_each_way_is_what_it_is_called() -> None:
    plan = Plan(3, 5, 2, layers=2, vocabulary=500)
    (alone,) = stages("questions", "d", "p", plan)
    assert (alone.recipe.files, alone.recipe.tokens, alone.recipe.objective) == ((), "character", "question")
    assert (alone.recipe.steps, alone.recipe.layers) == (3, 2)
    first, second = stages("published", "d", "p", plan)
    assert (first.recipe.objective, first.recipe.files, first.recipe.pairs) == ("span-corruption", ("d",), ())
    assert (second.recipe.objective, second.recipe.files, second.recipe.pairs) == ("question", (), ("p",))
    assert (first.recipe.steps, second.recipe.steps, first.recipe.vocabulary) == (5, 2, 500)
    first, second = stages("ours", "d", "p", plan)
    assert (first.recipe.ask, second.recipe.ask, second.recipe.base) == (False, True, "first")
    assert (first.recipe.steps, second.recipe.steps) == (5, 2)
    assert stages("removed", "d", "p", plan) == (first, second)


def test_nats_are_those_of_a_token_of_the_documents() -> None:
    tokeniser = train_tokeniser("character", [["abc .\n"]])
    model = Uniform(tokeniser)
    assert nats_per_token(model, ["a b c.", "ab"]) == pytest.approx(np.log(tokeniser.size))


# ------------------------------------------------------------------------------------------------ verdicts


def test_f1_holds_where_pairs_alone_are_no_better_than_the_commonest_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    material = told(monkeypatch, questions=[])
    told(monkeypatch, questions=mixed(material, 1))
    found = claim("F1")
    share = wilson(1, 30)
    assert found.verdict == "holds"
    assert (found.figures["exact_match"], found.figures["exact_match_high"]) == (share.value, share.high)
    told(monkeypatch, questions=mixed(material, 25))
    assert claim("F1").verdict == "fails"


def test_f2_counts_the_commonest_training_answer_among_the_true_ones() -> None:
    found, material = claim("F2"), material_of(Context())
    answers = [place for _, place in material.train]
    commonest = max(answers, key=answers.count)
    assert found.figures["right"] == list(material.truth).count(commonest)
    assert found.figures["questions"] == 30
    ranks = 1 / np.arange(2, 26)
    assert found.figures["expected"] == pytest.approx(ranks[PLACES.index(commonest)] / ranks.sum())
    assert found.verdict == "holds if"


def test_f3_holds_where_documents_lift_answers_above_the_commonest(monkeypatch: pytest.MonkeyPatch) -> None:
    material = material_of(Context())
    few = mixed(material, 2)
    told(monkeypatch, ours=mixed(material, 24), published=mixed(material, 4), questions=few)
    found = claim("F3")
    assert found.verdict == "holds"
    assert found.figures["exact_match"] == pytest.approx(0.8)
    assert found.figures["published_way"] == pytest.approx(4 / 30)
    assert found.figures["p_against_published_way"] == pytest.approx(2**-19)  # 20 questions, all on one side
    told(monkeypatch, ours=few, published=few, questions=few)
    assert claim("F3").verdict == "fails"


def test_f4_holds_only_where_the_answers_go_with_the_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    material = material_of(Context())
    most, few = mixed(material, 24), mixed(material, 1)
    told(monkeypatch, ours=most, published=few, removed=few)
    found = claim("F4")
    assert found.verdict == "holds"
    assert found.figures["ceiling"] == 1.0
    assert found.figures["without_birthplaces"] == pytest.approx(1 / 30)
    assert (found.figures["ours_nats_before"], found.figures["ours_nats_after"]) == (1.5, 2.0)
    (table,) = [one for one in found.exhibits if isinstance(one, Table) and "forgets" in one.title]
    assert {row[3] for row in table.rows} == {0.5}
    told(monkeypatch, ours=most, published=few, removed=most)  # English alone would do
    assert claim("F4").verdict == "fails"
    told(monkeypatch, ours=few, published=few, removed=few)  # nothing is known that could go
    assert claim("F4").verdict == "fails"


def test_f5_holds_where_who_does_not_know_names_places_that_no_line_has_beside_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    material = material_of(Context())
    places = sorted({place for _, place in material.train})
    lines = {line.split(".")[0]: line for line in material.lines}
    elsewhere = [next(p for p in places if p not in lines[name]) for name in material.subjects]
    most = mixed(material, 27, wrong="Nowhere")
    told(monkeypatch, ours=most, questions=elsewhere)
    found = claim("F5")
    assert found.verdict == "holds"
    assert (found.figures["fluent_alone"], found.figures["made_up_alone"], found.figures["made_up"]) == (1.0, 1.0, 1.0)
    assert found.figures["calibration_error"] == pytest.approx(0.9 - 0.5)
    assert found.figures["calibration_error_alone"] == pytest.approx(0.5)
    assert len(found.exhibits) > 6
    told(monkeypatch, ours=most, questions=["Mumble"] * 30)
    assert claim("F5").verdict == "fails"
    people = zip(material.subjects, material.truth, strict=True)
    homes = [next(p for p in PLACES if p in lines[name] and p != place) for name, place in people]
    told(monkeypatch, ours=most, questions=homes)
    assert claim("F5").figures["made_up_alone"] == 0.0
    assert claim("F5").verdict == "fails"


# ------------------------------------------------------------------------------------------------ trainings


@pytest.mark.slow
def test_trainings_are_done_once_and_judged_without_having_seen_the_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(birthplaces, "PEOPLE", 60)
    plan = Plan(3, 40, 4, layers=1, width=32, batch=3, vocabulary=400)
    monkeypatch.setattr(birthplaces, "GENERATED_PLAN", plan)
    read: list[str] = []
    trained = pretraining.train_stages

    def watched(chain: object, folder: Path) -> object:
        read.extend(path.read_text(encoding="utf-8") for path in sorted(folder.glob("pairs.jsonl")))
        return trained(chain, folder)  # type: ignore[arg-type]

    monkeypatch.setattr(birthplaces, "train_stages", watched)
    said: list[str] = []
    context = Context(say=said.append)
    found: dict[Way, Learned] = {way: learn(context, way) for way in ("questions", "ours", "published", "removed")}
    assert learn(context, "ours") is found["ours"]
    assert sum("steps …" in line for line in said) == 4
    material = material_of(context)
    assert len(read) == 4
    assert not [question for question, _ in material.dev if any(question in text for text in read)]
    for way, one in found.items():
        assert len(one.report.said) == len(material.dev) == 12
        assert len(one.nats) == (0 if way == "questions" else 2)
        assert all(0 < nats < 8 for nats in one.nats)
    monkeypatch.setattr(birthplaces, "GENERATED_PLAN", replace(plan, question_steps=4))
    assert learn(context, "questions") is not found["questions"]


def test_a_finding_is_a_row_of_the_ledger() -> None:
    assert [one.id for one in CLAIMS if one.id.startswith("F")] == ["F1", "F2", "F3", "F4", "F5"]
    assert isinstance(knowledge.always_commonest(Context()), Finding)


@pytest.mark.data
@pytest.mark.skipif("INKLING_TEST_DATA" not in os.environ, reason="INKLING_TEST_DATA names no folder of real sets")
def test_f2_and_the_ceiling_are_exactly_those_published() -> None:
    data = Path(os.environ["INKLING_TEST_DATA"])
    found = claim("F2", Context(data))
    assert (found.verdict, found.figures["right"], found.figures["questions"]) == ("holds", 25, 500)
    material = material_of(Context(data))
    heard = knowledge._heard(material, report(material, list(material.truth))).corroboration
    assert heard is not None
    assert heard.right_corroborated == 479
    left = replace(material, lines=tuple(without_answers(material.lines, (*material.train, *material.dev))))
    after = knowledge._heard(left, report(left, list(left.truth))).corroboration
    assert after is not None
    assert after.right_corroborated <= 10  # in the name itself, or where sentences meet
