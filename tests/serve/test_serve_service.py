"""The service without a server around it: what happens when there is too much to do, or something fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from torch import Tensor

from inkling.serve.app import Counted, Service
from inkling.serve.limits import Limits
from inkling.serve.shelf import Opened, open_runs

pytestmark = pytest.mark.xdist_group("serve")
LONG = {"model": "writer", "max_tokens": 100_000}


@pytest.fixture(scope="module")
def opened(runs: Path) -> list[Opened]:
    return open_runs([runs / "writer", runs / "verdicts"])


@asynccontextmanager
async def asking(
    opened: Sequence[Opened], failures: list[BaseException] | None = None, **limits: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, Service]]:
    complaints = [] if failures is None else failures
    service = Service(opened, Limits(max_tokens=10**6, **limits), complaints.append)
    service.start(asyncio.get_running_loop())
    transport = httpx.ASGITransport(Counted(service, service))
    async with httpx.AsyncClient(transport=transport, base_url="http://here", timeout=60) as client:
        try:
            yield client, service
        finally:
            service.close()


async def writes(service: Service, texts: int, waiting: int) -> None:
    assert service.shelf is not None
    engine = service.shelf.language["writer"].engine
    async with asyncio.timeout(30):
        while (engine.active, engine.depth) != (texts, waiting):
            await asyncio.sleep(0.001)


def test_beyond_the_queue_requests_are_put_off_and_later_taken(opened: list[Opened]) -> None:
    async def run() -> None:
        async with asking(opened, batch=1, queue=1) as (client, service):
            first = asyncio.create_task(client.post("/v1/completions", json=LONG))
            await writes(service, 1, 0)
            second = asyncio.create_task(client.post("/v1/completions", json=LONG))
            await writes(service, 1, 1)
            third = await client.post("/v1/completions", json=LONG)
            assert third.status_code == 503
            assert int(third.headers["retry-after"]) >= 1
            assert third.json()["error"]["type"] == "overloaded_error"
            assert (await client.get("/health")).json()["waiting"] == 1
            first.cancel()
            second.cancel()
            await asyncio.wait({first, second})
            await writes(service, 0, 0)
            assert (await client.post("/v1/completions", json={"model": "writer"})).status_code == 200
            metrics = (await client.get("/metrics")).text
            assert 'inkling_requests_total{path="/v1/completions",status="503"} 1' in metrics

    asyncio.run(run())


def test_a_request_that_takes_too_long_is_given_up(opened: list[Opened]) -> None:
    async def run() -> None:
        async with asking(opened, seconds=0.2) as (client, service):
            answer = await client.post("/v1/completions", json=LONG)
            assert answer.status_code == 504
            assert answer.json()["error"]["type"] == "timeout_error"
            streamed = await client.post("/v1/completions", json={**LONG, "stream": True})
            assert '"timeout_error"' in streamed.text
            assert streamed.text.endswith("data: [DONE]\n\n")
            await writes(service, 0, 0)

    asyncio.run(run())


def test_a_fault_of_ours_is_logged_and_not_told(opened: list[Opened], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(texts: Sequence[str]) -> Tensor:
        raise RuntimeError("secret of the inside")

    async def run() -> None:
        failures: list[BaseException] = []
        async with asking(opened, failures) as (client, _):
            monkeypatch.setattr(opened[0].model, "score", broken)
            answer = await client.post("/v1/score", json={"input": "x"})
            assert answer.status_code == 500
            assert "secret" not in answer.text
            assert [str(failure) for failure in failures] == ["secret of the inside"]

    asyncio.run(run())


def test_the_loop_answers_while_a_long_text_is_scored(opened: list[Opened]) -> None:
    async def run() -> None:
        async with asking(opened) as (client, _):
            scoring = asyncio.create_task(client.post("/v1/score", json={"input": "The boat. " * 2_000}))
            answered = 0
            while not scoring.done():
                assert (await client.get("/health")).status_code == 200
                answered += 1
                await asyncio.sleep(0)  # no real connection is waited for here, so nobody else would get a turn
            assert scoring.result().json()["data"][0]["tokens"] == 20_000
            assert answered > 3

    asyncio.run(run())


def test_runs_of_the_same_name_are_refused(runs: Path) -> None:
    from inkling.errors import UsageError

    with pytest.raises(UsageError, match="Two runs are called 'writer'"):
        open_runs([runs / "writer", runs / "writer"])
