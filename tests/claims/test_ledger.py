"""The ledger: rows are chosen by name, run here, and come out as they are said to."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from inkling.claims import gradients as claims_of_gradients
from inkling.claims.bigram import sentences
from inkling.claims.ledger import Claim, Context, Finding, LedgerRow, ledger_table, run, select
from inkling.claims.rows import CLAIMS
from inkling.errors import UsageError
from inkling.models import gradients

KEYS = ["id", "statement", "published", "measured", "verdict", "seconds", "figures"]


def ids(*wanted: str) -> list[str]:
    return [claim.id for claim in select(CLAIMS, wanted)]


def row(name: str) -> LedgerRow:
    (found,) = run(select(CLAIMS, [name]), Context())
    return found


# ------------------------------------------------------------------------------------------------ choosing


def test_ids_are_unique_and_every_claim_says_something() -> None:
    everything = [claim.id for claim in CLAIMS]
    assert len(set(everything)) == len(everything)
    assert all(claim.statement.endswith(".") for claim in CLAIMS)


def test_claims_are_chosen_by_id_or_letter_in_either_case_and_once() -> None:
    assert ids("A2") == ids("a2") == ["A2"]
    assert ids("A") == ids("a") == [claim.id for claim in CLAIMS if claim.id.startswith("A")]
    assert {"A1", "A2", "A3", "A4", "A5"} <= set(ids("A"))
    assert ids("C1", "A3", "c") == ["C1", "A3", *[name for name in ids("C") if name != "C1"]]
    assert ids() == [claim.id for claim in CLAIMS]


@pytest.mark.parametrize("wrong", ["Z9", "A99", "1", "", "A1 "])
def test_a_claim_that_is_not_there_is_answered_with_those_that_are(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"There is no claim '.*'; choose from A1, A2"):
        select(CLAIMS, ["A1", wrong])


# ------------------------------------------------------------------------------------------------ running


@pytest.mark.parametrize(
    ("name", "verdict"), [("A1", "holds"), ("A2", "holds"), ("A3", "corrected"), ("A4", "holds"), ("C1", "holds")]
)
def test_claims_that_need_no_data_come_out_as_they_should(name: str, verdict: str) -> None:
    found = row(name)
    assert (found.id, found.verdict) == (name, verdict)
    assert found.measured
    assert all(math.isfinite(value) for value in found.figures.values())


def test_the_figures_are_those_promised() -> None:
    assert row("A1").figures["largest_relative_error"] <= 1e-12
    assert row("A2").figures["differences"] <= 1e-7
    a3 = row("A3").figures
    assert max(a3["d_x_formula"], a3["true_factors"]) <= 1e-12
    assert a3["published_factors"] > 0.1  # what was written down is far off, not a matter of rounding
    a4 = row("A4").figures
    assert a4["differences"] <= 1e-7
    assert a4["autograd"] <= 1e-12
    assert a4["gradients"] == 5 * 16
    assert row("C1").figures["largest_relative_difference"] <= 1e-12


def test_a_wrong_loss_makes_the_claims_about_it_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    right = gradients.cross_entropy

    def wrong(logits: gradients.Array, targets: gradients.Array) -> object:
        nats, backprop = right(logits, targets)
        return nats * (1 + 1e-9), lambda: backprop() * (1 + 1e-6)

    monkeypatch.setattr(claims_of_gradients, "cross_entropy", wrong)
    monkeypatch.setattr(gradients, "cross_entropy", wrong)
    assert [row(name).verdict for name in ("A1", "A2", "A4")] == ["fails", "fails", "fails"]


def test_the_sixty_digit_cross_entropy_is_right_where_it_can_be_seen() -> None:
    exact = claims_of_gradients._exact_cross_entropy
    assert exact(np.array([1e4, -1e4]), np.array([0.0, 1.0])) == 20_000
    assert exact(np.zeros(4), np.full(4, 0.25)) == pytest.approx(math.log(4), rel=1e-16)


def test_a_claim_without_its_data_is_not_run(tmp_path: Path) -> None:
    for context in (Context(), Context(data=tmp_path)):
        (found,) = run(select(CLAIMS, ["A5"]), context)
        assert found.verdict == "not run"
        assert "--data" in found.measured


def test_a_context_finds_files_of_its_folder_only_if_they_are_there(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    assert Context(data=tmp_path).file("there") == tmp_path / "there"
    assert Context(data=tmp_path).file("not there") is None
    assert Context().file("there") is None


# ------------------------------------------------------------------------------------------------ showing


def test_json_has_exactly_the_promised_keys() -> None:
    for name in ("A1", "A5", "C1"):
        record = row(name).to_json()
        assert list(record) == KEYS
        assert json.loads(json.dumps(record)) == record
        assert record["seconds"] >= 0


def test_rows_are_said_and_yielded_one_by_one() -> None:
    said: list[str] = []
    order: list[str] = []

    def tested(name: str) -> Claim:
        def test(context: Context) -> Finding:
            order.append(name)
            return Finding("seen", "holds")

        return Claim(name, "It is so.", "", test)

    rows = run([tested("X1"), tested("X2")], Context(say=said.append))
    assert next(rows).id == "X1"
    assert (order, said) == (["X1"], ["X1 …"])
    assert next(rows).id == "X2"
    table = ledger_table([LedgerRow("X1", "It is so.", "1", "2", "fails", 1.5, {})])
    assert table.rows == (("X1", "It is so.", "1", "2", "fails", 1.5),)
    assert len(table.columns) == 6


def test_tagged_words_become_lines_of_lower_case_words() -> None:
    tagged = "-DOCSTART-\tX\n\nThe\tDT\nprice\tNN\n\n \nRose\tVB\n"
    assert sentences(tagged) == " the price \n rose \n"
