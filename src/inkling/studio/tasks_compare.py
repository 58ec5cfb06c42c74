"""Models on one ruler, in a child: what `inkling evaluate RUN… --on TEXT --html` writes, piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def ruler(arguments: dict[str, Any], say: Callable[[float | None, str], None]) -> dict[str, Any]:
    """`runs` and `on` (paths), `baselines` → the exhibits as HTML, and the figures as `--json` has them."""
    from inkling.pictures.markup import section
    from inkling.recipes.evaluation import EvaluationRecipe, evaluate_runs

    def tell(done: int, total: int, what: str) -> None:
        say(done / total if total else None, f"{what[:1].upper()}{what[1:]} …")

    say(None, "Opening the runs …")
    recipe = EvaluationRecipe(tuple(arguments["runs"]), tuple(arguments["on"]), baselines=bool(arguments["baselines"]))
    found = evaluate_runs(recipe, tell)
    return {"sections": [section(exhibit) for exhibit in found.page().exhibits], "figures": found.to_json()}
