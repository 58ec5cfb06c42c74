"""The mistakes of a classifier on a file, found in a child: what `inkling errors --json` finds, ready to be browsed.

Texts come whole and words do not: what each word of a text weighed is worked out when somebody looks, by the same
functions, so that thousands of mistakes stay a small answer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

MOST_LISTED = 10_000
MADE_ROWS, MADE_SEED = 1_000, 1  # of reviews that are generated where there is no file
MADE_NAME = "generated reviews"

Say = Callable[[float | None, str], None]


def mistakes(arguments: dict[str, Any], say: Say) -> dict[str, Any]:
    """`run`, the folder of a run; `path` and `name` of a file (neither: generated reviews), and perhaps `text_column`
    and `label_column` → every mistake with its reason and text, groups, and what there is to say."""
    from inkling.studio.naming import call, calling

    with TemporaryDirectory() as folder:
        path, name = arguments.get("path"), arguments.get("name") or MADE_NAME
        if path is None:
            from inkling.recipes.world import make_world

            say(None, "Writing reviews …")
            made = make_world("reviews", Path(folder) / "reviews-to-judge.csv", MADE_ROWS, MADE_SEED)
            path = str(made[0])
        names = {path: name}
        with calling(names):
            found = _find(arguments, path, name, say)
    found["notes"] = [call(note, names) for note in found["notes"]]
    return found


def _find(arguments: dict[str, Any], path: str, name: str, say: Say) -> dict[str, Any]:
    from inkling.explain.errors import LEANING_TEXTS, MOST_GROUPS
    from inkling.explain.reasons import MEANING
    from inkling.pictures.markup import section
    from inkling.recipes.classification import Trainings
    from inkling.recipes.errors import find_mistakes
    from inkling.recipes.labelled import LabelledConfig, read_for, recall_columns
    from inkling.report.errors import scale
    from inkling.runs.loading import load_classifier
    from inkling.runs.run import Run

    say(None, "Reading …")
    run = Run.open(arguments["run"])
    network = load_classifier(run)
    columns = arguments.get("text_column") or None, arguments.get("label_column") or None
    config = LabelledConfig((path,), text_column=columns[0], label_column=columns[1])
    config, notes = recall_columns(config, {run.path.name: run.info["recipe"]})
    text = read_for(network.labels, config, lambda note: None)
    say(None, f"Judging {len(text):,} texts …")
    log_probs = network.log_probs(text.texts).numpy()
    right = log_probs.argmax(axis=1) == text.truth
    known = Trainings().acquaint(run.path.name, run, name, text).sentences(right)

    total = min(len(text), LEANING_TEXTS) + int((~right).sum()) + MOST_GROUPS
    report = find_mistakes(
        network,
        text,
        log_probs,
        name=run.path.name,
        text_name=name,
        on_explained=lambda done: say(min(1.0, done / total), "Explaining the mistakes …"),
    )
    place = {number: at for at, number in enumerate(text.number.tolist())}
    cases = report.cases[:MOST_LISTED]
    of_classes = report.report
    assert of_classes is not None
    return {
        "run": run.path.name,
        "text": name,
        "labels": list(report.labels),
        "summary": report.summary(),
        "known": known,
        "notes": [*notes, *text.notes],
        "text_count": report.texts,
        "mistake_count": len(report.cases),
        "accuracy": of_classes.accuracy.value,
        "levels": list(scale(mistake.weighed for mistake in report.mistakes)),
        "reasons": [[kind, count, MEANING[kind]] for kind, count in report.reasons.items() if count],
        "groups": report.to_json()["groups"],
        "mistakes": [{**case.to_json(report.labels), "text": text.texts[place[case.row]]} for case in cases],
        "tables": [section(table) for table in of_classes.tables()],
    }
