"""The model card of a run: what it is, what it was trained on, how well it did, how to use it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from inkling.runs.run import Run

KINDS = {"dan": "classifier (a deep averaging network)"}
MOST_LABELS = 50


def write_card(run: Run, summary: Mapping[str, Any]) -> str:
    data = run.info["data"]
    figures = "\n".join(f"| {name.replace('_', ' ')} | {_shown(value)} |" for name, value in summary.items())
    notes = "".join(f"- {note}\n" for note in data["notes"])
    return f"""# {run.path.name}

A {KINDS.get(run.kind, f"{run.kind} model")} trained by Inkling {run.info["versions"]["inkling-lab"]}.

| figure | value |
|---|---|
{figures}

{_about_held_out(run)}

## Trained on

{", ".join(f"`{name}`" for name in data["files"])}: {data["rows"]:,} rows, {data["bytes"]:,} bytes,
SHA-256 `{data["sha256"]}`.
Held out: {data["held_out"] if isinstance(data["held_out"], str) else ", ".join(data["held_out"])}.
Normalisation: {run.info["normalise"]}.
{_labels(data)}{notes}
## Use

```python
import inkling
model = inkling.load("{run.path.name}")
model.{"predict" if run.kind == "dan" else "score"}(["Some text."])
```

## Recipe

```json
{json.dumps(run.info["recipe"], indent=1, ensure_ascii=False)}
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
