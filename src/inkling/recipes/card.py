"""The model card of a run: what it is, what it was trained on, how well it did, how to use it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from inkling.runs.run import Run


def write_card(run: Run, summary: Mapping[str, Any]) -> str:
    data = run.info["data"]
    figures = "\n".join(f"| {name.replace('_', ' ')} | {_shown(value)} |" for name, value in summary.items())
    notes = "".join(f"- {note}\n" for note in data["notes"])
    return f"""# {run.path.name}

A {run.kind} model trained by Inkling {run.info["versions"]["inkling-lab"]}.

| figure | value |
|---|---|
{figures}

Held-out figures are of text that was not trained on, but that chose which weights to keep: a test set of its own gives
a fairer one (`inkling evaluate`).

## Trained on

{", ".join(f"`{name}`" for name in data["files"])}: {data["rows"]:,} rows, {data["bytes"]:,} bytes,
SHA-256 `{data["sha256"]}`.
Held out: {data["held_out"] if isinstance(data["held_out"], str) else ", ".join(data["held_out"])}.
Normalisation: {run.info["normalise"]}.
{notes}
## Use

```python
import inkling
model = inkling.load("{run.path.name}")
model.score(["Some text."])
```

## Recipe

```json
{json.dumps(run.info["recipe"], indent=1, ensure_ascii=False)}
```
"""


def _shown(value: Any) -> str:
    return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
