"""A run directory: it loads from its first moment on, survives damage where it can, and says so where it cannot."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from inkling.errors import InklingError, UsageError
from inkling.runs import files
from inkling.runs.files import MANIFEST, TEMPORARY
from inkling.runs.run import CHECKPOINTS_KEPT, REQUIRED, Checkpoint, Run, list_runs, remove, unused_path

INFO = {"kind": "bigram", "recipe": {"seed": 3}, "normalise": "none", "seed": 3, "threads": 1, "data": {"files": []}}


def checkpoint(step: int) -> Checkpoint:
    return Checkpoint(step, f"model {step}".encode(), f"state {step}".encode(), {"step": step, "best_nats": None})


def created(path: Path, **info: Any) -> Run:
    constant = {"config.json": b"{}", "tokenizer.json": b"{}"}
    return Run.create(path, info={**INFO, **info}, constant=constant, checkpoint=checkpoint(0))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return created(tmp_path / "run")


def names(run: Run) -> list[str]:
    return [folder.name for folder in run.checkpoints()]


def spoil(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"?")


# ------------------------------------------------------------------------------------------------ made and found


def test_a_new_run_is_complete_from_its_first_moment(run: Run) -> None:
    assert sorted(p.name for p in run.path.iterdir()) == [
        "checkpoints",
        "config.json",
        "metrics.jsonl",
        "run.json",
        "tokenizer.json",
    ]
    assert names(run) == ["step-000000000"]
    assert run.weights().read_bytes() == b"model 0"
    assert not run.finished
    assert run.metrics() == []
    opened = Run.open(run.path)
    assert opened.info == run.info
    assert (opened.kind, opened.info["state"], opened.info["recipe"]) == ("bigram", "running", {"seed": 3})
    assert {"python", "torch", "numpy", "inkling-lab"} <= set(opened.info["versions"])


@pytest.mark.parametrize("there", ["run", "file", "empty folder"])
def test_a_run_is_never_made_over_something_else(tmp_path: Path, there: str) -> None:
    path = tmp_path / "taken"
    if there == "run":
        created(path)
    elif there == "file":
        path.write_text("mine")
    else:
        path.mkdir()
    before = {p: p.stat().st_mtime_ns for p in sorted(tmp_path.rglob("*"))}
    with pytest.raises(UsageError, match=r"taken exists already; .*--out"):
        created(path)
    assert {p: p.stat().st_mtime_ns for p in sorted(tmp_path.rglob("*"))} == before


def test_a_folder_that_is_no_run_is_named_with_the_runs_beside_it(tmp_path: Path) -> None:
    created(tmp_path / "first")
    with pytest.raises(InklingError, match=r"frist is not a run: it has no run\.json \(runs there: first\)"):
        Run.open(tmp_path / "frist")
    with pytest.raises(InklingError, match="is not a run"):
        Run.open(tmp_path / "nowhere" / "at all")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"format": 1, ', "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b'{"format": 2}', "another version"),
        (b"[1]", "another version"),
    ],
)
def test_a_run_file_that_makes_no_sense_is_said_in_a_sentence(run: Run, content: bytes, complaint: str) -> None:
    (run.path / "run.json").write_bytes(content)
    with pytest.raises(InklingError, match=complaint):
        Run.open(run.path)


def test_a_file_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("x")
    with pytest.raises(InklingError, match=r"text\.txt"):
        Run.open(tmp_path / "text.txt")


def test_what_is_infinite_is_null_in_the_run_file(run: Run) -> None:
    run.update(summary={"a": math.inf, "b": [math.nan, 1.5], "c": ("x", -math.inf)})
    text = (run.path / "run.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["summary"] == {"a": None, "b": [None, 1.5], "c": ["x", None]}


def test_runs_are_listed_oldest_first_and_strangers_passed_over(tmp_path: Path) -> None:
    for name, started in (("b", "2024-01-02"), ("a", "2024-01-03"), ("c", "2024-01-01"), ("d", "2024-01-03")):
        created(tmp_path / name).update(started=started)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "run.json").write_text('{"format": 99}')
    shutil.copytree(tmp_path / "a", tmp_path / f"{TEMPORARY}1-a")
    assert [run.path.name for run in list_runs(tmp_path)] == ["c", "b", "a", "d"]
    assert list_runs(tmp_path / "nowhere") == []
    assert list_runs(tmp_path / "notes.txt") == []


def test_a_removed_run_is_gone_and_nothing_else(tmp_path: Path) -> None:
    first, second = created(tmp_path / "first"), created(tmp_path / "second")
    remove(first)
    assert [p.name for p in tmp_path.iterdir()] == ["second"]
    assert Run.open(second.path).info == second.info


def test_a_removal_cut_short_leaves_no_half_run_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = created(tmp_path / "run")

    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            remove(run)
    assert not run.path.exists()
    assert list_runs(tmp_path) == []
    files.sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unused_path_counts_up(tmp_path: Path) -> None:
    assert unused_path(tmp_path, "it") == tmp_path / "it"
    (tmp_path / "it").mkdir()
    (tmp_path / "it-2").write_text("")
    assert unused_path(tmp_path, "it") == tmp_path / "it-3"


# ------------------------------------------------------------------------------------------------ metrics


def test_metrics_come_back_in_order_without_a_torn_last_line(run: Run) -> None:
    rows = [{"step": step, "nats": 1 / step} for step in (1, 2, 3)]
    for row in rows:
        run.log(row)
    assert run.metrics() == rows
    whole = (run.path / "metrics.jsonl").read_bytes()
    for cut in range(1, len(whole)):
        (run.path / "metrics.jsonl").write_bytes(whole[:-cut])
        kept = run.metrics()
        assert kept == rows[: len(kept)]
        assert len(kept) >= whole[:-cut].count(b"\n")


def test_a_metric_that_is_no_number_is_null(run: Run) -> None:
    run.log({"step": 1, "held_out_nats_per_token": math.nan})
    assert json.loads((run.path / "metrics.jsonl").read_text(), parse_constant=pytest.fail) == {
        "step": 1,
        "held_out_nats_per_token": None,
    }


def test_rewinding_drops_later_metrics_and_torn_lines(run: Run) -> None:
    for step in range(1, 8):
        run.log({"step": step})
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 8, "na')
    run.rewind(5)
    assert (run.path / "metrics.jsonl").read_text() == "".join(f'{{"step": {step}}}\n' for step in range(1, 6))
    run.log({"step": 6})
    assert [row["step"] for row in run.metrics()] == [1, 2, 3, 4, 5, 6]
    run.rewind(0)
    assert run.metrics() == []


# ------------------------------------------------------------------------------------------------ checkpoints


def test_the_newest_checkpoints_are_kept(run: Run) -> None:
    for step in (5, 40, 300, 2000):
        run.save(checkpoint(step))
    assert CHECKPOINTS_KEPT == 2
    assert names(run) == ["step-000000300", "step-000002000"]
    assert run.newest().name == "step-000002000"
    assert run.weights().read_bytes() == b"model 2000"
    assert json.loads((run.newest() / "state.json").read_text())["step"] == 2000


@pytest.mark.parametrize("name", ["model.safetensors", "state.safetensors", "state.json", MANIFEST])
@pytest.mark.parametrize("damage", ["altered", "gone"])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(run: Run, name: str, damage: str) -> None:
    run.save(checkpoint(5))
    run.save(checkpoint(9))
    if damage == "gone":
        (run.newest() / name).unlink()
    else:
        spoil(run.newest() / name)
    assert run.newest().name == "step-000000005"
    assert run.weights().read_bytes() == b"model 5"


def test_without_an_intact_checkpoint_a_run_says_so(run: Run) -> None:
    spoil(run.newest() / "model.safetensors")
    with pytest.raises(InklingError, match="no intact checkpoint"):
        run.weights()


def test_going_on_from_before_a_damaged_checkpoint_writes_it_anew(run: Run) -> None:
    for step in (5, 9):
        run.save(checkpoint(step))
    spoil(run.newest() / "model.safetensors")
    run.rewind(5)
    assert names(run) == ["step-000000005"]
    run.save(checkpoint(9))
    assert run.weights().read_bytes() == b"model 9"


def test_saving_the_same_step_again_changes_nothing(run: Run) -> None:
    run.save(checkpoint(5))
    when = (run.newest() / MANIFEST).stat().st_mtime_ns
    run.save(checkpoint(5))
    assert (run.newest() / MANIFEST).stat().st_mtime_ns == when


@pytest.mark.parametrize("name", ["rename", "replace"])
def test_a_checkpoint_that_cannot_be_written_leaves_the_old_ones(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run.save(checkpoint(5))

    def full(*arguments: object) -> None:
        raise OSError(28, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Path, name, full)
        if name == "rename":
            with pytest.raises(OSError, match="no space left"):
                run.save(checkpoint(9))
        else:
            with pytest.raises(OSError, match="no space left"):
                run.update(state="failed")
    assert Run.open(run.path).info["state"] == "running"
    assert run.newest().name == "step-000000005"
    assert not list(run.path.rglob(f"{TEMPORARY}*"))


# ------------------------------------------------------------------------------------------------ the end


def test_a_finished_run_is_what_its_manifest_says(run: Run) -> None:
    run.save(checkpoint(5))
    run.save(checkpoint(9))
    run.finish(model=b"the best", card="# card\n", summary={"steps": 9})
    opened = Run.open(run.path)
    assert opened.finished
    assert (opened.info["state"], opened.info["summary"]) == ("finished", {"steps": 9})
    assert opened.weights() == run.path / "model.safetensors"
    assert opened.weights().read_bytes() == b"the best"
    listed = set(json.loads((run.path / MANIFEST).read_text()))
    assert listed == {p.name for p in run.path.iterdir() if p.is_file()} - {MANIFEST}
    assert names(opened) == ["step-000000009"]


def test_the_manifest_is_written_last(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    real = files.write_file

    def watched(path: Path, content: bytes | str) -> None:
        written.append(path.name)
        real(path, content)

    monkeypatch.setattr(files, "write_file", watched)
    run.finish(model=b"m", card="", summary={})
    assert written[-1] == MANIFEST
    assert sorted(written[:-1]) == ["README.md", "model.safetensors", "run.json"]


def test_a_run_killed_while_finishing_still_loads_from_its_checkpoint(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.save(checkpoint(5))
    real = files.write_file
    for survives in range(4):
        written = 0

        def dying(path: Path, content: bytes | str, survives: int = survives) -> None:
            nonlocal written
            if written == survives:
                raise KeyboardInterrupt
            written += 1
            real(path, content)

        with monkeypatch.context() as patch:
            patch.setattr(files, "write_file", dying)
            with pytest.raises(KeyboardInterrupt):
                run.finish(model=b"m", card="", summary={})
        opened = Run.open(run.path)
        assert not opened.finished
        assert opened.weights().read_bytes() == b"model 5"
    run.finish(model=b"m", card="", summary={})
    assert Run.open(run.path).weights().read_bytes() == b"m"


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "run.json", "README.md"])
def test_damage_to_a_finished_run_is_found_before_it_is_used(run: Run, name: str) -> None:
    run.finish(model=b"m", card="card", summary={})
    spoil(run.path / name)
    with pytest.raises(InklingError, match=f"damaged: {name}"):
        run.weights()


@pytest.mark.parametrize("missing", ["kind", "recipe", "data", "normalise"])
def test_a_run_whose_record_lacks_a_part_is_called_damaged(tmp_path: Path, missing: str) -> None:
    record: dict[str, dict[str, str]] = {key: {} for key in REQUIRED if key != missing}
    (tmp_path / "run.json").write_text(json.dumps({"format": 1, **record}), encoding="utf-8")
    with pytest.raises(InklingError, match=f"has no '{missing}', so it is damaged"):
        Run.open(tmp_path)
    assert list_runs(tmp_path.parent) == []
