from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from inkling.errors import InklingError
from inkling.runs.presence import LOCK, keep_sample, newest_sample, present, state_of, stop, trainer
from inkling.runs.run import Run

HOLD = """
import sys
from pathlib import Path
from inkling.runs.presence import present
from inkling.runs.run import Run
with present(Run(Path(sys.argv[1]), {"state": "running"})):
    try:
        print("held", flush=True)
        sys.stdin.read()
    except KeyboardInterrupt:
        print("stopped", flush=True)
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, {"state": "running"})


def hold(run: Run) -> subprocess.Popen[str]:
    """Another process that holds the run."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(run.path)], stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_nobody_trains_a_run_that_nobody_holds(run: Run) -> None:
    assert trainer(run) is None
    assert state_of(run) == "interrupted"  # it was written down as running, and its process is gone


def test_another_process_sees_who_trains(run: Run) -> None:
    with hold(run) as process:
        assert trainer(run) == process.pid
        assert state_of(run) == "running"
        process.communicate()
    assert trainer(run) is None
    assert not (run.path / LOCK).exists()


def test_a_training_that_was_killed_is_not_taken_for_one_that_goes_on(run: Run) -> None:
    with hold(run) as process:
        process.kill()
        process.communicate()
    assert (run.path / LOCK).exists()  # it had no time to tidy up
    assert trainer(run) is None
    with present(run):
        assert (run.path / LOCK).read_text() == f"{os.getpid()}\n"


def test_no_run_is_trained_twice_at_a_time(run: Run) -> None:
    with hold(run) as process:
        with pytest.raises(InklingError, match=f"by process {process.pid}; wait for it, or stop it"), present(run):
            pass
        process.communicate()


def test_stop_is_what_a_terminal_says(run: Run) -> None:
    with hold(run) as process:
        stop(run)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopped\n"
        process.communicate()
    with pytest.raises(InklingError, match="is not being trained now"):
        stop(run)


def test_what_a_model_writes_is_seen_while_it_trains_and_goes_with_the_training(run: Run) -> None:
    assert newest_sample(run) is None
    with present(run):
        keep_sample(run.path, "To be, or …")
        assert newest_sample(run) == "To be, or …"
    assert newest_sample(run) is None
    assert list(run.path.iterdir()) == []


def test_a_finished_run_is_finished_whoever_holds_it(run: Run) -> None:
    (run.path / "manifest.json").write_text("{}")
    with present(run):
        assert state_of(run) == "finished"


def test_a_run_that_failed_says_so(tmp_path: Path) -> None:
    assert state_of(Run(tmp_path, {"state": "failed"})) == "failed"


@pytest.mark.slow
def test_runs_stop_ends_a_training_that_can_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "inkling"]
    subprocess.run([*command, "data", "make", "text", "world.txt"], cwd=tmp_path, check=True, capture_output=True)
    training = subprocess.Popen(
        [*command, "train", "gru", "world.txt", "--minutes", "5"], cwd=tmp_path, stderr=subprocess.PIPE
    )
    metrics = tmp_path / "runs/gru-world/metrics.jsonl"
    until(lambda: metrics.exists() and metrics.stat().st_size > 0)
    subprocess.run([*command, "runs", "stop", "runs/gru-world"], cwd=tmp_path, check=True, capture_output=True)
    assert training.wait(60) == 128 + signal.SIGINT
    assert training.stderr is not None
    assert b"inkling resume runs/gru-world" in training.stderr.read()
    training.stderr.close()
    assert state_of(Run.open(tmp_path / "runs/gru-world")) == "interrupted"
