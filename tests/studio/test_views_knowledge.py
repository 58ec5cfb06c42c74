"""What a run learned from is found again only if nothing changed; answers, names and lines as the page shows them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from inkling.errors import InklingError
from inkling.runs.run import Run
from inkling.studio.naming import call, calling
from inkling.studio.tasks_knowledge import cut_around, lines_about
from inkling.studio.views_knowledge import ask, mark_line, recall, say_heard, subject

LIVES = "Ada Oak was born in Rome.\nBo Elm, from Oslo.\nAda Oak died in Oslo.\n"
PAIRS = "Where was Ada Oak born?\tRome\nWhere was Bo Elm born?\tOslo\n"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "lives.txt").write_text(LIVES)
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    data = {
        "bytes": len(LIVES),
        "sha256": hashlib.sha256(LIVES.encode()).hexdigest(),
        "pairs_sha256": hashlib.sha256(PAIRS.encode()).hexdigest(),
    }
    return Run(tmp_path / "runs" / "lives", {"recipe": {"files": ["lives.txt"], "pairs": ["pairs.tsv"]}, "data": data})


def test_what_a_run_learned_from_is_found_beside_its_folder(run: Run, tmp_path: Path) -> None:
    found = recall(run, [tmp_path / "elsewhere", tmp_path])
    assert found.documents.paths == (str(tmp_path / "lives.txt"),)
    assert found.documents.names == "lives.txt"
    assert found.pairs.paths == (str(tmp_path / "pairs.tsv"),)
    assert found.asked == {"Where was Ada Oak born?": "Rome", "Where was Bo Elm born?": "Oslo"}


@pytest.mark.parametrize("text", [LIVES + "More.\n", LIVES.replace("Rome", "Bonn")])
def test_a_file_that_changed_is_not_used(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "lives.txt").write_text(text)
    (tmp_path / "pairs.tsv").write_text(PAIRS.replace("Rome", "Bonn"))
    found = recall(run, [tmp_path])
    assert found.documents.paths == found.pairs.paths == ()
    assert found.documents.missing == "lives.txt has changed since"
    assert found.pairs.missing == "pairs.tsv has changed since"
    assert not found.asked


def test_a_file_that_is_gone_or_was_never_one_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "lives.txt").unlink()
    run.info["recipe"]["pairs"] = ["-"]
    found = recall(run, [tmp_path])
    assert found.documents.missing == "lives.txt is no longer there"
    assert found.pairs.missing == "they came through standard input"
    run.info["recipe"]["files"] = ["/dev/zero"]
    assert recall(run, [tmp_path]).documents.missing == "zero is no longer there"
    run.info["recipe"]["files"] = []
    assert recall(run, [tmp_path]).documents.missing == "the run names none"


def test_the_template_of_known_questions_says_what_one_is_about() -> None:
    known = ["Where was Ada Oak born?", "Where was Bo Elm born?", "Where was Cy Fir born?"]
    assert subject(" Where was Dee Ash born? ", known) == "Dee Ash"
    assert subject("Who?", known) == ""
    assert subject("Where was Dee Ash born?", []) == ""


@pytest.mark.parametrize("question", ["", "  ", "a\nb", "a\x1ab"])
def test_what_cannot_be_asked_is_refused_before_a_model_is(question: str) -> None:
    with pytest.raises(InklingError, match=r"write one|take it out"):
        ask(None, question, 1)


def said(heard: dict[str, Any], answer: str) -> str:
    return say_heard(heard, "lives.txt", "Ada Oak", answer)


def test_a_corpus_says_which_answers_stand_beside_the_name(tmp_path: Path) -> None:
    (tmp_path / "lives.txt").write_text(LIVES)
    arguments = {"corpus": [str(tmp_path / "lives.txt")], "subject": "Ada Oak", "phrases": ["Rome", "Bonn", "Oslo"]}
    heard = lines_about(arguments, lambda done, sentence: None)
    assert heard == {
        "line_count": 3,
        "named": 2,
        "lines": ["Ada Oak was born in Rome.", "Ada Oak died in Oslo."],
        "beside": ["Rome", "Oslo"],
    }
    assert said(heard, "Rome").startswith("2 of 3 lines of lives.txt have “Ada Oak”, and “Rome” stands beside it")
    assert "stands in none of them" in said(heard, "Bonn")
    nobody = lines_about({**arguments, "subject": "Eve Yew"}, lambda done, sentence: None)
    assert nobody["named"] == 0
    assert say_heard(nobody, "lives.txt", "Eve Yew", "Rome").startswith("No line of lives.txt has “Eve Yew”")


def test_a_line_is_marked_where_name_answer_and_others_stand() -> None:
    pieces = mark_line("Ada Oak (1912 Rome - 1956 Oslo).", "Ada Oak", "Rome", ["Oslo", "Rome West", ""])
    assert "".join(piece.text for piece in pieces) == "Ada Oak (1912 Rome - 1956 Oslo)."
    assert {piece.text: piece.shade for piece in pieces if piece.shade} == {"Ada Oak": "u", "Rome": "f3", "Oslo": "a2"}
    assert [piece.text for piece in mark_line("a painter in Rome", "", "in")] == ["a painter ", "in", " Rome"]
    assert [piece.text for piece in mark_line("a.b", "", "")] == ["a.b"]
    assert [piece.shade for piece in mark_line("a+b", "", "+")] == ["", "f3", ""]  # letters, not a pattern


def test_a_long_line_is_cut_around_the_name() -> None:
    line = "x" * 5000 + "Ada Oak" + "y" * 5000
    cut = cut_around(line, "Ada Oak", 100)
    assert "Ada Oak" in cut
    assert len(cut) == 104
    assert cut_around("short", "s") == "short"


def test_files_that_came_are_called_by_the_name_they_came_with() -> None:
    names = {"/somewhere/0123456789abcdef.tsv": "my <b>.tsv"}
    assert call("/somewhere/0123456789abcdef.tsv: bad; 0123456789abcdef.tsv row 3", names) == (
        "my <b>.tsv: bad; my <b>.tsv row 3"
    )
    with pytest.raises(InklingError, match=r"^my <b>\.tsv is empty\.$"), calling(names):
        raise InklingError("/somewhere/0123456789abcdef.tsv is empty.")
