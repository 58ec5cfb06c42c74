"""The lm-evaluation-harness against the server, unchanged: its log-likelihoods are our own scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from served import Served

import inkling

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("serve"), pytest.mark.filterwarnings("default")]

TASK = """task: boats
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
doc_to_choice: "{{{{choices}}}}"
target_delimiter: " "
metric_list:
  - metric: acc
"""
QUESTIONS = [
    {"question": "The sailor steers the", "choices": ["boat.", "loaf.", "every good net."], "answer": 0},
    {"question": "A baker bakes", "choices": ["the loaf.", "boats in spring."], "answer": 0},
    {"question": "The lazy weavers", "choices": ["mend the net.", "often paint."], "answer": 1},
]


@pytest.mark.parametrize("by_tokens", [True, False])
def test_its_log_likelihoods_are_our_scores(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_tokens: bool
) -> None:
    lm_eval = pytest.importorskip("lm_eval")
    tasks = pytest.importorskip("lm_eval.tasks")
    for name in ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", server.token)
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps(one) + "\n" for one in QUESTIONS), "utf-8")
    (tmp_path / "boats.yaml").write_text(TASK.format(file=questions), "utf-8")
    found: dict[str, Any] = lm_eval.simple_evaluate(
        model="local-completions",
        model_args={
            "base_url": f"{server.url}/v1/completions",
            "model": "writer",
            "tokenizer": str(server.runs / "writer"),
            "tokenizer_backend": "huggingface",
            "tokenized_requests": by_tokens,
            "num_concurrent": 1,
            "max_retries": 1,
            "max_length": 64,
        },
        tasks=["boats"],
        task_manager=tasks.TaskManager(include_path=str(tmp_path), include_defaults=False),
        batch_size=4,
        log_samples=True,
        bootstrap_iters=0,
    )
    model = inkling.load(server.runs / "writer")
    samples = {one["doc"]["question"]: one for one in found["samples"]["boats"]}
    right = 0
    for one in QUESTIONS:
        costs = []
        for choice, [[loglikelihood, _]] in zip(
            one["choices"],
            samples[str(one["question"])]["resps"],
            strict=True,  # type: ignore[call-overload]
        ):
            whole = f"{one['question']} {choice}"
            scored = model.score([whole])[0]
            own = -float(scored.nats[len(str(one["question"])) :].sum())
            assert loglikelihood == pytest.approx(own, abs=1e-3)
            costs.append(own)
        right += costs.index(max(costs)) == one["answer"]
    assert found["results"]["boats"]["acc,none"] == pytest.approx(right / len(QUESTIONS))
