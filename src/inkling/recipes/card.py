"""The model card of a run: what it is, what it was trained on, how well it did, how to use it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from inkling.configuration import from_record
from inkling.models.gpt import GPTConfig
from inkling.models.gpt_layout import OWN, not_exportable
from inkling.runs.run import Run

KINDS = {"dan": "classifier (a deep averaging network)", "gpt": "small transformer (a decoder-only language model)"}
MOST_LABELS = 50


def write_card(run: Run, summary: Mapping[str, Any]) -> str:
    figures = "\n".join(f"| {name.replace('_', ' ')} | {_shown(value)} |" for name, value in summary.items())
    imported = run.info.get("imported")
    came = "imported" if imported else "trained"
    about = f"\n{_about_held_out(run)}\n" if any(name.startswith("held_out") for name in summary) else ""
    return f"""# {run.path.name}

A {KINDS.get(run.kind, f"{run.kind} model")} {came} by Inkling {run.info["versions"]["inkling-lab"]}.

| figure | value |
|---|---|
{figures}
{about}
## Trained on

{_trained_on(run)}
## Use

```python
import inkling
model = inkling.load("{run.path.name}")
model.{"predict" if run.kind == "dan" else "score"}(["Some text."])
```
{_elsewhere(run) if run.kind == "gpt" else ""}
## Recipe

```json
{json.dumps(run.info["recipe"], indent=1, ensure_ascii=False)}
```
"""


def _trained_on(run: Run) -> str:
    data, imported = run.info["data"], run.info.get("imported")
    came = f"Imported from `{imported['from']}`, weights with the SHA-256 `{imported['sha256']}`.\n" if imported else ""
    if not data["files"]:
        return f"{came}What it was trained on is not known.\n"
    held_out = data["held_out"] if isinstance(data["held_out"], str) else ", ".join(data["held_out"])
    if data.get("held_out_sha256"):
        held_out += f", SHA-256 `{data['held_out_sha256']}`"
    notes = "".join(f"- {note}\n" for note in data["notes"])
    return f"""{came}{_files(run)}Held out: {held_out}.
Normalisation: {run.info["normalise"]}.
{_labels(data)}{notes}"""


def _files(run: Run) -> str:
    """Texts and pairs with their fingerprints, and the run that a training began from."""
    data = run.info["data"]
    asked = data.get("pairs") or {"files": []}
    texts = data["files"][: len(data["files"]) - len(asked["files"])]
    lines = ""
    if texts:
        lines += f"{_named(texts)}: {data['rows']:,} rows, {data['bytes']:,} bytes,\nSHA-256 `{data['sha256']}`.\n"
    if asked["files"]:
        lines += f"{_named(asked['files'])}: {asked['rows']:,} questions with answers,\nSHA-256 `{asked['sha256']}`.\n"
    base = run.info["recipe"].get("base")
    return lines + (f"It began with the weights of `{base}`.\n" if base else "")


def _named(files: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in files)


def _elsewhere(run: Run) -> str:
    """How a transformer opens in other programs, or why it does not."""
    record = json.loads((run.path / "config.json").read_text(encoding="utf-8"))
    if record["model_type"] == OWN:
        return f"\n{not_exportable(from_record(GPTConfig, record['sizes'], 'config.json'))}\n"
    return f"""
This directory is in the layout of the transformers library, and opens there as it is. A text begins behind a line end:

```python
from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained("{run.path.name}")  # a {record["model_type"]}, float32
tokenizer = AutoTokenizer.from_pretrained("{run.path.name}")
ids = tokenizer("\\nSome text", return_tensors="pt").input_ids
print(tokenizer.decode(model.generate(ids, max_new_tokens=20, do_sample=False, pad_token_id=0)[0]))
```
"""


def was_learned(run: Run) -> bool:
    """Whether the held-out share was learned from in the end: by scores, which are fitted again with all texts."""
    return run.kind == "dan" and bool(run.info["refitted"])


def _about_held_out(run: Run) -> str:
    if was_learned(run):
        about = "chose the settings and the temperature, and was learned from only then"
    else:
        about = "was not trained on, but chose which weights to keep"
    return f"Held-out figures are of text that {about}:\na test set of its own gives a fairer one (`inkling evaluate`)."


def _labels(data: Mapping[str, Any]) -> str:
    """How many rows each label has, of a classifier."""
    labels = data.get("labels", {})
    some = ", ".join(f"`{label}` {count:,}" for label, count in list(labels.items())[:MOST_LABELS])
    more = f" and {len(labels) - MOST_LABELS:,} more" if len(labels) > MOST_LABELS else ""
    return f"Labels and their rows: {some}{more}.\n" if labels else ""


def _shown(value: Any) -> str:
    return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
