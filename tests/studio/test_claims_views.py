"""What stands beside a claim is the source itself, and rows of the ledger run one after the other."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from inkling.claims import gradients
from inkling.claims.ledger import Claim, Context, Finding, run, select
from inkling.claims.rows import CLAIMS
from inkling.errors import InklingError
from inkling.studio import tasks_claims
from inkling.studio.ledger import Ledger
from inkling.studio.views_claims import derivation, figures_table, groups


def claim(name: str) -> Claim:
    (found,) = select(CLAIMS, [name])
    return found


def test_every_claim_has_a_derivation_and_the_code_of_its_test() -> None:
    for one in CLAIMS:
        found = derivation(one)
        assert found.words[0].place == one.test.__module__
        assert found.words[0].text
        assert found.code[0].text == inspect.getsource(one.test).rstrip()


def test_the_formulas_and_the_functions_that_are_called_stand_there_too() -> None:
    found = derivation(claim("A1"))
    assert [passage.place for passage in found.words] == ["inkling.claims.gradients", "inkling.models.gradients"]
    assert "∂J/∂θ = (Σᵢ yᵢ) softmax(θ) − y" in found.words[1].text
    exact = inspect.getsource(gradients._exact_cross_entropy).rstrip()
    assert [passage.text for passage in found.code[1:]] == [exact]


def test_a_function_that_remembers_its_results_is_shown_as_it_is_written() -> None:
    assert "inkling.claims.mistakes.train_networks" in [passage.place for passage in derivation(claim("D5")).code]


def test_rows_are_grouped_by_letter_and_none_is_lost() -> None:
    found = groups(CLAIMS)
    assert [title[0] for title in found] == ["A", "B", "C", "D", "E", "F"]
    assert [one for together in found.values() for one in together] == list(CLAIMS)


def test_a_claim_that_needs_data_says_before_what_it_says_when_run_without() -> None:
    needing = [one for one in CLAIMS if one.needs]
    assert {one.id for one in needing} >= {"A5", "C2", "C3", "C4", "D1", "D2", "D3", "D4", "D5"}
    for row, one in zip(run(needing, Context()), needing, strict=True):
        assert (row.verdict, row.measured) == ("not run", one.needs)


def test_the_task_gives_each_row_as_the_command_line_does_with_its_pictures() -> None:
    parts: list[dict[str, Any]] = []

    def say(done: float | None, sentence: str, part: Any = None) -> None:
        if part is not None:
            parts.append(part)

    assert tasks_claims.claim({"ids": ["C1", "E4"]}, say) == ["C1", "E4"]
    rows = list(run([claim("C1"), claim("E4")], Context()))
    assert [part["figures"] for part in parts] == [dict(row.figures) for row in rows]
    assert [len(part["exhibits"]) for part in parts] == [len(row.exhibits) for row in rows]
    assert figures_table(parts[0]).rows == tuple(rows[0].figures.items())


# ------------------------------------------------------------------------------------------------ one after the other


def made(name: str) -> Claim:
    def test(context: Context) -> Finding:
        raise AssertionError("runs in a child")

    test.__module__ = f"module.{name[0]}"
    return Claim(name, "It is so.", "", test)


class Pretended:
    """A child that gives its rows when it is let."""

    begun: ClassVar[list[Pretended]] = []

    def __init__(
        self,
        job: str,
        arguments: dict[str, Any],
        on_progress: Callable[[float | None, str], None],
        on_part: Callable[[Any], None],
    ) -> None:
        self.ids, self.on_progress, self.on_part = arguments["ids"], on_progress, on_part
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.begun.append(self)

    async def result(self) -> None:
        await self.over

    def cancel(self) -> None:
        if not self.over.done():
            self.over.set_exception(InklingError("This was cancelled."))

    def gives(self, name: str) -> None:
        self.on_part({"id": name, "verdict": "holds"})


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[Pretended]:
    from inkling.studio import work

    monkeypatch.setattr(work, "Child", Pretended)
    monkeypatch.setattr(Pretended, "begun", [])
    return Pretended.begun


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_rows_of_one_module_share_a_child_and_come_in_one_by_one(children: list[Pretended]) -> None:
    async def story() -> None:
        ledger = Ledger()
        for name in ("X1", "Y1", "X2"):
            ledger.want(made(name))
        await settle()
        assert [ledger.state(name) for name in ("X1", "Y1", "X2")] == ["running", "waiting", "waiting"]
        children[-1].gives("X1")
        assert [ledger.state(name) for name in ("X1", "Y1", "X2")] == ["holds", "waiting", "running"]
        children[-1].gives("X2")
        await settle()
        assert [child.ids for child in children] == [["X1", "X2"], ["Y1"]]
        children[-1].gives("Y1")
        await settle()
        assert ledger.running is None
        assert set(ledger.rows) == {"X1", "X2", "Y1"}

    asyncio.run(story())


def test_a_cancelled_row_ends_its_child_and_the_others_are_begun_again(children: list[Pretended]) -> None:
    async def story() -> None:
        ledger = Ledger()
        ledger.want(made("X1"))
        ledger.want(made("X2"))
        await settle()
        ledger.cancel("X1")
        await settle()
        assert [child.ids for child in children] == [["X1", "X2"], ["X2"]]
        assert (ledger.state("X1"), ledger.state("X2")) == ("no result", "running")
        assert ledger.troubles == {"X1": "This was cancelled."}
        ledger.cancel_all()
        await settle()
        assert (ledger.running, ledger.waiting) == (None, [])

    asyncio.run(story())


def test_a_row_that_is_no_longer_wanted_is_not_run_by_the_child_it_was_given_to(children: list[Pretended]) -> None:
    async def story() -> None:
        ledger = Ledger()
        for name in ("X1", "X2", "X3"):
            ledger.want(made(name))
        await settle()
        ledger.cancel("X2")
        children[-1].gives("X1")
        await settle()
        assert [child.ids for child in children] == [["X1", "X2", "X3"], ["X3"]]
        assert (ledger.state("X2"), ledger.state("X3")) == ("", "running")
        ledger.cancel_all()
        await settle()

    asyncio.run(story())
