"""The guard against CPUs that announce what they cannot do: fake announcements, fake deaths, and one real trial."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import inkling
from inkling import hardware
from inkling.errors import InklingError, UsageError
from inkling.hardware import LIMIT, SHAPES, Outcome

SIGILL = -4
AMX = "fpu sse2 avx2 avx512f avx512_bf16 amx_bf16 amx_tile amx_int8"
NO_AMX = "fpu sse2 avx2 avx512f avx512_bf16"
OLD = "fpu sse2 avx2"

Machine = Callable[[str], None]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with the given flags, an empty cache, no torch started and no limit set."""
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DNNL_MAX_CPU_ISA", raising=False)
    monkeypatch.setenv(LIMIT, "")  # so that monkeypatch puts back what was there, whatever guard does
    monkeypatch.delenv(LIMIT)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(hardware, "_own_limit", None)
    monkeypatch.setattr(hardware, "CPUINFO", str(tmp_path / "cpuinfo"))
    monkeypatch.setattr(hardware, "torch_version", lambda: "9.9.9+cpu")

    def announce(flags: str) -> None:
        core = f"cpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Some CPU\nstepping\t: 8\nflags\t\t: {flags}\n"
        (tmp_path / "cpuinfo").write_text(f"{core}\n{core.replace('fpu', 'fpu never_read')}\n", encoding="utf-8")

    return announce


def healthy(bf16_gflops: float = 10.0, bf16_error: float = 0.003) -> Outcome:
    said = [
        {"torch": "9.9.9"},
        {"float32_error": 1e-7},
        {"float32_gflops": dict.fromkeys(SHAPES, 100.0)},
        {"bf16_error": bf16_error},
        {"bf16_gflops": dict.fromkeys(SHAPES, bf16_gflops)},
        {"finished": True},
    ]
    return Outcome(0, "".join(json.dumps(line) + "\n" for line in said))


def dead_at_bf16(return_code: int | None = SIGILL) -> Outcome:
    lines = healthy().output.splitlines(keepends=True)
    return Outcome(return_code, "".join(lines[:3]) + '{"bf16_err')  # death cut the last line in half


class Children:
    """Fake trials: what happens under each limit, and which limits were tried."""

    def __init__(self, outcomes: dict[str | None, Outcome]) -> None:
        self.outcomes = outcomes
        self.tried: list[str | None] = []

    def __call__(self, limit: str | None) -> Outcome:
        self.tried.append(limit)
        return self.outcomes[limit]


def cached_files() -> list[Path]:
    return sorted(Path(os.environ["INKLING_CACHE"]).glob("*"))


def test_a_healthy_machine_needs_no_limit_and_one_trial(machine: Machine) -> None:
    machine(AMX)
    children = Children({None: healthy(bf16_gflops=300.0)})
    verdict = hardware.probe(child=children)
    assert children.tried == [None]
    assert verdict.onednn_max_cpu_isa is None
    assert verdict.bf16_safe
    assert verdict.precision == "bfloat16"
    assert verdict.cpu == "Some CPU"
    assert verdict.announced == ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16")
    assert verdict.float32_gflops["512×512×512"] == 100.0
    assert verdict.sentence == "bfloat16 is safe and 3 times as fast as float32, so bfloat16 is used."


def test_announced_amx_that_dies_of_an_illegal_instruction_is_limited(machine: Machine) -> None:
    machine(AMX)
    children = Children({None: dead_at_bf16(), "AVX512_CORE_BF16": healthy(bf16_gflops=180.0)})
    verdict = hardware.probe(child=children)
    assert children.tried == [None, "AVX512_CORE_BF16"]
    assert verdict.onednn_max_cpu_isa == "AVX512_CORE_BF16"
    assert verdict.precision == "bfloat16"
    assert verdict.sentence == (
        "The CPU announces AMX but a trial ended in an illegal instruction, so oneDNN is limited to AVX512_CORE_BF16; "
        "bfloat16 is safe and 1.8 times as fast as float32, so bfloat16 is used."
    )


@pytest.mark.parametrize("error", [0.5, float("nan"), float("inf")])
def test_wrong_numbers_count_as_unsafe(machine: Machine, error: float) -> None:
    machine(NO_AMX)
    wrong = healthy(bf16_gflops=900.0, bf16_error=error)
    children = Children({None: wrong, "AVX512_CORE_BF16": wrong, "AVX512_CORE": healthy()})
    verdict = hardware.probe(child=children)
    assert verdict.onednn_max_cpu_isa == "AVX512_CORE"
    assert "gave wrong bfloat16 products" in verdict.sentence


def test_a_machine_where_bf16_always_dies_trains_in_float32(machine: Machine) -> None:
    machine(AMX)
    dead = dead_at_bf16()
    children = Children({None: dead, "AVX512_CORE_BF16": dead, "AVX512_CORE": dead, "AVX2": dead})
    verdict = hardware.probe(child=children)
    assert not verdict.bf16_safe
    assert verdict.precision == "float32"
    assert verdict.bf16_gflops == {}
    assert hardware.precision("auto") == "float32"
    with pytest.raises(InklingError, match="bfloat16 was asked for but fails on this CPU"):
        hardware.precision("bfloat16")


@pytest.mark.parametrize(("rate", "chosen"), [(129.0, "float32"), (131.0, "bfloat16")])
def test_bf16_must_pay(machine: Machine, rate: float, chosen: str) -> None:
    machine(NO_AMX)
    assert hardware.probe(child=Children({None: healthy(bf16_gflops=rate)})).precision == chosen


def test_a_torch_that_does_not_start_is_said_in_one_sentence(machine: Machine) -> None:
    machine(OLD)
    broken = Children({None: Outcome(1, "", "Traceback\nImportError: libgomp.so.1 is missing\n")})
    with pytest.raises(InklingError, match=r"cannot multiply two matrices .*libgomp.so.1 is missing"):
        hardware.probe(child=broken)


def test_a_verdict_is_remembered_by_cpu_and_torch_build(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(AMX)
    children = Children({None: healthy()})
    first = hardware.probe(child=children)
    assert hardware.probe(child=children) == first
    assert len(children.tried) == 1
    assert len(cached_files()) == 1

    monkeypatch.setattr(hardware, "torch_version", lambda: "9.9.10+cpu")
    hardware.probe(child=children)
    assert len(children.tried) == 2
    machine(AMX + " a_new_flag")
    hardware.probe(child=children)
    assert len(children.tried) == 3
    hardware.probe(force=True, child=children)
    assert len(children.tried) == 4


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"signature": 1}', "\x00", '{"signature": "x", "verdict": {}}'])
def test_a_damaged_memory_is_tried_anew(machine: Machine, damage: str) -> None:
    machine(AMX)
    children = Children({None: healthy()})
    first = hardware.probe(child=children)
    (file,) = cached_files()
    file.write_text(damage, encoding="utf-8")
    hardware.guard()
    assert hardware.probe(child=children) == first
    assert len(children.tried) == 2


def test_a_limit_that_onednn_does_not_know_is_not_believed(machine: Machine) -> None:
    machine(AMX)
    children = Children({None: healthy()})
    hardware.probe(child=children)
    (file,) = cached_files()
    file.write_text(
        file.read_text("utf-8").replace('"onednn_max_cpu_isa": null', '"onednn_max_cpu_isa": "ANY"'), "utf-8"
    )
    hardware.guard()
    assert os.environ[LIMIT] == "AVX512_CORE_BF16"


def test_a_timeout_says_nothing_about_the_cpu_and_is_not_remembered(machine: Machine) -> None:
    machine(NO_AMX)
    late = dead_at_bf16(return_code=None)
    verdict = hardware.probe(child=Children({None: late, "AVX512_CORE_BF16": healthy()}))
    assert verdict.onednn_max_cpu_isa == "AVX512_CORE_BF16"
    assert cached_files() == []


def test_an_unwritable_cache_is_survived(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(AMX)
    (tmp_path / "a_file").write_text("")
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path / "a_file" / "inside"))
    children = Children({None: healthy()})
    assert hardware.probe(child=children) == hardware.probe(child=children)
    assert len(children.tried) == 1


def test_guard_is_conservative_about_amx_until_tried(machine: Machine) -> None:
    machine(AMX)
    hardware.guard()
    assert os.environ[LIMIT] == "AVX512_CORE_BF16"


@pytest.mark.parametrize("flags", [NO_AMX, OLD, ""])
def test_guard_leaves_a_cpu_without_amx_alone(machine: Machine, flags: str) -> None:
    machine(flags)
    hardware.guard()
    assert LIMIT not in os.environ


def test_guard_does_nothing_where_there_is_no_cpuinfo(machine: Machine) -> None:
    hardware.guard()
    assert LIMIT not in os.environ


def test_guard_follows_the_verdict(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(AMX)
    dead = dead_at_bf16()
    hardware.probe(child=Children({None: dead, "AVX512_CORE_BF16": dead, "AVX512_CORE": healthy()}))
    monkeypatch.delenv(LIMIT)
    monkeypatch.setattr(hardware, "_own_limit", None)
    hardware.guard()
    assert os.environ[LIMIT] == "AVX512_CORE"


def test_a_trial_that_finds_nothing_wrong_lifts_the_guards_own_limit(machine: Machine) -> None:
    machine(AMX)
    hardware.guard()
    hardware.probe(child=Children({None: healthy()}))
    assert LIMIT not in os.environ
    hardware.guard()
    assert LIMIT not in os.environ


def test_the_users_own_limit_is_never_changed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(AMX)
    monkeypatch.setenv(LIMIT, "AVX2")
    hardware.guard()
    hardware.probe(child=Children({None: healthy()}))
    assert os.environ[LIMIT] == "AVX2"


def test_guard_comes_too_late_once_torch_is_there(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(AMX)
    monkeypatch.setitem(sys.modules, "torch", sys)
    hardware.guard()
    assert LIMIT not in os.environ
    children = Children({None: dead_at_bf16(), "AVX512_CORE_BF16": healthy(bf16_gflops=200.0)})
    assert hardware.precision("auto", child=children) == "float32"  # bfloat16 would pay, but not in this process
    with pytest.raises(InklingError, match=r"ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 .* not in force"):
        hardware.precision("bfloat16")
    monkeypatch.setenv(LIMIT, "AVX512_CORE")  # a lower limit is as safe
    assert hardware.precision("bfloat16") == "bfloat16"


def test_float32_needs_no_trial_and_nonsense_is_refused(machine: Machine) -> None:
    machine(AMX)
    children = Children({})
    assert hardware.precision("float32", child=children) == "float32"
    with pytest.raises(UsageError, match="'float16', but one of auto, float32 and bfloat16"):
        hardware.precision("float16", child=children)  # type: ignore[arg-type]
    assert children.tried == []


def test_guard_imports_neither_torch_nor_other_heavy_things(tmp_path: Path) -> None:
    """The first import of inkling decides; afterwards the environment is ready for torch."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"model name : Some CPU\nflags : {AMX}\n\n")
    code = (
        "import sys, os, inkling.hardware as h\n"
        f"h.CPUINFO = {str(cpuinfo)!r}\n"
        "h.guard()\n"
        "heavy = {'torch', 'numpy', 'rich', 'platformdirs', 'importlib.metadata', 'subprocess'} & set(sys.modules)\n"
        "print(sorted(heavy), os.environ['ONEDNN_MAX_CPU_ISA'])\n"
    )
    environment = {key: value for key, value in os.environ.items() if key not in (LIMIT, "DNNL_MAX_CPU_ISA")}
    environment["INKLING_CACHE"] = str(tmp_path)
    environment["PYTHONPATH"] = str(Path(inkling.__file__).parents[1])
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == "[] AVX512_CORE_BF16\n"


def test_the_cache_folder_is_the_one_of_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    monkeypatch.delenv("INKLING_CACHE", raising=False)
    for home in ("", "/somewhere/else"):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        assert str(hardware.cache_folder()) == platformdirs.user_cache_dir("inkling", appauthor=False)


def test_the_torch_version_is_read_without_importing_torch() -> None:
    from importlib.metadata import version

    assert hardware.torch_version() == version("torch")


@pytest.mark.skipif(os.name != "posix", reason="signals end processes in another way elsewhere")
def test_a_child_that_really_dies_is_heard_up_to_its_death(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os\nprint(os.environ.get('ONEDNN_MAX_CPU_ISA'), flush=True)\nos.kill(os.getpid(), 4)"
    monkeypatch.setattr(hardware, "TRIAL", code)
    monkeypatch.setenv(LIMIT, "AVX2")  # of this process, not of the trial
    assert hardware.run_trial(None) == Outcome(SIGILL, "None\n")
    assert hardware.run_trial("AVX512_CORE") == Outcome(SIGILL, "AVX512_CORE\n")


@pytest.mark.slow
def test_a_real_trial_ends_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path))
    said: list[str] = []
    verdict = hardware.probe(progress=said.append)
    assert said[0] == "Trying products in float32 and bfloat16 without a limit."
    assert set(verdict.float32_gflops) == set(SHAPES)
    assert all(rate > 0 for rate in verdict.float32_gflops.values())
