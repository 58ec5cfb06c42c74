"""/v1/completions: the same tokens as the library, in OpenAI's shape, whole or streamed, with what each token costs."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from served import MOST_TOKENS, Served

import inkling
from inkling.models.sampling import SamplingConfig, sample_many

pytestmark = pytest.mark.xdist_group("serve")


@pytest.fixture(scope="module")
def model(server: Served) -> Any:
    return inkling.load(server.runs / "writer")


def texts_of(answer: dict[str, Any]) -> list[str]:
    return [choice["text"] for choice in sorted(answer["choices"], key=lambda choice: choice["index"])]


def test_a_completion_is_the_sample_with_its_seed(server: Served, model: Any) -> None:
    settings: dict[str, Any] = {"temperature": 0.9, "top_p": 0.9, "top_k": 20, "min_p": 0.01, "repetition_penalty": 1.2}
    found = server.complete(prompt="The baker", max_tokens=40, seed=7, **settings)
    [expected] = sample_many(model, SamplingConfig(tokens=40, **settings), 7, ["The baker"])
    assert texts_of(found) == [expected.text]
    assert found["object"] == "text_completion"
    assert found["model"] == "writer"
    assert found["usage"] == {"prompt_tokens": 9, "completion_tokens": 40, "total_tokens": 49}
    assert found["choices"][0]["finish_reason"] == "length"


def test_several_prompts_and_choices_are_samples_in_their_order(server: Served, model: Any) -> None:
    found = server.complete(prompt=["A net", "The"], n=3, max_tokens=12, seed=5)
    expected = sample_many(model, SamplingConfig(tokens=12), 5, ["A net"] * 3 + ["The"] * 3)
    assert texts_of(found) == [one.text for one in expected]


def test_the_same_is_written_whoever_asks_meanwhile(server: Served, model: Any) -> None:
    def ask(number: int) -> str:
        length, temperature = 5 + 3 * number, 0.5 + number / 20
        body = {"prompt": "The " + "x" * number, "max_tokens": length, "temperature": temperature, "seed": number}
        return texts_of(server.complete(**body))[0]

    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(ask, range(24)))
    for number, text in enumerate(found):
        config = SamplingConfig(tokens=5 + 3 * number, temperature=0.5 + number / 20)
        [expected] = sample_many(model, config, number, ["The " + "x" * number])
        assert text == expected.text


def test_a_prompt_of_token_ids_is_the_prompt_of_its_text(server: Served, model: Any) -> None:
    ids = model.tokeniser.encode(["The boat"]).ids.tolist()
    by_text = server.complete(prompt="The boat", max_tokens=20, seed=3)
    assert texts_of(server.complete(prompt=ids, max_tokens=20, seed=3)) == texts_of(by_text)
    assert texts_of(server.complete(prompt=[ids, ids], max_tokens=20, seed=3))[0] == texts_of(by_text)[0]


def test_without_a_seed_two_answers_differ_and_without_a_prompt_there_is_one(server: Served) -> None:
    assert texts_of(server.complete(max_tokens=50)) != texts_of(server.complete(max_tokens=50))
    assert len(texts_of(server.complete())[0]) == 16  # OpenAI's number, and characters are tokens here


def test_a_stop_string_ends_a_completion_and_is_not_shown(server: Served, model: Any) -> None:
    [free] = sample_many(model, SamplingConfig(tokens=60), 1, ["The"])
    stop = free.text[20:23]
    found = server.complete(prompt="The", max_tokens=60, seed=1, stop=[stop, "never seen"])
    assert found["choices"][0]["text"] == free.text[: free.text.index(stop)]
    assert found["choices"][0]["finish_reason"] == "stop"
    assert texts_of(server.complete(prompt="The", max_tokens=60, seed=1, stop=stop)) == texts_of(found)


def events_of(server: Served, **body: Any) -> list[dict[str, Any]]:
    body = {"model": "writer", "stream": True, **body}
    with server.client.stream("POST", "/v1/completions", json=body) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in answer.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_what_is_streamed_is_what_is_answered_at_once(server: Served) -> None:
    body = {"prompt": ["The baker", "A"], "max_tokens": 30, "seed": 2, "n": 2, "stop": ["qq"], "echo": True}
    whole, parts = server.complete(**body, logprobs=2), events_of(server, **body, logprobs=2)
    for choice in whole["choices"]:
        own = [part["choices"][0] for part in parts if part["choices"][0]["index"] == choice["index"]]
        assert "".join(part["text"] for part in own) == choice["text"]
        assert [part["finish_reason"] for part in own if part["finish_reason"]] == [choice["finish_reason"]]
        for name, values in choice["logprobs"].items():
            assert [value for part in own for value in part["logprobs"][name]] == values


def test_tokens_are_streamed_while_the_rest_is_being_written(server: Served) -> None:
    body = {"model": "writer", "max_tokens": MOST_TOKENS, "stream": True}
    with server.client.stream("POST", "/v1/completions", json=body) as answer:
        lines = answer.iter_lines()  # kept, for the connection is closed with it
        assert next(lines).startswith("data: ")
        assert server.get("/health").json()["writing"] >= 1


def test_usage_is_streamed_when_it_is_asked_for(server: Served) -> None:
    parts = events_of(server, prompt="The", max_tokens=9, stream_options={"include_usage": True})
    assert parts[-1]["usage"] == {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}
    assert parts[-1]["choices"] == []
    assert all(part["usage"] is None for part in parts[:-1])


# ------------------------------------------------------------------------------------------------ what tokens cost


def test_echoed_tokens_cost_what_scoring_says(server: Served, model: Any) -> None:
    text = "".join(("The sailor steers the boat.\n", "A captain paints every good net in spring.\n", "So it is said."))
    assert len(text) > model.config.context  # so that the text is read in windows
    found = server.complete(prompt=text, max_tokens=0, echo=True, logprobs=3)["choices"][0]
    assert found["text"] == text
    scored = model.score([text])[0]
    assert found["logprobs"]["token_logprobs"] == pytest.approx((-scored.nats).tolist(), rel=1e-6)
    assert found["logprobs"]["tokens"] == list(text)
    assert found["logprobs"]["text_offset"] == list(range(len(text)))


def test_the_likeliest_tokens_of_each_place_are_those_of_the_model(server: Served, model: Any) -> None:
    found = server.complete(prompt="The boat", max_tokens=5, temperature=0, echo=True, logprobs=3)["choices"][0]
    state, log_probs = model.begin()
    tokens = model.tokeniser.encode([found["text"]]).ids.tolist()
    assert len(tokens) == len(found["logprobs"]["tokens"]) == 13
    for token, cost, top in zip(
        tokens, found["logprobs"]["token_logprobs"], found["logprobs"]["top_logprobs"], strict=True
    ):
        best = np.argsort(-log_probs.numpy(), kind="stable")[:3].tolist()
        name = model.tokeniser.decode([token])
        assert set(top) == {model.tokeniser.piece(one).decode() or "<unknown>" for one in best} | {name}
        assert top[name] == cost
        assert cost == pytest.approx(float(log_probs[token]), abs=1e-4)
        state, log_probs = model.step(state, token)
    written = found["logprobs"]
    greedy = [c == max(t.values()) for c, t in zip(written["token_logprobs"], written["top_logprobs"], strict=True)]
    assert all(greedy[8:])


def test_unknown_words_of_an_echoed_prompt_cost_their_spelling(server: Served) -> None:
    text = "The Xqzv boat, Wvk.\n"
    answer = server.post(
        "/v1/completions", {"model": "words", "prompt": text, "max_tokens": 0, "echo": True, "logprobs": 0}
    ).json()
    found = answer["choices"][0]
    scored = inkling.load(server.runs / "words").score([text])[0]
    assert found["text"] == text
    assert scored.unknown.any()
    total = float(scored.nats.sum() + scored.spelling_nats.sum())
    assert -sum(found["logprobs"]["token_logprobs"]) == pytest.approx(total, rel=1e-6)


def test_without_echo_offsets_begin_behind_the_prompt(server: Served) -> None:
    found = server.complete(prompt="The boat", max_tokens=3, logprobs=0)["choices"][0]
    assert found["logprobs"]["text_offset"] == [8, 9, 10]
    assert [list(top) for top in found["logprobs"]["top_logprobs"]] == [[name] for name in found["logprobs"]["tokens"]]


# ------------------------------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("body", "param", "said"),
    [
        ({"max_tokens": 10**9}, "max_tokens", "'max_tokens' is 1000000000; give at most 1000000."),
        ({"max_tokens": 10**30}, "max_tokens", "give a"),
        ({"max_tokens": "many"}, "max_tokens", "'max_tokens' is \"many\"; give a whole number"),
        ({"max_tokens": 0}, "max_tokens", "give at least 1"),
        ({"max_tokens": True}, "max_tokens", "'max_tokens' is true"),
        ({"temperature": -1}, "temperature", "'temperature' is -1"),
        ({"top_p": 0}, "top_p", "'top_p' is 0"),
        ({"n": 1000}, "n", "'n' is 1000"),
        ({"stop": ["a"] * 17}, "stop", "give up to 16 strings"),
        ({"stop": ""}, "stop", "1 to 256"),
        ({"stop": "x" * 300}, "stop", "1 to 256"),
        ({"logprobs": 50}, "logprobs", "give 0 to 20"),
        ({"prompt": []}, "prompt", "at least one prompt"),
        ({"prompt": [0, 10**9]}, "prompt", "knows 0 to"),
        ({"prompt": [["a"]]}, "prompt", "give a string"),
        ({"prompt": ["a"] * 300}, "prompt", "at most 256"),
        ({"prompt": "x" * 70_000}, "prompt", "70,000 tokens"),
        ({"best_of": 3}, "best_of", "cannot do"),
        ({"suffix": "x"}, "suffix", "cannot do"),
        ({"logit_bias": {"5": 1}}, "logit_bias", "cannot do"),
        ({"presence_penalty": 0.5}, "presence_penalty", "repetition_penalty"),
        ({"temprature": 1}, "temprature", "did you mean 'temperature'?"),
        ({"stream_options": {"usage": True}}, "stream_options", "did you mean 'include_usage'?"),
        ({"model": "verdicts"}, "model", "no language model"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(server: Served, body: dict[str, Any], param: str, said: str) -> None:
    answer = server.post("/v1/completions", {"model": "writer", **body})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert said in error["message"]
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"


def test_what_changes_nothing_is_taken(server: Served) -> None:
    neutral: dict[str, Any] = {
        "best_of": 1,
        "suffix": None,
        "logit_bias": {},
        "presence_penalty": 0,
        "frequency_penalty": 0.0,
    }
    server.complete(max_tokens=1, user="somebody", **neutral)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[1]", b'"x"', b'{"prompt": NaN}', b'{"prompt": "\\ud800"}', b"[" * 10_000]
)
def test_a_body_that_is_no_object_is_refused(server: Served, raw: bytes) -> None:
    answer = server.client.post("/v1/completions", content=raw)
    assert answer.status_code == 400
    assert "error" in answer.json()


def test_a_model_that_is_not_there_is_not_found(server: Served) -> None:
    answer = server.post("/v1/completions", {"model": "riter", "prompt": "x"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    assert "did you mean 'writer'?" in answer.json()["error"]["message"]
    nameless = server.post("/v1/completions", {"prompt": "x"})
    assert nameless.status_code == 400
    assert "'writer', 'words'" in nameless.json()["error"]["message"]


# ------------------------------------------------------------------------------------------------ going away


@pytest.mark.parametrize("stream", [True, False])
def test_who_goes_away_is_not_written_for_any_longer(server: Served, stream: bool) -> None:
    """Within a second; seen at least once in five, for the computer may be busy with something else."""
    wait_for(server, writing=0)
    raw = json.dumps({"model": "writer", "max_tokens": MOST_TOKENS, "stream": stream}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
            wait_for(server, writing=1)
        gone = time.monotonic()
        wait_for(server, writing=0)
        if time.monotonic() - gone < 1:
            return
    raise AssertionError("it went on writing for more than a second, five times")


def wait_for(server: Served, writing: int) -> None:
    """For a while that is far shorter than so many tokens take."""
    ends = time.monotonic() + 15
    while server.get("/health").json()["writing"] != writing:
        assert time.monotonic() < ends, "nothing changed"
