"""Everything on this machine that training depends on, looked at and judged.

    ok        as it should be
    note      works, but could be better or is good to know
    problem   something to mend before training, with advice

The CPU is judged by the verdict of `hardware.probe`, so the first call may take the seconds of its trials. Memory and
cores are those that a container is granted (cgroup v2) where that is less than the machine has. Nothing leaves the
machine. Left out: graphics cards, and memory on systems without /proc/meminfo.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from inkling.errors import InklingError
from inkling.hardware import LIMIT, Child, Progress, Verdict, cache_folder, is_in_force, probe


@dataclass(frozen=True)
class Finding:
    """One thing `doctor` looked at."""

    subject: str
    value: str
    verdict: Literal["ok", "note", "problem"] = "ok"
    advice: str = ""


def doctor(*, progress: Progress | None = None, child: Child | None = None) -> list[Finding]:
    """Look at everything on this machine that training depends on."""
    findings = [
        Finding("Python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.system()})"),
        _look_at_inkling(),
    ]
    try:
        verdict: Verdict | None = probe(progress=progress, child=child)
    except InklingError as failure:
        verdict = None
        findings.append(Finding("torch", str(failure), "problem", "Install torch anew, as the README says."))
    if verdict:
        findings += [*_look_at_torch(), *_look_at_cpu(verdict)]
    return [*findings, _look_at_memory(), *_look_at_disks(), _look_at_compiler()]


def _look_at_inkling() -> Finding:
    try:
        return Finding("Inkling", metadata.version("inkling-lab"))
    except metadata.PackageNotFoundError:
        return Finding("Inkling", "not installed", "note", "Install it, as the README says; its source alone runs too.")


def _look_at_torch() -> list[Finding]:
    import torch

    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    heavy = "A CPU build of torch is gigabytes smaller and does all that Inkling does." if torch.version.cuda else ""
    threads, cores = torch.get_num_threads(), usable_cores()
    value = f"{threads} for {cores:g} usable of {os.cpu_count()} cores"
    if threads > max(1, cores):
        advice = f"More threads than cores make training slower: set OMP_NUM_THREADS={max(1, int(cores))}."
        thread_finding = Finding("threads", value, "problem", advice)
    elif 2 * threads < cores:  # half is usual: two hardware threads on each core
        advice = f"Set OMP_NUM_THREADS={int(cores)} to use the whole machine."
        thread_finding = Finding("threads", value, "note", advice)
    else:
        thread_finding = Finding("threads", value)
    return [Finding("torch", f"{torch.__version__} ({build} build)", "note" if heavy else "ok", heavy), thread_finding]


def _look_at_cpu(verdict: Verdict) -> list[Finding]:
    limit = verdict.onednn_max_cpu_isa
    announced = ", ".join(verdict.announced) or "nothing of interest"
    findings = [Finding("CPU", f"{verdict.cpu}, {verdict.cores} cores, announces {announced}")]
    if not is_in_force(limit):
        advice = f"Set {LIMIT}={limit} before Python starts: torch was imported first, or a higher value is set."
        findings.append(Finding("found by trying", verdict.sentence, "problem", advice))
    elif limit or not verdict.bf16_safe:
        advice = "Inkling takes care of it; other programs that use torch here need the same limit." if limit else ""
        findings.append(Finding("found by trying", verdict.sentence, "note", advice))
    else:
        findings.append(Finding("found by trying", verdict.sentence))
    for name, rates in (("float32", verdict.float32_gflops), ("bfloat16", verdict.bf16_gflops)):
        if rates:
            value = ", ".join(f"{rate:.3g} GFLOP/s at {shape}" for shape, rate in rates.items())
            findings.append(Finding(f"{name} products", value))
    return findings


def usable_cores() -> float:
    """Cores that this process may use: its affinity, or less where a container is rationed."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = float(len(affinity(0)) if affinity else os.cpu_count() or 1)
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return min(cores, float(quota) / float(period))
    except (OSError, ValueError):  # no such file, or the quota is "max"
        return cores


def _look_at_memory() -> Finding:
    sizes: dict[str, int] = {}
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            key, _, value = line.partition(":")
            sizes[key] = int(value.split()[0]) * 1024
        total, free = sizes["MemTotal"], sizes["MemAvailable"]
    except (OSError, ValueError, KeyError, IndexError):
        return Finding("memory", "unknown on this system")
    with contextlib.suppress(OSError, ValueError):  # a container may be given less
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    free = min(free, total)
    value = f"{free / 2**30:.1f} GiB free of {total / 2**30:.1f}"
    scarce = free < 2**30
    return Finding(
        "memory", value, "note" if scarce else "ok", "Close other programs, or train small." if scarce else ""
    )


def _look_at_disks() -> list[Finding]:
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            findings = [Finding("cache folder", str(cache))]
    except OSError as failure:
        advice = "Set INKLING_CACHE to a folder that can be written; until then the CPU is tried anew at every start."
        findings = [Finding("cache folder", f"{cache} cannot be written: {failure.strerror}", "problem", advice)]
    existing = next((folder for folder in (cache, *cache.parents) if folder.is_dir()), Path("/"))
    for subject, folder in (("disk for runs", Path.cwd()), ("disk for the cache", existing)):
        free = shutil.disk_usage(folder).free
        scarce = free < 2**30
        advice = "Less than 1 GiB is left; checkpoints may not fit." if scarce else ""
        findings.append(
            Finding(subject, f"{free / 2**30:.1f} GiB free at {folder}", "problem" if scarce else "ok", advice)
        )
    return findings


def _look_at_compiler() -> Finding:
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++", "cl"):
        if name and shutil.which(name):
            return Finding("C++ compiler", str(shutil.which(name)))
    return Finding("C++ compiler", "none", "note", "torch.compile needs one (install g++); all else works without.")
