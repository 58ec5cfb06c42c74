"""/v1/score, /v1/classify, /tokenize, /v1/models and /metrics: the figures of the command line, over HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from served import SCRIPT, Served

import inkling
from inkling.cli.app import main

pytestmark = pytest.mark.xdist_group("serve")
LINES = ["The sailor steers the boat.", "Some Xqz weavers often mend the table in winter."]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(list(arguments)) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("name", ["writer", "words"])
def test_scores_are_those_of_the_command(
    name: str, server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("".join(f"{line}\n" for line in LINES), "utf-8")
    texts = [f"{line}\n" for line in LINES]  # a row of a file has its line end
    if name == "writer":  # over characters of the training text alone, so it has no price for others
        texts, LINE = texts[:1], LINES[0]
        file.write_text(f"{LINE}\n", "utf-8")
    expected = printed(capsys, "score", str(server.runs / name), str(file))
    found = server.post("/v1/score", {"model": name, "input": texts}).json()["data"]
    assert [one["index"] for one in found] == list(range(len(texts)))
    for one, row in zip(found, expected, strict=True):
        for figure in ("nats", "tokens", "unknown", "bytes", "bits_per_byte"):
            assert one[figure] == pytest.approx(row[figure], rel=1e-6), figure
    assert server.post("/v1/score", {"model": name, "input": texts[0]}).json()["data"][0] == pytest.approx(found[0])


def test_what_a_model_cannot_price_is_said(server: Served) -> None:
    answer = server.post("/v1/score", {"model": "writer", "input": "東京"})
    assert answer.status_code == 400
    assert "unknown" in answer.json()["error"]["message"]


def test_verdicts_and_reasons_are_those_of_the_command(
    server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["the superb a lovely the a", "a dull film. It was awful, the lovely end aside.", "the the"]
    file = tmp_path / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    expected = printed(capsys, "classify", str(server.runs / "verdicts"), str(file), "--why", "--all")
    found = server.post("/v1/classify", {"input": texts, "why": True, "all": True}).json()["data"]
    assert [{name: value for name, value in one.items() if name != "index"} for one in found] == [
        {name: value for name, value in row.items() if name != "row"} for row in expected
    ]
    assert found[0]["label"] == "good"
    assert found[1]["label"] == SCRIPT
    assert {word["word"] for word in found[1]["for"]} == {"dull", "awful"}
    plain = server.post("/v1/classify", {"input": texts[0]}).json()["data"][0]
    assert set(plain) == {"index", "label", "probability", "unsure"}


def test_script_in_texts_and_labels_stays_text(server: Served) -> None:
    answer = server.post("/v1/classify", {"input": f"dull {SCRIPT} awful", "why": True})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.json()["data"][0]["label"] == SCRIPT
    for body in ({"model": SCRIPT}, {SCRIPT: 1}, {"max_tokens": SCRIPT}):
        wrong = server.post("/v1/completions", body)
        assert wrong.headers["content-type"] == "application/json"
        assert wrong.status_code in (400, 404)


@pytest.mark.parametrize("given", ["", " \n", [], ["fine", ""], ["x"] * 300, 7, None])
def test_texts_that_cannot_be_judged_are_refused(server: Served, given: Any) -> None:
    answer = server.post("/v1/classify", {"input": given})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "input"


def test_a_language_model_is_no_classifier(server: Served) -> None:
    answer = server.post("/v1/classify", {"model": "writer", "input": "x"})
    assert answer.status_code == 400
    assert "no classifier" in answer.json()["error"]["message"]


def test_tokens_go_there_and_back(server: Served) -> None:
    text = "The Xqzv boat, and\nthe net."
    found = server.post("/tokenize", {"model": "words", "prompt": text}).json()
    tokeniser = inkling.load(server.runs / "words").tokeniser
    assert found["tokens"] == tokeniser.encode([text]).ids.tolist()
    assert "".join(found["pieces"]) == text
    assert found["count"] == len(found["tokens"])
    assert [found["tokens"][place] for place in found["unknown"]] == [tokeniser.unknown] * len(found["unknown"])
    known = server.post("/tokenize", {"model": "words", "prompt": "The boat."}).json()["tokens"]
    assert server.post("/detokenize", {"model": "words", "tokens": known}).json()["prompt"] == "The boat."
    wrong = server.post("/detokenize", {"model": "words", "tokens": [10**12]})
    assert wrong.status_code == 400


def test_models_are_listed_with_what_they_are(server: Served) -> None:
    found = server.get("/v1/models").json()
    assert found["object"] == "list"
    assert {one["id"]: one["kind"] for one in found["data"]} == {"writer": "gpt", "words": "bigram", "verdicts": "dan"}
    assert server.get("/v1/models/verdicts").json()["labels"] == [SCRIPT, "good"]
    assert server.get("/v1/models/nobody").status_code == 404


def test_paths_and_methods_that_are_not_there_are_said_to_be_so(server: Served) -> None:
    assert server.get("/v1/chat/completions").status_code == 404
    assert server.get("/v1/completions").status_code == 405
    assert server.client.delete("/v1/models").status_code == 405
    assert server.client.head("/health").status_code == 200


LINE = re.compile(r'^[a-z_]+(\{([a-z]+="([^"\\\n]|\\.)*"(,|(?=\})))+\})? [0-9.e+-]+$')


def test_metrics_are_in_the_format_of_prometheus_and_count(server: Served) -> None:
    def sample(name: str) -> float:
        text = server.get("/metrics").text
        return float(next(line for line in text.splitlines() if line.startswith(name + " ")).rpartition(" ")[2])

    server.complete(prompt="The", max_tokens=4)
    out = 'inkling_tokens_total{model="writer",direction="out"}'
    asked = 'inkling_requests_total{path="/v1/completions",status="200"}'
    before_tokens, before_asked = sample(out), sample(asked)
    server.complete(prompt="The", max_tokens=11)
    assert sample(out) == before_tokens + 11
    assert sample(asked) == before_asked + 1
    answer = server.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    for line in answer.text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or LINE.match(line), line
    buckets = [
        float(line.rpartition(" ")[2])
        for line in answer.text.splitlines()
        if line.startswith('inkling_request_seconds_bucket{path="/v1/completions"')
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == sample('inkling_request_seconds_count{path="/v1/completions"}')
    assert sample("process_resident_memory_bytes") > 10_000_000
    assert sample('inkling_batch_size_count{model="writer"}') > 0
    assert sample('inkling_queue_depth{queue="write writer"}') == 0
