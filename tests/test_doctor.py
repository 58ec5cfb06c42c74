"""What the doctor says of a machine: the verdict on the CPU and every scarcity are given, the rest is this machine."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import inkling
from inkling import hardware
from inkling.doctor import Finding, doctor, usable_cores
from inkling.hardware import LIMIT, Outcome, Verdict

VERDICT = Verdict(
    cpu="Some CPU",
    cores=2,
    torch_version="9.9.9+cpu",
    announced=("avx2", "avx512f"),
    onednn_max_cpu_isa=None,
    bf16_safe=True,
    float32_gflops={"64×128×128": 12.345, "512×512×512": 100.0},
    bf16_gflops={"64×128×128": 20.0, "512×512×512": 300.0},
    precision="bfloat16",
    sentence="All is well.",
)


@pytest.fixture(autouse=True)
def quiet_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache and no limit on the instructions."""
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(LIMIT, raising=False)
    monkeypatch.delenv("DNNL_MAX_CPU_ISA", raising=False)
    judge(monkeypatch, VERDICT)


def judge(monkeypatch: pytest.MonkeyPatch, verdict: Verdict) -> None:
    def probe(**options: object) -> Verdict:
        return verdict

    monkeypatch.setattr("inkling.doctor.probe", probe)


def findings() -> dict[str, Finding]:
    found = doctor()
    subjects = {finding.subject: finding for finding in found}
    assert len(subjects) == len(found)
    return subjects


def give_files(monkeypatch: pytest.MonkeyPatch, contents: dict[str, str]) -> None:
    """Files of the system with other contents than this machine has."""
    read_text = Path.read_text

    def read(path: Path, *arguments: Any, **options: Any) -> str:
        return contents[str(path)] if str(path) in contents else read_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", read)


def test_everything_that_training_depends_on_is_looked_at_in_order(tmp_path: Path) -> None:
    found = findings()
    assert list(found) == [
        *("Python", "Inkling", "torch", "threads", "CPU", "found by trying", "float32 products", "bfloat16 products"),
        *("memory", "cache folder", "disk for runs", "disk for the cache", "C++ compiler"),
    ]
    assert found["Inkling"].value == inkling.__version__
    assert found["torch"].value.startswith(f"{metadata.version('torch')} (")
    assert found["CPU"].value == "Some CPU, 2 cores, announces avx2, avx512f"
    assert found["found by trying"] == Finding("found by trying", "All is well.")
    assert found["float32 products"].value == "12.3 GFLOP/s at 64×128×128, 100 GFLOP/s at 512×512×512"
    assert found["cache folder"] == Finding("cache folder", str(tmp_path / "cache"))


def test_a_limit_in_force_is_a_note_and_one_that_is_not_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch, replace(VERDICT, onednn_max_cpu_isa="AVX512_CORE", sentence="A trial died."))
    trying = findings()["found by trying"]
    assert (trying.value, trying.verdict) == ("A trial died.", "problem")
    assert trying.advice.startswith("Set ONEDNN_MAX_CPU_ISA=AVX512_CORE before Python starts")
    monkeypatch.setenv(LIMIT, "AVX2")  # a lower limit is as safe
    trying = findings()["found by trying"]
    assert (trying.verdict, trying.advice[:25]) == ("note", "Inkling takes care of it;")


def test_a_cpu_without_safe_bf16_is_a_note_that_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch, replace(VERDICT, bf16_safe=False, bf16_gflops={}, sentence="bfloat16 fails here."))
    found = findings()
    assert found["found by trying"] == Finding("found by trying", "bfloat16 fails here.", "note", "")
    assert "bfloat16 products" not in found


def test_a_torch_that_does_not_start_is_a_problem_and_the_rest_is_still_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("inkling.doctor.probe", hardware.probe)
    found = doctor(child=lambda limit: Outcome(1, "", "ImportError: libgomp.so.1 is missing\n"))
    by_subject = {finding.subject: finding for finding in found}
    assert by_subject["torch"].verdict == "problem"
    assert "libgomp.so.1 is missing" in by_subject["torch"].value
    assert {"memory", "disk for runs", "C++ compiler"} <= set(by_subject)
    assert "CPU" not in by_subject


@pytest.mark.parametrize(
    ("threads", "cores", "verdict", "advice"),
    [
        (2, 2.0, "ok", ""),
        (2, 4.0, "ok", ""),
        (1, 0.5, "ok", ""),
        (2, 4.5, "note", "Set OMP_NUM_THREADS=4 to use the whole machine."),
        (4, 1.5, "problem", "More threads than cores make training slower: set OMP_NUM_THREADS=1."),
    ],
)
def test_threads_should_be_as_many_as_the_usable_cores_or_half_of_them(
    monkeypatch: pytest.MonkeyPatch, threads: int, cores: float, verdict: str, advice: str
) -> None:
    monkeypatch.setattr("torch.get_num_threads", lambda: threads)
    monkeypatch.setattr("inkling.doctor.usable_cores", lambda: cores)
    found = findings()["threads"]
    assert found.value == f"{threads} for {cores:g} usable of {os.cpu_count()} cores"
    assert (found.verdict, found.advice) == (verdict, advice)


def test_a_rationed_container_has_fewer_usable_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3}, raising=False)
    for content, cores in (("150000 100000\n", 1.5), ("900000 100000\n", 4.0), ("max 100000\n", 4.0)):
        give_files(monkeypatch, {"/sys/fs/cgroup/cpu.max": content})
        assert usable_cores() == cores


def test_memory_is_what_a_container_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = "MemTotal:  8388608 kB\nMemFree:  1 kB\nMemAvailable:  6291456 kB\n"
    give_files(monkeypatch, {"/proc/meminfo": machine, "/sys/fs/cgroup/memory.max": "max\n"})
    assert findings()["memory"] == Finding("memory", "6.0 GiB free of 8.0")
    give_files(monkeypatch, {"/proc/meminfo": machine, "/sys/fs/cgroup/memory.max": f"{2**29}\n"})
    assert findings()["memory"] == Finding(
        "memory", "0.5 GiB free of 0.5", "note", "Close other programs, or train small."
    )
    give_files(monkeypatch, {"/proc/meminfo": ""})
    assert findings()["memory"].value == "unknown on this system"


def test_a_cache_folder_that_cannot_be_written_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a_file").write_text("")
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path / "a_file" / "inside"))
    found = findings()
    assert found["cache folder"].verdict == "problem"
    assert "cannot be written" in found["cache folder"].value
    assert found["cache folder"].advice.startswith("Set INKLING_CACHE to a folder that can be written")
    assert found["disk for the cache"].value.endswith(f"at {tmp_path}")


@pytest.mark.parametrize(("free_bytes", "verdict"), [(2**30, "ok"), (2**30 - 1, "problem")])
def test_less_than_a_gibibyte_of_disk_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, free_bytes: int, verdict: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free_bytes))
    found = findings()
    assert found["disk for runs"].value == f"1.0 GiB free at {Path.cwd()}"
    assert found["disk for runs"].verdict == found["disk for the cache"].verdict == verdict


def test_a_missing_compiler_is_only_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert findings()["C++ compiler"].verdict == "note"
    monkeypatch.setenv("CXX", "my-compiler")
    monkeypatch.setattr(shutil, "which", lambda name: f"/opt/{name}")
    assert findings()["C++ compiler"] == Finding("C++ compiler", "/opt/my-compiler")


def test_source_that_is_not_installed_is_only_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", fail)
    assert (findings()["Inkling"].value, findings()["Inkling"].verdict) == ("not installed", "note")
