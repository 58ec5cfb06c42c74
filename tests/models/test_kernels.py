"""Each compiled part gives the numbers of the plain one, and where there is none a sentence says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from inkling.models import kernels
from inkling.models.kernels import Heads, Parts, PlainParts, load

PLAIN = PlainParts()
Way = Callable[[Parts, torch.dtype], list[Tensor]]


@pytest.fixture(scope="module")
def compiled() -> Parts:
    found = load()
    if not found.compiled:
        pytest.skip(found.sentence)
    return found.parts


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    """Float32 numbers, some of them 0."""
    random = torch.Generator().manual_seed(seed)
    return scale * torch.randn(shape, generator=random) * (torch.rand(shape, generator=random) > 0.1)


def agree(way: Way, compiled: Parts, near: float = 1e-5) -> None:
    """Against the plain form in double precision, relative to the largest number of each result."""
    for found, truth in zip(way(compiled, torch.float32), way(PLAIN, torch.float64), strict=True):
        assert bool(torch.isfinite(found).all())
        assert float((found - truth).abs().max()) <= near * float(truth.abs().max()) + 1e-30


shapes = pytest.mark.parametrize(("rows", "width"), [(2, 3), (3, 7), (5, 16), (2, 33), (9, 130)])
scales = pytest.mark.parametrize("scale", [0.0, 1e-12, 1.0, 1e4])


@shapes
@scales
@pytest.mark.parametrize("add", [True, False])
def test_norm(rows: int, width: int, scale: float, add: bool, compiled: Parts) -> None:
    def way(parts: Parts, dtype: torch.dtype) -> list[Tensor]:
        x, d_x = drawn(rows, width, scale=scale).to(dtype), drawn(rows, width, seed=1).to(dtype)
        y, r = torch.empty_like(x), torch.empty(rows, dtype=dtype)
        parts.norm(x, y, r, 1e-6)
        parts.norm_back(drawn(rows, width, seed=2).to(dtype), y, r, d_x, add)
        return [y, r, d_x]

    agree(way, compiled)


@shapes
@scales
def test_gate_and_square(rows: int, width: int, scale: float, compiled: Parts) -> None:
    def way(parts: Parts, dtype: torch.dtype) -> list[Tensor]:
        h, out = drawn(rows, 2 * width, scale=scale).to(dtype), torch.empty(rows, width, dtype=dtype)
        g, square = h.clone(), torch.empty_like(h)
        parts.gate(h, out)
        parts.gate_back(drawn(rows, width, seed=1).to(dtype), h)
        parts.squared(g, square)
        parts.squared_back(drawn(rows, 2 * width, seed=2).to(dtype), g)
        return [out, h, square, g]

    agree(way, compiled)


@pytest.mark.parametrize(("rows", "width"), [(1, 2), (3, 7), (2, 33), (9, 1030)])
@scales
def test_softmax_and_its_loss(rows: int, width: int, scale: float, compiled: Parts) -> None:
    def way(parts: Parts, dtype: torch.dtype) -> list[Tensor]:
        logits = drawn(rows, width, scale=scale).to(dtype)
        nats = parts.cross_entropy(logits, torch.arange(rows) * 5 % width)
        return [torch.tensor([nats], dtype=dtype), logits]

    agree(way, compiled)
    even = torch.full((4, 8), 3e4)
    assert compiled.cross_entropy(even, torch.arange(4)) == pytest.approx(4 * 3 * torch.log(torch.tensor(2.0)))
    assert even[1].tolist() == pytest.approx([0.125, -0.875, *[0.125] * 6])


@pytest.mark.parametrize("add", [True, False])
def test_rows_of_tables_and_what_is_dropped(add: bool, compiled: Parts) -> None:
    def way(parts: Parts, dtype: torch.dtype) -> list[Tensor]:
        table, rows = drawn(5, 19).to(dtype), torch.tensor([3, 0, 3, 3])
        x, dropped = drawn(4, 19, seed=1).to(dtype), drawn(4, 19, seed=2).to(dtype)
        parts.drop(x, dropped, torch.tensor([0, -5, 77, 2**31 - 3], dtype=torch.int32), 2**32 - 9, 0.4, add)
        parts.pick_rows(table, rows, x, add)
        parts.add_rows(drawn(4, 19, seed=3).to(dtype), rows, table)
        return [x, dropped, table]

    agree(way, compiled, 1e-6)


@pytest.mark.parametrize("parts", [PLAIN, None], ids=["plain", "compiled"])
def test_dropping_keeps_the_mean_and_no_pattern(parts: Parts | None, compiled: Parts) -> None:
    parts, share = parts or compiled, 0.25
    out = torch.empty(1000, 100)
    parts.drop(torch.ones(1000, 100), out, torch.arange(1000, dtype=torch.int32) * 100, 5, share, False)
    assert sorted(set(out.flatten().tolist())) == pytest.approx([0, 4 / 3])
    deviation = (share / (1 - share)) ** 0.5
    assert float(out.mean()) == pytest.approx(1, abs=4 * deviation / 100_000**0.5)
    assert float((out.mean(0) - 1).abs().max()) < 5 * deviation / 1000**0.5
    neighbours = ((out[:, 1:] - 1) * (out[:, :-1] - 1)).mean() / deviation**2
    assert abs(float(neighbours)) < 4 / 99_000**0.5


@pytest.mark.parametrize(
    ("texts", "times", "heads", "key_heads", "width"),
    [(1, 1, 1, 1, 2), (2, 37, 3, 3, 10), (2, 33, 4, 2, 16), (1, 100, 2, 1, 34), (1, 64, 2, 2, 64), (3, 5, 2, 2, 32)],
)
@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_attention(
    texts: int, times: int, heads: int, key_heads: int, width: int, normed: bool, scale: float, compiled: Parts
) -> None:
    rows = texts * times
    turn = torch.linspace(0, 30, times * width // 2, dtype=torch.float64).view(times, -1)

    def way(parts: Parts, dtype: torch.dtype) -> list[Tensor]:
        q_gain, k_gain = ((1 + drawn(width, seed=seed)).to(dtype) if normed else None for seed in (1, 2))
        sizes = (texts, times, heads, key_heads, width)
        shape = Heads(*sizes, 1e-6, turn.cos().to(dtype), turn.sin().to(dtype), q_gain, k_gain)
        # Scores of up to some hundreds, that is sharp weights, but not so large that rounding them decides.
        qkv = drawn(rows, (heads + 2 * key_heads) * width, scale=scale if normed else min(scale, 3)).to(dtype)
        out, d_gains = torch.empty(rows, heads * width, dtype=dtype), torch.ones(2, width, dtype=dtype)
        kept = parts.attend(shape, qkv, out, torch.empty(2 * rows * heads, dtype=dtype))
        due = drawn(rows, heads * width, seed=3).to(dtype)
        parts.attend_back(shape, qkv, out, due, kept, (d_gains[0], d_gains[1]) if normed else None)
        return [out, qkv, d_gains]

    agree(way, compiled)


def test_what_is_no_number_stays_so(compiled: Parts) -> None:
    nan = torch.ones(2, 40)
    nan[1, 17] = float("nan")
    out, r = torch.empty(2, 40), torch.empty(2)
    ways: list[Callable[[], None]] = [
        lambda: compiled.norm(nan, out, r, 1e-6),
        lambda: compiled.squared(nan, out),
        lambda: compiled.gate(torch.cat([nan, nan], dim=1), out),
    ]
    for way in ways:
        way()
        assert out[1].isnan().any()
        assert not out[0].isnan().any()
    assert compiled.cross_entropy(nan.clone(), torch.tensor([0, 0])) != compiled.cross_entropy(
        nan, torch.tensor([0, 0])
    )
    endless = torch.ones(1, 40)
    endless[0, 3] = float("inf")
    nats = torch.tensor(compiled.cross_entropy(endless, torch.tensor([0])))
    assert not nats.isfinite()


def test_loading_leaves_the_smallest_numbers_alone(compiled: Parts) -> None:
    assert float(torch.tensor(1e-38) * torch.tensor(0.01)) > 0


def test_a_system_without_a_compiler_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    parts, is_compiled, sentence = load()
    assert not is_compiled
    assert isinstance(parts, PlainParts)
    assert sentence == (
        "Training steps use torch alone and are slower: this system has no C compiler (install gcc or clang, or name "
        "one in CC)."
    )
    monkeypatch.setenv("CC", "no-such-compiler")
    assert "there is no C compiler 'no-such-compiler'" in load().sentence
    assert not list(tmp_path.iterdir())


def compiler(folder: Path, script: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('[ "$1" = --version ] || { echo "x.c: error: bad flag" >&2; exit 3; }', "ended with 3 and said 'x.c: error"),
        ('[ "$1" = --version ] || for a; do [ "$b" = -o ] && echo no library > "$a"; b=$a; done', "invalid ELF header"),
        ('[ "$1" = --version ] || true', "No such file"),
    ],
    ids=["fails", "writes something else", "writes nothing"],
)
def test_a_compiler_that_fails_does_not_stop_training(
    script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CC", compiler(tmp_path, script))
    parts, is_compiled, sentence = load()
    assert not is_compiled
    assert isinstance(parts, PlainParts)
    assert sentence.startswith("Training steps use torch alone and are slower: ")
    assert said in sentence or "file too short" in sentence
    assert "\n" not in sentence


def test_other_numbers_than_torch_are_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compiled: Parts
) -> None:
    wrong = tmp_path / "transformer.c"
    source = kernels.SOURCE.read_text(encoding="utf-8")
    assert "2 * d_out[i]" in source
    wrong.write_text(source.replace("2 * d_out[i]", "3 * d_out[i]"), encoding="utf-8")
    monkeypatch.setattr(kernels, "SOURCE", wrong)
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path / "cache"))
    assert "gives other numbers, 0.5 apart" in load().sentence
    assert kernels.agreement(compiled) < 1e-5


def test_a_library_is_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compiled: Parts) -> None:
    monkeypatch.setattr(kernels, "SOURCE", source := tmp_path / "transformer.c")
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path / "cache"))
    source.write_text("int nothing;", encoding="utf-8")
    assert "undefined symbol" in load().sentence
    (library,) = (tmp_path / "cache").iterdir()
    written = library.stat().st_mtime_ns
    kernels._load.cache_clear()
    assert "undefined symbol" in load().sentence
    assert [path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()] == [written]
