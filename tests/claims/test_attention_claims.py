"""Claims E1 to E10: they come out as they should, in time, and not when a formula is wrong."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from inkling.attention import exact as exact_module
from inkling.attention import laboratory
from inkling.attention.case import Case
from inkling.claims import attention as claims
from inkling.claims.ledger import Context, LedgerRow, run, select
from inkling.claims.rows import CLAIMS
from inkling.figures import Table

VERDICTS = {
    "E1": "holds",
    "E2": "corrected",
    "E3": "holds",
    "E4": "holds",
    "E5": "holds",
    "E6": "corrected",
    "E7": "holds if",
    "E8": "corrected",
    "E9": "holds",
    "E10": "holds",
}


@pytest.fixture(scope="module")
def rows() -> dict[str, LedgerRow]:
    return {row.id: row for row in run(select(CLAIMS, ["E"]), Context())}


def test_all_ten_come_out_as_they_should_and_soon(rows: dict[str, LedgerRow]) -> None:
    assert {name: row.verdict for name, row in rows.items()} == VERDICTS
    assert sum(row.seconds for row in rows.values()) < 60


def test_every_row_has_figures_that_agree_and_a_table(rows: dict[str, LedgerRow]) -> None:
    for row in rows.values():
        assert json.loads(json.dumps(row.to_json(), allow_nan=False))["id"] == row.id
        assert row.figures["largest_deviation_standard_errors"] <= 4
        assert any(isinstance(exhibit, Table) for exhibit in row.exhibits)
        pairs = [name for name in row.figures if name.endswith("(exact)")]
        assert pairs
        assert all(f"{name.removesuffix('(exact)')}(simulated)" in row.figures for name in pairs)
        assert "nan" not in row.measured


def test_what_is_measured_is_what_was_published_or_its_correction(rows: dict[str, LedgerRow]) -> None:
    assert "12.52% exact" in rows["E2"].measured
    assert rows["E2"].figures["aligned_weight"] == pytest.approx(math.e / (math.e + 19))
    assert "15.9% exact" in rows["E7"].measured
    assert "7.9% exact" in rows["E7"].measured
    assert "from 0.250 to 0.018" in rows["E7"].measured
    assert "from 0.500 to 0.461" in rows["E7"].measured
    assert rows["E5"].figures["power_of_alpha"] == pytest.approx(0.5, abs=0.01)
    assert "β√α/2" in rows["E5"].measured
    assert rows["E6"].figures["variance of the score of a (exact)"] == pytest.approx(100 * (2e-4 + 0.5))
    assert rows["E6"].figures["variance of the score of b (exact)"] == pytest.approx(0.02)
    assert rows["E6"].figures["share_at_gamma_1.2"] == pytest.approx(1 / (1 + math.exp(-2)))
    assert rows["E8"].figures["variance_two_heads"] == pytest.approx(rows["E8"].figures["variance_one_head"])
    assert rows["E9"].figures["least_distance"] > 1
    assert rows["E10"].figures["error_c1"] < 0.01


def scaled(factor: float) -> Callable[..., Any]:
    """What makes a function's numbers wrong by a factor."""
    return lambda function: lambda *given, **named: function(*given, **named) * factor


def changed(name: str, factor: float) -> Callable[..., Any]:
    """The same for one field of what a function finds."""

    def wrong(function: Callable[..., Any]) -> Callable[..., Any]:
        def act(*given: Any, **named: Any) -> Any:
            found = function(*given, **named)
            return dataclasses.replace(found, **{name: getattr(found, name) * factor})

        return act

    return wrong


def blunter(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda components, inputs, wishes, sharpness, **named: function(
        components, inputs, wishes, 0.999 * sharpness, **named
    )


WRONG: list[tuple[str, Any, str, Callable[..., Any]]] = [
    ("E1", claims, "softmax", scaled(1.01)),
    ("E2", claims, "margin_bound", scaled(1.001)),
    ("E2", claims, "softmax", scaled(1.01)),
    ("E3", claims, "extract", changed("M", 1.001)),
    ("E4", claims, "average", changed("weights", 1.001)),
    ("E5", exact_module, "weight_moments", changed("variances", 1.1)),
    ("E6", exact_module, "weight_moments", changed("means", 1.02)),
    ("E6", Case, "scale", lambda _: 1.01),
    ("E7", claims, "failure_formula", scaled(1.001)),
    ("E7", exact_module, "share_below", scaled(1.001)),
    ("E8", exact_module, "weight_moments", changed("variances", 0.5)),
    ("E9", claims, "identity_verdict", changed("weights", 1.001)),
    ("E10", claims, "design", blunter),
]


@pytest.mark.parametrize(("name", "where", "what", "wrong"), WRONG, ids=[f"{one[0]} {one[2]}" for one in WRONG])
def test_a_row_fails_when_something_it_rests_on_is_wrong(
    name: str, where: Any, what: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "SAMPLES", 50_000)
    (claim,) = select(CLAIMS, [name])
    monkeypatch.setattr(where, what, wrong(getattr(where, what)))
    assert claim.test(Context()).verdict == "fails"


@pytest.mark.parametrize("name", VERDICTS)
def test_with_as_few_samples_and_nothing_wrong_it_does_not_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "SAMPLES", 50_000)
    (claim,) = select(CLAIMS, [name])
    assert claim.test(Context()).verdict == VERDICTS[name]


def test_heads_that_average_out_would_fail_e8(monkeypatch: pytest.MonkeyPatch) -> None:
    def halved(case: Case, *more: Any) -> exact_module.Exact:
        found = exact_module.exact(case, *more)
        return dataclasses.replace(found, coefficient_variances=found.coefficient_variances / case.heads)

    monkeypatch.setattr(claims, "SAMPLES", 50_000)
    monkeypatch.setattr(laboratory, "exact", halved)
    (claim,) = select(CLAIMS, ["E8"])
    assert claim.test(Context()).verdict == "fails"
