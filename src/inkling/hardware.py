"""What this CPU can really do, found by trying.

Some rented machines announce AMX but hide its tile palette (CPUID leaves 0x1D and 0x1E read zero). oneDNN believes the
announcement and the first bfloat16 product ends the process with an illegal instruction. So nothing here trusts a
flag: a child process runs the products that training runs, first without a limit and then under ever lower values of
`ONEDNN_MAX_CPU_ISA`; the first limit under which it survives with right numbers is taken.

    guard      at import: puts the known limit in force before torch starts; reads two small files, tries nothing
    probe      tries, once per CPU and torch build, and remembers the verdict as JSON in the cache folder
    precision  what to train in: bfloat16 only where it is safe and at least 1.3 times as fast as float32

A product counts as wrong when ‖bf16 − float32‖ > 0.02 ‖float32‖ on the same rounded inputs; rounding alone costs about
2⁻⁹. Rates are the best of a few repetitions, in 10⁹ floating point operations a second: 2·m·k·n for an m×k×n product.
Left out: graphics cards; MKL's own instruction limit; float16; machines whose flags differ from core to core.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from inkling.errors import InklingError, UsageError

LIMIT = "ONEDNN_MAX_CPU_ISA"
CPUINFO = "/proc/cpuinfo"
SPIN_COUNT = "1000"  # turns of a loop, some microseconds; the default is three hundred times that
CONSERVATIVE = "AVX512_CORE_BF16"  # for a CPU that announces AMX and has not been tried yet
ISAS = (  # oneDNN's names, each allowing everything before it
    *("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_BF16"),
    *("AVX512_CORE_FP16", "AVX512_CORE_AMX", "AVX512_CORE_AMX_FP16"),
)
LARGE_SHAPE = "512×512×512"
SHAPES = ("64×128×128", LARGE_SHAPE, "2000×50×2000")  # m×k×n
WORTHWHILE = 1.3  # bfloat16 costs digits, so it must pay
TOLERATED_ERROR = {"float32": 1e-4, "bfloat16": 0.02}
TRIAL_SECONDS = 120.0  # most of it for a cold start of torch; the products take under 3 seconds

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class Cpu:
    """What the CPU says of itself."""

    name: str
    signature: str
    announced: tuple[str, ...]
    cores: int


@dataclass(frozen=True)
class Verdict:
    """What was found by trying on one CPU with one torch build."""

    cpu: str
    cores: int
    torch_version: str
    announced: tuple[str, ...]
    onednn_max_cpu_isa: str | None  # None: no limit is needed
    bf16_safe: bool
    float32_gflops: Mapping[str, float]  # by shape
    bf16_gflops: Mapping[str, float]
    precision: Precision
    sentence: str


@dataclass(frozen=True)
class Outcome:
    """How one trial ended. `return_code` is None after a time-out, negative after a signal."""

    return_code: int | None
    output: str
    complaint: str = ""


Child = Callable[[str | None], Outcome]  # runs the trial under one limit
Progress = Callable[[str], None]

# Each line is flushed as soon as it is known: a child that dies has told how far it came.
TRIAL = """
import json, sys, time
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # dying is an answer here, not worth a core file
except Exception:
    pass
import torch
import torch.nn.functional as F

def say(**line):
    print(json.dumps(line), flush=True)

def error(got, wanted):
    return float((got.double() - wanted.double()).norm() / wanted.double().norm())

def gflops(shape, dtype):
    m, k, n = map(int, shape.split("×"))
    a, b = torch.ones(m, k, dtype=dtype), torch.ones(k, n, dtype=dtype)
    seconds = []
    while sum(seconds) < 0.15 or (len(seconds) < 3 and sum(seconds) < 0.6):  # the first one also wakes the threads
        before = time.perf_counter()
        a @ b
        seconds.append(time.perf_counter() - before)
    return 2e-9 * m * k * n / min(seconds)

say(torch=torch.__version__)
random = torch.Generator().manual_seed(1)
shapes = json.loads(sys.argv[1])
a, b = torch.randn(65, 129, generator=random), torch.randn(129, 67, generator=random)
say(float32_error=error(a @ b, a.double() @ b.double()))
say(float32_gflops={shape: gflops(shape, torch.float32) for shape in shapes})

def grown(make, dtype):  # forward and backward of what models are made of, from the same rounded inputs
    random.manual_seed(2)
    inputs = [torch.randn(*size, generator=random).bfloat16().to(dtype).requires_grad_() for size in make[1]]
    result = make[0](*inputs)
    result.sum().backward()
    return [result, *(x.grad for x in inputs)]

products = [
    (torch.matmul, [(65, 129), (129, 67)]),
    (torch.matmul, [(256, 256), (256, 256)]),
    (torch.matmul, [(1, 64), (64, 300)]),
    (torch.bmm, [(8, 32, 16), (8, 16, 32)]),
    (F.linear, [(4, 32, 128), (384, 128)]),
    (F.scaled_dot_product_attention, [(2, 4, 64, 32)] * 3),
]
worst = 0.0
for make in products:
    errors = [error(got, wanted) for got, wanted in zip(grown(make, torch.bfloat16), grown(make, torch.float32))]
    worst = max([worst, *(e if e == e else float("inf") for e in errors)])
say(bf16_error=worst)
say(bf16_gflops={shape: gflops(shape, torch.bfloat16) for shape in shapes})
say(finished=True)
"""


def guard() -> None:
    """Put the limit that this machine is known to need in force, before torch starts. Costs under 2 ms.

    Also keeps waiting threads from spinning for long: with another program on one of the cores, threads that spin at
    every barrier made small products ten times slower than threads that sleep.

    The cache is read only where AVX-512 is announced: elsewhere there is no limit worth setting.
    """
    if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
    if "torch" in sys.modules or LIMIT in os.environ or "DNNL_MAX_CPU_ISA" in os.environ:
        return
    if not Path(CPUINFO).exists():
        return
    cpu = describe_cpu()
    if "avx512f" in cpu.announced or "amx_tile" in cpu.announced:
        verdict = _recall(cpu, torch_version())
        if verdict:
            _enforce(verdict.onednn_max_cpu_isa)
        elif "amx_tile" in cpu.announced:
            _enforce(CONSERVATIVE)


def probe(force: bool = False, *, progress: Progress | None = None, child: Child | None = None) -> Verdict:
    """The verdict on this machine: the remembered one, or with none (or `force`) a new one from trials of seconds."""
    cpu, version = describe_cpu(), torch_version()
    known = None if force else _recall(cpu, version)
    if known:
        return known
    verdict, decisive = _try(cpu, version, progress or (lambda sentence: None), child or run_trial)
    if decisive:
        _remember(cpu, verdict)
    _enforce(verdict.onednn_max_cpu_isa)
    return verdict


def precision(
    requested: Literal["auto", "float32", "bfloat16"], *, progress: Progress | None = None, child: Child | None = None
) -> Precision:
    """The number format to train in; `auto` takes the faster safe one. float32 needs no trial."""
    if requested == "float32":
        return "float32"
    if requested not in ("auto", "bfloat16"):
        raise UsageError(f"Precision is {requested!r}, but one of auto, float32 and bfloat16 was expected.")
    verdict = probe(progress=progress, child=child)
    safe_now = verdict.bf16_safe and is_in_force(verdict.onednn_max_cpu_isa)
    if requested == "auto":
        return verdict.precision if safe_now else "float32"
    if not verdict.bf16_safe:
        raise InklingError(f"bfloat16 was asked for but fails on this CPU ({verdict.cpu}); use float32 or auto.")
    if not safe_now:
        raise InklingError(
            f"bfloat16 was asked for but needs {LIMIT}={verdict.onednn_max_cpu_isa} on this CPU, and that is not in "
            "force; set it before Python starts, or import inkling before torch."
        )
    return "bfloat16"


def cache_folder() -> Path:
    """Where Inkling remembers what can be found again: `INKLING_CACHE`, or the user's cache folder."""
    chosen = os.environ.get("INKLING_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "linux":  # the same answer as platformdirs, without its import: `guard` runs at every start
        base = os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
        try:
            return Path(base).expanduser() / "inkling"
        except RuntimeError:  # a container user without a home
            import tempfile

            return Path(tempfile.gettempdir()) / "inkling"
    import platformdirs

    return Path(platformdirs.user_cache_dir("inkling", appauthor=False))


def describe_cpu() -> Cpu:
    """What the first core announces; only the first, as reading all of them takes long on large machines."""
    try:
        with Path(CPUINFO).open(encoding="utf-8", errors="replace") as file:
            first_core: dict[str, str] = {}
            for line in file:
                if not line.strip():
                    break
                key, _, value = line.partition(":")
                first_core[key.strip()] = value.strip()
    except OSError:
        first_core = {}
    name = first_core.get("model name") or first_core.get("CPU part")
    if not name:
        import platform

        name = platform.processor() or platform.machine() or "unknown CPU"
    flags = (first_core.get("flags") or first_core.get("Features") or "").split()
    cores = os.cpu_count() or 1
    numbers = "/".join(first_core.get(key, "?") for key in ("cpu family", "model", "stepping"))
    signature = f"{name}; {numbers}; flags {zlib.crc32(' '.join(sorted(flags)).encode()):08x}; {cores} cores"
    of_interest = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16", "amx_fp16")
    return Cpu(name, signature, tuple(flag for flag in of_interest if flag in flags), cores)


def torch_version() -> str:
    """The version of the torch that would be imported, read from the name of its metadata folder.

    importlib.metadata says the same but takes tens of milliseconds to import; it is asked where that name is missing.
    """
    for folder in sys.path:
        if (Path(folder) / "torch" / "__init__.py").is_file():
            versions = [entry.stem.removeprefix("torch-") for entry in Path(folder).glob("torch-*.dist-info")]
            if len(versions) == 1:
                return versions[0]
            break
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("torch")
    except PackageNotFoundError:
        return "none"


def run_trial(limit: str | None) -> Outcome:
    """Run the trial in a child process under one limit. `-P` keeps a file named torch.py in this folder out of it."""
    import json
    import subprocess

    environment = {key: value for key, value in os.environ.items() if key not in (LIMIT, "DNNL_MAX_CPU_ISA")}
    environment["PYTHONIOENCODING"] = "utf-8"
    if limit:
        environment[LIMIT] = limit
    command = [sys.executable, "-P", "-c", TRIAL, json.dumps(SHAPES)]
    try:
        ended = subprocess.run(
            command, env=environment, capture_output=True, timeout=TRIAL_SECONDS, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired as late:
        return Outcome(None, (late.stdout or b"").decode("utf-8", "replace"))
    return Outcome(ended.returncode, ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace"))


def _try(cpu: Cpu, version: str, progress: Progress, child: Child) -> tuple[Verdict, bool]:
    """The verdict, and whether every trial was decisive (a time-out or an outside kill says nothing about the CPU)."""
    limits: list[str | None] = [None]
    for flag, lower in (
        ("amx_fp16", "AVX512_CORE_AMX"),
        ("amx_tile", CONSERVATIVE),
        ("avx512_bf16", CONSERVATIVE),
        ("avx512f", "AVX512_CORE"),
        ("avx512f", "AVX2"),
    ):
        if flag in cpu.announced and lower not in limits:
            limits.append(lower)
    decisive, complaint, failures = True, "", list[str]()
    chosen: tuple[str | None, dict[str, Any]] | None = None  # the first limit under which at least float32 works
    for limit in limits:
        progress(f"Trying products in float32 and bfloat16 {f'limited to {limit}' if limit else 'without a limit'}.")
        outcome = child(limit)
        said = _heard(outcome.output)
        failure = _failure(outcome, said)
        if failure is None:
            return _verdict(cpu, version, limit, said, failures), decisive
        failures.append(failure)
        decisive &= outcome.return_code not in (None, -9)
        complaint = complaint or (outcome.complaint.strip().splitlines() or [failure])[-1]
        if chosen is None and said.get("float32_error", 1.0) < TOLERATED_ERROR["float32"]:
            chosen = (limit, said)
    if chosen is None:
        raise InklingError(
            f"torch {version} cannot multiply two matrices on this machine ({complaint}); "
            "install torch anew and run this again."
        )
    limit, said = chosen
    return _verdict(cpu, version, limit, {**said, "bf16_gflops": {}}, failures, bf16_safe=False), decisive


def _heard(output: str) -> dict[str, Any]:
    """All that a trial said, merged. A last line cut in half by its death is passed over."""
    import json

    said: dict[str, Any] = {}
    for line in output.splitlines():
        try:
            said.update(json.loads(line))
        except (ValueError, TypeError):
            continue
    return said


def _failure(outcome: Outcome, said: Mapping[str, Any]) -> str | None:
    """Why a trial does not count as safe, in words that follow 'a trial'; None when it is safe."""
    if outcome.return_code is None:
        return "did not end in time"
    if outcome.return_code in (-4, 0xC000001D):  # SIGILL; the same on Windows
        return "ended in an illegal instruction"
    if outcome.return_code < 0:
        return f"was ended by signal {-outcome.return_code}"
    if outcome.return_code:
        return "ended in an error"
    for key, kind in (("float32_error", "float32"), ("bf16_error", "bfloat16")):
        if not said.get(key, float("nan")) <= TOLERATED_ERROR[kind]:
            return f"gave wrong {kind} products"
    return None if said.get("finished") else "ended early"


def _verdict(
    cpu: Cpu, version: str, limit: str | None, said: Mapping[str, Any], failures: list[str], bf16_safe: bool = True
) -> Verdict:
    float32, bf16 = dict(said.get("float32_gflops", {})), dict(said.get("bf16_gflops", {}))
    gain = bf16.get(LARGE_SHAPE, 0.0) / float32[LARGE_SHAPE] if float32.get(LARGE_SHAPE) else 0.0
    chosen: Precision = "bfloat16" if bf16_safe and gain >= WORTHWHILE else "float32"
    words = []
    if failures:
        announced = "announces AMX but" if "amx_tile" in cpu.announced else "is not what it announces:"
        words.append(f"The CPU {announced} a trial {failures[0]}")
        if limit:
            words.append(f", so oneDNN is limited to {limit}")
        words.append("; " if bf16_safe else "; bfloat16 fails here")
    if bf16_safe:
        words.append(f"bfloat16 is safe and {gain:.2g} times as fast as float32")
    words.append(f", so {chosen} is used.")
    sentence = "".join(words)
    return Verdict(
        cpu=cpu.name,
        cores=cpu.cores,
        torch_version=version,
        announced=cpu.announced,
        onednn_max_cpu_isa=limit,
        bf16_safe=bf16_safe,
        float32_gflops=float32,
        bf16_gflops=bf16,
        precision=chosen,
        sentence=sentence,
    )


def _enforce(limit: str | None) -> None:
    """Set or lift our own limit while torch has not started; a value that the user chose stays."""
    global _own_limit
    present = os.environ.get(LIMIT)
    if "torch" in sys.modules or "DNNL_MAX_CPU_ISA" in os.environ or present not in (None, _own_limit):
        return
    if limit:
        os.environ[LIMIT] = limit
    elif present:
        del os.environ[LIMIT]
    _own_limit = limit


_own_limit: str | None = None


def is_in_force(limit: str | None) -> bool:
    """Whether this process keeps to `limit` or to a lower one."""
    present = (os.environ.get(LIMIT) or os.environ.get("DNNL_MAX_CPU_ISA") or "").upper()
    return limit is None or (present in ISAS and ISAS.index(present) <= ISAS.index(limit))


_unwritten: dict[Path, Verdict] = {}  # where the cache folder cannot be written: tried once a process, not once a call


def _place(cpu: Cpu, version: str) -> Path:
    return cache_folder() / f"hardware-{zlib.crc32(f'{cpu.signature}; torch {version}'.encode()):08x}.json"


def _recall(cpu: Cpu, version: str) -> Verdict | None:
    """The remembered verdict; None when there is none, or it is damaged, or it is about another CPU or torch."""
    place = _place(cpu, version)
    try:
        text = place.read_text(encoding="utf-8")
        import json  # only where there is something to read: `guard` counts milliseconds

        stored = json.loads(text)
        if stored["signature"] != cpu.signature or stored["verdict"]["torch_version"] != version:
            return None
        fields = stored["verdict"]
        verdict = Verdict(**{**fields, "announced": tuple(fields["announced"])})
        limit = verdict.onednn_max_cpu_isa
        sound = (limit is None or limit in ISAS) and verdict.precision in ("float32", "bfloat16")
        return verdict if sound and isinstance(verdict.bf16_safe, bool) else None
    except (OSError, ValueError, TypeError, KeyError):
        return _unwritten.get(place)


def _remember(cpu: Cpu, verdict: Verdict) -> None:
    import json

    place = _place(cpu, verdict.torch_version)
    unfinished = place.with_suffix(f".{os.getpid()}.tmp")
    stored = {"signature": cpu.signature, "verdict": asdict(verdict)}
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(stored, ensure_ascii=False, indent=1), encoding="utf-8")
        unfinished.replace(place)
    except OSError:
        _unwritten[place] = verdict
