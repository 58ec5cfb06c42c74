"""A training that is killed at any moment leaves a run that loads and that goes on to the same bits, or no run.

Two ways to choose the moment. At random: `kill -9` after a random time, often several times in the life of one run.
One by one: the process dies before the n-th system call that touches a disk, for many n, while a run is made, while
its last checkpoint is written and it is finished, and while it is resumed. strace does that where it may be used; where
not, Python's own audit events (and fsync, which has none) stand in for system calls.

This file is also a program: everything is imported once, and each training is a fork of it, which takes no time.
What is compared: `model.safetensors` to the byte, `metrics.jsonl` but for the seconds.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
import pytest

Way = Literal["strace", "audit"]
CALLS = ",".join(
    f"?{name}"
    for name in (
        *(
            "openat",
            "open",
            "creat",
            "write",
            "pwrite64",
            "writev",
            "ftruncate",
            "fsync",
            "fdatasync",
            "sync_file_range",
        ),
        *("rename", "renameat", "renameat2", "mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "link", "symlink"),
    )
)
EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate")
PHASES = ("create", "finish", "resume")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill")


def run_this_file(*arguments: str) -> Any:
    ended = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    print(ended.stdout)  # noqa: T201 - shown by pytest when a check fails, and with -rP always
    return json.loads(ended.stdout)


def check_kills(found: Any, kills: int) -> None:
    assert found["kills"] == kills
    assert found["unloadable"] == []
    assert found["different"] == []
    assert found["leftovers"] == []


@pytest.mark.slow
def test_kills_within_an_epoch_of_a_transformer_lose_nothing(tmp_path: Path) -> None:
    """Batches, dropout and the moment from which on texts are longer are functions of the step."""
    found = run_this_file("kills of a gpt", str(tmp_path), "6", "3")
    check_kills(found, 6)
    assert found["while running"] >= 3  # or the moments were badly chosen


@pytest.mark.slow
def test_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    found = run_this_file("kills", str(tmp_path), "25", "2")
    check_kills(found, 25)
    assert found["while running"] >= 15  # or the moments were badly chosen


@pytest.mark.slow
def test_a_death_before_some_of_the_writes_loses_nothing(tmp_path: Path) -> None:
    found = run_this_file("deaths", str(tmp_path), "audit", "15")
    assert min(found["calls"][phase] for phase in PHASES) >= 5
    check_kills(found, sum(-(-found["calls"][phase] // 15) for phase in PHASES) - found.get("never came", 0))
    assert found.get("never came", 0) <= 2


@pytest.mark.slow
def test_a_death_before_every_third_system_call_loses_nothing(tmp_path: Path) -> None:
    """Every one of them takes two minutes: `python tests/cli/test_kill.py deaths FOLDER strace 1`."""
    found = run_this_file("deaths", str(tmp_path), "strace", "3")
    assert min(found["calls"][phase] for phase in PHASES) >= 5
    check_kills(found, sum(-(-found["calls"][phase] // 3) for phase in PHASES) - found.get("never came", 0))
    assert found.get("never came", 0) <= 8


# ------------------------------------------------------------------------------------------ the program


class Lab:
    """A text, the recipe of a training of `steps` steps with a checkpoint after each, and an undisturbed run of it."""

    def __init__(self, folder: Path, steps: int, kind: Literal["bigram", "gpt"] = "bigram") -> None:
        from inkling.recipes.bigram import BigramRecipe
        from inkling.recipes.gpt import GPTRecipe
        from inkling.text.grammar import grammar_text

        self.folder = folder
        self.text = grammar_text(np.random.default_rng(7), 1000)
        (folder / "text.txt").write_text(self.text, encoding="utf-8")
        files = (str(folder / "text.txt"),)
        self.recipe: BigramRecipe | GPTRecipe
        if kind == "bigram":
            self.recipe = BigramRecipe(files=files, vocabulary=100, dimension=6, hidden=6, patience=0, steps=steps)
        else:
            read = GPTRecipe(files=files, context=16, batch=4, short_share=0.6, precision="float32", judged=500)
            self.recipe = replace(read, layers=1, width=16, heads=2, dropout=0.1, steps=steps)
        self.reference = folder / "reference"
        started = time.monotonic()
        assert self.finish(self.reference) == 0
        self.full_seconds = time.monotonic() - started
        self.kills: Counter[str] = Counter()
        self.unloadable: list[str] = []
        self.different: list[str] = []
        self.leftovers: list[str] = []

    def begin(self, run: Path) -> Any:
        from inkling.recipes.bigram import BigramRecipe, resume_bigram, train_bigram
        from inkling.recipes.gpt import resume_gpt, train_gpt
        from inkling.runs.run import Run

        if isinstance(self.recipe, BigramRecipe):
            return resume_bigram(Run.open(run)) if run.exists() else train_bigram(self.recipe, run)
        return resume_gpt(Run.open(run)) if run.exists() else train_gpt(self.recipe, run)

    def go_on(self, run: Path) -> None:
        """What a user does after a crash: resume if there is a run, else train."""
        if not (run / "manifest.json").exists():
            for _ in self.begin(run):
                pass

    def finish(self, run: Path) -> int:
        return wait_for(fork(lambda: self.go_on(run)))

    def use(self, run: Path) -> None:
        import inkling

        scores = inkling.load(run).score(self.text.splitlines(keepends=True)[:20])
        assert np.isfinite(scores.nats).all()

    def check(self, run: Path, moment: str) -> None:
        """After a death: the run loads, if it is there."""
        if run.exists() and wait_for(fork(lambda: self.use(run))) != 0:
            self.unloadable.append(moment)

    def check_end(self, run: Path, moment: str) -> None:
        """It goes on to the same bits, nothing is left lying about, and it makes room for the next."""
        if self.finish(run) != 0 or outcome(run) != outcome(self.reference):
            self.different.append(moment)
        self.leftovers += [f"{moment}: {p}" for p in self.folder.rglob(".writing-*")]
        shutil.rmtree(run, ignore_errors=True)

    def report(self) -> dict[str, Any]:
        return {"unloadable": self.unloadable, "different": self.different, "leftovers": self.leftovers, **self.kills}


def outcome(run: Path) -> tuple[bytes, list[Any]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return (run / "model.safetensors").read_bytes(), [{**row, "seconds": None} for row in rows]


def fork(work: Callable[[], None]) -> int:
    process = os.fork()
    if process:
        return process
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def bigram_recipe() -> Any:
    """The module, as something whose functions may be replaced."""
    from inkling.recipes import bigram

    return bigram


def wait_for(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def stands_at(run: Path, process: int, step: int) -> bool:
    """Waits until a training has come to that step, however fast this computer is; False when it ended before."""
    metrics = run / "metrics.jsonl"
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < step:
        if os.waitpid(process, os.WNOHANG)[0]:
            return False
        time.sleep(0.001)
    return True


def kill_at_random(folder: Path, kills: int, seed: int, kind: Literal["bigram", "gpt"] = "bigram") -> dict[str, Any]:
    lab = Lab(folder, steps=60, kind=kind)
    generator = np.random.default_rng(seed)
    lives = 0
    while lab.kills["kills"] < kills:
        run, lives = folder / f"run-{lives}", lives + 1
        while lab.kills["kills"] < kills:
            process = fork(functools.partial(lab.go_on, run))
            share = generator.uniform(-0.2, 1.0)  # of the steps; below zero is before the first of them
            if share > 0 and not stands_at(run, process, round(share * lab.recipe.steps)):
                lab.kills["ended before the kill"] += 1
                break
            time.sleep(generator.uniform(0, lab.full_seconds / lab.recipe.steps))  # anywhere within a step
            os.kill(process, signal.SIGKILL)
            if wait_for(process) == 0:
                lab.kills["ended before the kill"] += 1
                break
            lab.kills["kills"] += 1
            finished = (run / "manifest.json").exists()
            lab.kills["after the end" if finished else "while running" if run.exists() else "before the run"] += 1
            lab.check(run, f"kill {lab.kills['kills']}")
            if generator.random() < 0.5:  # else the resumed run is killed, too
                break
        lab.check_end(run, f"life {lives}")
    return {**lab.report(), "lives": lives, "full_seconds": round(lab.full_seconds, 3)}


# ------------------------------------------------------------------------------------------ death by count


class Gate:
    """Where a training stands still until whoever counts is ready. What comes after it is counted."""

    def __init__(self) -> None:
        self.ready, self.open = os.pipe(), os.pipe()

    def stand(self) -> None:
        os.write(self.ready[1], b".")
        os.read(self.open[0], 1)

    def wait_until_it_stands(self) -> None:
        os.read(self.ready[0], 1)

    def let_go(self) -> None:
        os.write(self.open[1], b".")

    def close(self) -> None:
        for handle in (*self.ready, *self.open):
            os.close(handle)


def perform(lab: Lab, phase: str, run: Path, stand: Callable[[], None]) -> NoReturn:
    """One phase of a training: comes to the gate, does what is to be interrupted, and dies."""
    from inkling.runs import files

    if phase == "finish":
        training = lab.begin(run)
        for _ in range(lab.recipe.steps - 1):
            next(training)
        stand()
        for _ in training:
            pass
        os._exit(0)
    write_folder, sweep, restore = files.write_folder, files.sweep, bigram_recipe().restore

    def write_folder_and_die(path: Path, files: Mapping[str, bytes]) -> None:
        stand()
        write_folder(path, files)
        os._exit(0)

    def sweep_behind_the_gate(folder: Path) -> None:
        files.sweep = sweep
        stand()
        sweep(folder)

    def restore_and_die(*arguments: Any) -> None:
        restore(*arguments)
        os._exit(0)

    if phase == "create":
        files.write_folder = write_folder_and_die
    else:
        files.sweep = sweep_behind_the_gate
        bigram_recipe().restore = restore_and_die
    next(lab.begin(run))
    os._exit(1)


def stop_early(lab: Lab, run: Path) -> None:
    """A run that stands one step before its end, as a kill leaves it."""

    def work() -> None:
        training = lab.begin(run)
        for _ in range(lab.recipe.steps - 1):
            next(training)
        os._exit(0)

    assert wait_for(fork(work)) == 0


Moments = list[tuple[str, int]]  # what, and the how-manieth of its kind


def list_audit_moments(lab: Lab, phase: str, run: Path) -> Moments:
    return [("event", number) for number in range(1, count_audit_events(lab, phase, run, 0)[1] + 1)]


def die_by_audit(lab: Lab, phase: str, run: Path, moment: tuple[str, int]) -> bool:
    """Dies before that event; whether it came."""
    return count_audit_events(lab, phase, run, moment[1])[0] == 9


def count_audit_events(lab: Lab, phase: str, run: Path, last: int) -> tuple[int, int]:
    """Dies before event number `last` with exit code 9, or ends with 0; that code, and how many events there were."""
    counter, told = os.pipe()

    def work() -> None:
        count = 0
        counting = False

        def tick() -> None:
            nonlocal count
            if counting:
                count += 1
                os.write(told, b".")
                if count == last:
                    os._exit(9)

        def hook(event: str, arguments: Any) -> None:
            # A module that is imported now is none of our files; rmtree names files relative to their folder.
            if event in EVENTS and isinstance(arguments[0], str | Path):
                path = Path(arguments[0])
                if not path.is_absolute() or path.is_relative_to(lab.folder):
                    tick()

        fsync = os.fsync

        def counted_fsync(fd: Any) -> None:
            tick()
            fsync(fd)

        def stand() -> None:
            nonlocal counting
            counting = True

        sys.addaudithook(hook)
        os.fsync = counted_fsync
        perform(lab, phase, run, stand)

    code = wait_for(fork(work))
    assert code in (0, 9), code
    os.close(told)
    events = len(os.read(counter, 1 << 16))
    os.close(counter)
    return code, events


def list_strace_moments(lab: Lab, phase: str, run: Path) -> Moments:
    """strace counts each system call by itself, so a moment is the n-th call of one name."""
    _, log = trace(lab, phase, run, [])
    counts = Counter(re.findall(r"^\d+ +([a-z_0-9]+)\(", log, re.MULTILINE))
    return [(name, number) for name, count in counts.items() for number in range(1, count + 1)]


def die_by_strace(lab: Lab, phase: str, run: Path, moment: tuple[str, int]) -> bool:
    """Dies before that system call is carried out; whether it came."""
    name, number = moment
    code, _ = trace(lab, phase, run, ["-e", f"inject={name}:signal=KILL:when={number}"])
    return code == -signal.SIGKILL


def trace(lab: Lab, phase: str, run: Path, options: list[str]) -> tuple[int, str]:
    gate = Gate()
    process = fork(lambda: perform(lab, phase, run, gate.stand))
    gate.wait_until_it_stands()
    log = lab.folder / "strace.log"
    command = ["strace", "-f", "-o", str(log), "-e", f"trace={CALLS}", *options, "-p", str(process)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        said = tracer.stderr.readline()
        gate.let_go()
        code = wait_for(process)
        said += tracer.stderr.read()
    gate.close()
    if "attached" not in said:
        raise PermissionError(said)
    assert code in (0, -signal.SIGKILL), code
    return code, log.read_text(encoding="utf-8")


def strace_works(lab: Lab) -> bool:
    run = lab.folder / "tried"
    try:
        return shutil.which("strace") is not None and bool(list_strace_moments(lab, "create", run))
    except PermissionError:
        return False
    finally:
        shutil.rmtree(run, ignore_errors=True)


def die_everywhere(folder: Path, way: Way, every: int) -> dict[str, Any]:
    lab = Lab(folder, steps=3)
    if way == "strace" and not strace_works(lab):
        way = "audit"
    list_moments = list_strace_moments if way == "strace" else list_audit_moments
    die = die_by_strace if way == "strace" else die_by_audit
    run, calls = folder / "run", {}
    for phase in PHASES:

        def set_up(phase: str = phase) -> None:
            if phase == "resume":
                stop_early(lab, run)

        set_up()
        moments = list_moments(lab, phase, run)
        calls[phase] = len(moments)
        shutil.rmtree(run)
        for moment in moments[::every]:
            set_up()
            # A moment may not come again: a module that was compiled while moments were counted is now only read.
            lab.kills["kills" if die(lab, phase, run, moment) else "never came"] += 1
            shown = f"{phase}, before {moment[0]} number {moment[1]}"
            lab.check(run, shown)
            lab.check_end(run, shown)
    return {**lab.report(), "way": way, "calls": calls}


def work(arguments: list[str]) -> None:
    import torch

    import inkling  # noqa: F401
    from inkling.recipes import streamed
    from inkling.runs import loading  # noqa: F401
    from inkling.runs.recording import Recorder

    torch.set_num_threads(1)  # a fork has no threads but its own
    modules: list[Any] = [bigram_recipe(), streamed]
    for module in modules:
        module.Recorder = functools.partial(Recorder, save_every_seconds=0.0)
    job, folder, third, fourth = arguments
    if job.startswith("kills"):
        found = kill_at_random(Path(folder), int(third), int(fourth), "gpt" if job.endswith("gpt") else "bigram")
    else:
        found = die_everywhere(Path(folder), "strace" if third == "strace" else "audit", int(fourth))
    sys.stdout.write(json.dumps(found, indent=1))


if __name__ == "__main__":
    work(sys.argv[1:])
