"""What a training step does besides large products, compiled from C at first use where the system has a compiler.

On a CPU a small transformer spends more time on norms, turns, gates and softmax than on products, because torch goes
through memory once for each operation. transformer.c does each part in one pass. `load` compiles it in about a second,
once for each source, compiler and CPU, and keeps the library in Inkling's cache folder. Before it is used it is held
against torch on small examples. Where anything of that fails, torch serves and a sentence says why; no training fails.

    CC                    the compiler, if not cc, gcc or clang
    INKLING_KERNELS=off   torch does it all

Left out: OpenMP (torch brings its own, and rows are shared out among threads anyway); -ffast-math, which would lose
numbers that are none, and with some compilers changes how the whole process rounds.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from inkling.hardware import cache_folder, describe_cpu
from inkling.models.kernels.compiled import CompiledParts
from inkling.models.kernels.contract import Heads, Parts
from inkling.models.kernels.plain import PlainParts

__all__ = ["Heads", "Loaded", "Parts", "PlainParts", "agreement", "library_of", "load"]

SWITCH = "INKLING_KERNELS"
SOURCE = Path(__file__).with_name("transformer.c")
FLAGS = (
    *("-O3", "-march=native", "-std=gnu11", "-fPIC", "-shared"),
    *("-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math"),
)
WIDE = "-mprefer-vector-width=512"  # x86: compilers are shy of their own widest vectors
COMPILE_SECONDS = 60.0
NEAR = 1e-4  # relative; float32 comes within 1e-6


class Loaded(NamedTuple):
    """`parts` to train with, whether they are compiled, and a sentence about it."""

    parts: Parts
    compiled: bool
    sentence: str


def load() -> Loaded:
    """The compiled parts, or torch's."""
    if _is_off():
        return Loaded(PlainParts(), False, f"Training steps use torch alone, as {SWITCH} says.")
    return _load(os.environ.get("CC", ""), cache_folder())


@cache
def _load(chosen: str, folder: Path) -> Loaded:
    try:
        library, compiler = _library(chosen, folder, SOURCE)
        parts = CompiledParts(library)
        apart = agreement(parts)
        if not apart < NEAR:
            raise _Unable(f"what {compiler} compiled gives other numbers, {apart:.1g} apart")
    except (OSError, subprocess.SubprocessError, _Unable, AttributeError) as failure:
        return Loaded(PlainParts(), False, f"Training steps use torch alone and are slower: {_reason(failure)}.")
    return Loaded(parts, True, f"Training steps use parts compiled by {compiler}.")


class _Unable(Exception):
    """Why there is no library, in words that follow a colon."""


def library_of(source: Path, kept: bool) -> Path | None:
    """The library of another C file, compiled like this one; None where that fails, or `kept` asks for one that is
    there already and it is not."""
    if _is_off():
        return None
    try:
        return _library(os.environ.get("CC", ""), cache_folder(), source, kept)[0]
    except (OSError, subprocess.SubprocessError, _Unable):
        return None


def _is_off() -> bool:
    return os.environ.get(SWITCH, "").strip().lower() in ("off", "0", "no", "false")


def _library(chosen: str, folder: Path, source: Path, kept: bool = False) -> tuple[Path, str]:
    """The compiled library, from the cache folder or new; and the compiler's name."""
    command = shlex.split(chosen) or [name for name in ("cc", "gcc", "clang") if shutil.which(name)][:1]
    if not command or not shutil.which(command[0]):
        missing = f"there is no C compiler '{command[0]}'" if command else "this system has no C compiler"
        raise _Unable(f"{missing} (install gcc or clang, or name one in CC)")
    version = _run([*command, "--version"]).partition("\n")[0].strip()
    flags = [*FLAGS, WIDE] if platform.machine().lower() in ("x86_64", "amd64") else list(FLAGS)
    key = "\n".join([source.read_text(encoding="utf-8"), version, *command, *flags, describe_cpu().signature])
    place = folder / f"kernels-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    if kept and not place.exists():
        raise _Unable("it is not compiled yet")
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_suffix(f".{os.getpid()}.tmp")
        try:
            _run([*command, *flags, "-o", str(unfinished), str(source), "-lm"])
            unfinished.replace(place)  # whole or not at all
        finally:
            unfinished.unlink(missing_ok=True)
    return place, version or command[0]


def _run(command: list[str]) -> str:
    ended = subprocess.run(command, capture_output=True, timeout=COMPILE_SECONDS, stdin=subprocess.DEVNULL, check=False)
    if ended.returncode:
        said = ended.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing"]
        errors = [line for line in said if "error" in line]
        raise _Unable(f"'{command[0]}' ended with {ended.returncode} and said {(errors or said)[0]!r}")
    return ended.stdout.decode("utf-8", "replace")


def _reason(failure: Exception) -> str:
    if isinstance(failure, subprocess.TimeoutExpired):
        return f"the C compiler took more than {COMPILE_SECONDS:.0f} seconds"
    return str(failure).rstrip(".")


def agreement(parts: Parts) -> float:
    """The largest distance to torch's parts over small examples of all of them, relative to the largest number."""
    results = []
    for way in (PlainParts(), parts):
        random = torch.Generator().manual_seed(5)

        def drawn(*shape: int, random: torch.Generator = random) -> torch.Tensor:
            return 2 * torch.randn(shape, generator=random)

        x, y, r, d_x = drawn(7, 19), torch.empty(7, 19), torch.empty(7), drawn(7, 19)
        way.norm(x, y, r, 1e-6)
        way.norm_back(drawn(7, 19), y, r, d_x, True)
        h, g, inner, sharp = drawn(7, 38), drawn(7, 38), torch.empty(7, 19), torch.empty(7, 38)
        way.gate(h, inner)
        way.gate_back(drawn(7, 19), h)
        way.squared(g, sharp)
        way.squared_back(drawn(7, 38), g)
        logits, rows, table, picked = drawn(7, 19), torch.arange(7) * 5 % 19, drawn(19, 19), torch.empty(7, 19)
        nats = torch.tensor([way.cross_entropy(logits, rows)])
        way.pick_rows(table, rows, picked, False)
        way.add_rows(x, rows, table)
        places = torch.arange(7, dtype=torch.int32) * 19
        way.drop(x, picked, places, 77, 0.4, True)
        turn = torch.linspace(0, 3, 37 * 3).view(37, 3)
        shape = Heads(2, 37, 4, 2, 6, 1e-6, turn.cos(), turn.sin(), drawn(6), drawn(6))
        qkv, out, d_gains = drawn(74, 48), torch.empty(74, 24), (torch.zeros(6), torch.zeros(6))
        kept = way.attend(shape, qkv, out, torch.empty(74 * 4 * 2))
        way.attend_back(shape, qkv, out, drawn(74, 24), kept, d_gains)
        results.append([y, r, d_x, inner, h, sharp, g, logits, nats, table, picked, out, qkv, *d_gains])
    apart = [float((a - b).abs().max() / a.abs().max()) for a, b in zip(*results, strict=True)]
    return max(value if value == value else float("inf") for value in apart)
