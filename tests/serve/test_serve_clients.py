"""Clients that people have: the official openai package, unchanged, and curl."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from served import Served

import inkling
from inkling.models.sampling import SamplingConfig, sample_many

pytestmark = pytest.mark.xdist_group("serve")
openai = pytest.importorskip("openai")


@pytest.fixture(scope="module")
def client(server: Served) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.token, max_retries=0) as found:
        yield found


def test_openai_completes(client: Any, server: Served) -> None:
    found = client.completions.create(
        model="writer", prompt=["The", "A"], max_tokens=15, n=2, seed=4, temperature=0.8, logprobs=2, stop=["@"]
    )
    model, config = inkling.load(server.runs / "writer"), SamplingConfig(tokens=15, temperature=0.8, stop=("@",))
    expected = sample_many(model, config, 4, ["The", "The", "A", "A"])
    assert [choice.text for choice in found.choices] == [one.text for one in expected]
    assert found.usage.completion_tokens == 60
    assert len(found.choices[0].logprobs.token_logprobs) == 15


def test_openai_streams(client: Any) -> None:
    whole = client.completions.create(model="writer", prompt="The", max_tokens=25, seed=1)
    parts = client.completions.create(model="writer", prompt="The", max_tokens=25, seed=1, stream=True)
    assert "".join(part.choices[0].text for part in parts) == whole.choices[0].text


def test_openai_lists_models(client: Any) -> None:
    assert {one.id for one in client.models.list()} == {"writer", "words", "verdicts"}
    assert client.models.retrieve("writer").object == "model"


def test_openai_tells_errors_by_their_kinds(client: Any, server: Served) -> None:
    with pytest.raises(openai.BadRequestError, match="max_tokens"):
        client.completions.create(model="writer", prompt="x", max_tokens=10**9)
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="nobody", prompt="x")
    with (
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="wrong", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.models.list()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl_works_with_the_line_that_was_printed(server: Served) -> None:
    ended = subprocess.run([*shlex.split(server.curl), "-s"], capture_output=True, text=True, timeout=30, check=True)
    assert len(json.loads(ended.stdout)["choices"][0]["text"]) == 50
