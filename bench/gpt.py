"""How fast the small transformer learns, writes and scores, beside the ways in which it is usually done.

    python bench/gpt.py [--text FILE] [--quick] [--check] [--html FILE] [--json]

Learning, from the first nine tenths of the text, judged on all of the rest in windows that do not overlap:

    (a) plain PyTorch   the commonest recipe for a CPU: as GPT-2, 4 layers, 4 heads, width 128, context 64, batch 12,
                        2,000 steps of AdamW, float32
    (b) transformers    GPT-2 of that size with the library's Trainer; same batch, steps and rates
    (c) inkling         `inkling train gpt`, the whole command: start, imports, reading, compiling, training, judging,
                        writing; once with an empty cache folder (cold) and once more (warm)

What counts is the time until held-out text costs `--target` nats per character. The clock of (a) and (b) stands still
while they are judged, and the time lies on a line between two judgements; ours is that of the whole command. Where no
target is said, it is 1.88 with a file of text; without one, or with `--quick`, it is what (a) ends with.

Writing and scoring: the trained run, and two sizes with drawn weights, each in its directory, beside the transformers
library that opens the same directory: tokens a second of greedy writing with kept keys and values, 1 and 32 texts, and
of `score` beside its forward pass with log-softmax. The same number of threads for both, in turns.

Growth: seconds of training against tokens read, and of writing against tokens written, with a line fitted to each.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import inkling  # first: it looks at the processor before torch does
from gpt_peers import Course, Theirs, judge, plain_pytorch, their_trainer, trainer_is_there
from inkling.figures import Chart, Line, Page, Prose
from inkling.models.gpt import GPTConfig, forward, initial_parameters
from inkling.models.gpt_layout import to_layout
from inkling.models.gpt_model import Transformer
from inkling.recipes.gpt import GPTRecipe, train_gpt
from inkling.report.page import write
from inkling.text.catalogue import data_path
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import train_tokeniser

import torch  # isort: skip

TARGET = 1.88  # nats per character
STEPS, QUICK_STEPS = 2000, 1000
OURS = "--steps 110 --layers 2 --context 64 --batch 32 --rate 0.1 --rotary-base 200"
QUICK_OURS = "--steps 55 --layers 2 --context 64 --batch 32 --rate 0.1 --rotary-base 200"
SHARE_OF_A, TIMES_WRITING, TIMES_SCORING = 1 / 5, 3.0, 1.0
QUICK_SHARE_OF_A = 1 / 3  # a target that is reached so soon leaves mostly the start to be compared
TURNS = 3
PATIENT = 2100  # tokens written before anything is timed: then all that will be compiled is


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="text in UTF-8 [default: data:shakespeare if fetched, or generated]")
    parser.add_argument("--target", type=float, help="nats per character [default: 1.88, or what (a) ends with]")
    parser.add_argument("--ours", help=f"options of `inkling train gpt` [default: {OURS}]")
    parser.add_argument("--quick", action="store_true", help="(a) with 1,000 steps, without (b), fewer measurements")
    parser.add_argument(
        "--check",
        action="store_true",
        help="fail above 1/5 of (a) (--quick: 1/3), below 3 × in writing, 1 × in scoring",
    )
    parser.add_argument("--html", type=Path, help="write a page with what grows and how")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    text, is_known = chosen_text(options.text)
    cut = len(text) * 9 // 10
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, content in (("train", text[:cut]), ("held", text[cut:])):
            (folder / f"{part}.txt").write_text(content, "utf-8", newline="")
        learning = measure_learning(text, cut, folder, options, options.target or (TARGET if is_known else 0.0))
        rows = measure_writing(text, folder, options.quick)
        growth = [training_growth(folder, options.quick), writing_growth(rows[-1].ours, options.quick)]
    first, ours = learning[0], learning[-1]
    share = QUICK_SHARE_OF_A if options.quick else SHARE_OF_A
    if not (ours["reached"] and ours["seconds"] <= share * first["seconds"]):
        failures.append(f"the command does not reach the target in 1/{1 / share:.0f} of the time of (a)")
    failures += [f"writing is not {TIMES_WRITING:g} times as fast: {r.name}" for r in rows if r.writing < TIMES_WRITING]
    failures += [f"scoring is slower: {r.name}" for r in rows if r.scoring < TIMES_SCORING]
    if options.json:
        writing = [{**row.speeds, "name": row.name} for row in rows]
        print(json.dumps({"learning": learning, "writing": writing, "growth": growth, "failures": failures}, indent=1))
    else:
        show(learning, rows, growth)
    if options.html:
        write(page(growth), options.html)
    if options.check and failures:
        sys.exit("; ".join(failures))


def chosen_text(file: Path | None) -> tuple[str, bool]:
    """The text, and whether 1.88 nats is a figure to reach on it."""
    if file:
        return file.read_text("utf-8"), True
    try:
        folder = data_path("shakespeare")
    except inkling.errors.InklingError:
        return grammar_text(np.random.default_rng(0), 200_000), False
    plays = sorted(folder.rglob("*.txt")) if folder.is_dir() else [folder]
    return "".join(play.read_text("utf-8") for play in plays)[:1_115_394], False


# ------------------------------------------------------------------------------------------------ learning


def measure_learning(
    text: str, cut: int, folder: Path, options: argparse.Namespace, target: float
) -> list[dict[str, Any]]:
    """A row for each way: the seconds to the target, whether it got there, and what it cost in the end."""
    characters = {character: number for number, character in enumerate(sorted(set(text)))}
    ids = torch.tensor([characters[character] for character in text])
    steps = QUICK_STEPS if options.quick else STEPS
    judged_at = range(steps // 4, steps + 1, steps // 4)
    courses = [plain_pytorch(ids[:cut], ids[cut:], len(characters), steps, judged_at)]
    if options.quick or not target:
        target = options.target or courses[0].nats[-1]
    if not options.quick and trainer_is_there():
        courses.append(their_trainer(ids[:cut], ids[cut:], len(characters), steps, judged_at, folder / "trainer"))
    rows = [_row_of(course, target) for course in courses]
    environment = {**os.environ, "INKLING_CACHE": str(folder / "cache")}
    settings = options.ours or (QUICK_OURS if options.quick else OURS)
    for heat in ("cold", "warm"):
        run = folder / heat
        seconds, megabytes = run_command(folder, run, settings, environment)
        model = inkling.load(run)
        assert isinstance(model, Transformer)
        held = torch.from_numpy(model.tokeniser.encode([text[cut:]]).ids.astype(np.int64))
        nats = judge(lambda ids, m=model: forward(m.parameters, m.config, ids), held, model.config.context)  # type: ignore[misc]
        rows.append(
            {
                "method": f"(c) inkling train gpt {settings}, {heat}",
                "seconds": seconds,
                "reached": nats <= target,
                "nats": nats,
                "megabytes": megabytes,
            }
        )
    for row in rows:
        row["share_of_a"], row["target"] = row["seconds"] / rows[0]["seconds"], target
    return rows


def _row_of(course: Course, target: float) -> dict[str, Any]:
    seconds = course.seconds_to(target)
    return {
        "method": course.name,
        "seconds": course.seconds[-1] if seconds is None else seconds,
        "reached": seconds is not None,
        "nats": course.nats[-1],
        "course": [*zip(course.steps, course.seconds, course.nats, strict=True)],
    }


def run_command(folder: Path, run: Path, settings: str, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds of the whole command, and the most memory that it had, in megabytes."""
    command = [sys.executable, "-m", "inkling", "train", "gpt", str(folder / "train.txt")]
    command += ["--held-out", str(folder / "held.txt"), "--out", str(run), "--json", *shlex.split(settings)]
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"`{shlex.join(command)}` ended with {process.returncode}.")
    return time.perf_counter() - started, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


# ------------------------------------------------------------------------------------------------ writing and scoring


@dataclass(frozen=True)
class Writing:
    """Tokens a second of both; `writing` and `scoring` are the smallest ratios."""

    name: str
    ours: Transformer
    speeds: dict[str, float]
    same: float  # share of the tokens that both wrote alike

    @property
    def writing(self) -> float:
        return min(self.ratio("write 1"), self.ratio("write 32"))

    @property
    def scoring(self) -> float:
        return self.ratio("score")

    def ratio(self, what: str) -> float:
        return self.speeds[f"{what}, ours"] / self.speeds[f"{what}, theirs"]


def measure_writing(text: str, folder: Path, quick: bool) -> list[Writing]:
    """The trained run, and two sizes that are not trained: speed does not depend on the weights."""
    found = []
    trained = inkling.load(folder / "warm")
    assert isinstance(trained, Transformer)
    if trained.config.is_exportable:
        found.append(beside(f"the trained run, {sizes_of(trained.config)}", trained, folder / "warm", quick))
    for dimension, kind, most in ((256, "bpe", 2048), (128, "character", None)):
        tokeniser = train_tokeniser(kind, [[text]], most)
        config = GPTConfig(tokeniser.size, dimension, layers=4, heads=4, mlp=3 * dimension, context=256)
        model = Transformer(config, initial_parameters(config, np.random.default_rng(0)), tokeniser)
        place = folder / f"drawn-{dimension}"
        save(model, place)
        found.append(beside(sizes_of(config), model, place, quick))
    return found


def sizes_of(config: GPTConfig) -> str:
    return (
        f"{config.layers} layers, width {config.dimension}, vocabulary {config.vocabulary:,}, context {config.context}"
    )


def save(model: Transformer, folder: Path) -> None:
    from safetensors.torch import save_file

    record, tensors = to_layout(model.config, model.parameters, model.tokeniser.begin)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(record), "utf-8")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def beside(name: str, ours: Transformer, folder: Path, quick: bool) -> Writing:
    """In turns; the fastest turn of each counts."""
    theirs, begin, turns = Theirs.open(folder), ours.tokeniser.begin, 1 if quick else TURNS
    tokens = min(200, ours.config.context - 1)
    speeds, alike = {}, []
    while PATIENT > ours._fused._without >= 0 and ours._fused._steps is None:
        write_greedily(ours, 32, tokens)
    for texts in (1, 32):
        both = (lambda n=texts: write_greedily(ours, n, tokens), lambda n=texts: theirs.write(begin, n, tokens))
        (mine, my_seconds), (other, their_seconds) = in_turns(both, turns)
        alike.append(np.mean(np.array(mine) == np.array(other)))
        speeds[f"write {texts}, ours"] = texts * tokens / my_seconds
        speeds[f"write {texts}, theirs"] = texts * tokens / their_seconds
    windows = np.random.default_rng(0).integers(0, ours.config.vocabulary, (32, ours.config.context))
    offsets, flat = np.arange(33) * ours.config.context, windows.astype(np.int32).ravel()
    scoring = (lambda: ours.score_ids(flat, offsets), lambda: theirs.nats(torch.from_numpy(windows)))
    (_, my_seconds), (_, their_seconds) = in_turns(scoring, 2 * turns + 1)
    speeds["score, ours"], speeds["score, theirs"] = flat.size / my_seconds, flat.size / their_seconds
    return Writing(name, ours, speeds, float(np.mean(alike)))


def in_turns(ways: Sequence[Callable[[], Any]], turns: int) -> list[tuple[Any, float]]:
    """What each gives, and its least seconds."""
    found: list[Any] = [None] * len(ways)
    seconds = [float("inf")] * len(ways)
    for _ in range(turns):
        for place, way in enumerate(ways):
            started = time.perf_counter()
            found[place] = way()
            seconds[place] = min(seconds[place], time.perf_counter() - started)
    return list(zip(found, seconds, strict=True))


def write_greedily(model: Transformer, texts: int, tokens: int) -> list[list[int]]:
    """The likeliest token each time, texts × tokens."""
    state, log_probs = model.begin()
    states, rows, written = [state] * texts, log_probs.expand(texts, -1), []
    for number in range(tokens):
        written.append(rows.argmax(1).tolist())
        if number + 1 < tokens:
            states, rows = model.step_many(states, written[-1])
    return [list(text) for text in zip(*written, strict=True)]


# ------------------------------------------------------------------------------------------------ growth


def training_growth(folder: Path, quick: bool) -> dict[str, Any]:
    """Seconds of the steps of a training against the tokens that they read."""
    steps = 40 if quick else 80
    recipe = GPTRecipe(files=(str(folder / "train.txt"),), steps=steps, layers=2, context=64, batch=32, judged=1)
    tokens, seconds, read = list[int](), list[float](), 0
    for _, step in train_gpt(recipe, folder / "growth"):
        read += int(step.tokens)
        if step.step % (steps // 8) == 0:
            tokens.append(read)
            seconds.append(step.seconds)
    return fitted("training", "tokens read", tokens, seconds)


def writing_growth(model: Transformer, quick: bool) -> dict[str, Any]:
    """Seconds of writing against its length, far beyond the context."""
    lengths, seconds = [128, 256, 512, 1024] if quick else [256, 512, 1024, 2048, 4096], []
    write_greedily(model, 1, 300)
    for length in lengths:
        seconds += [in_turns([lambda n=length: write_greedily(model, 1, n)], 2)[0][1]]  # type: ignore[misc]
    return fitted("writing", "tokens written", lengths, seconds)


def fitted(name: str, x_label: str, x: list[int], y: list[float]) -> dict[str, Any]:
    slope, start = np.polyfit(x, y, 1)
    left = np.array(y) - (start + slope * np.array(x))
    r_squared = 1 - float(left @ left) / float(np.square(np.array(y) - np.mean(y)).sum())
    line = {"seconds_per_thousand": 1000 * float(slope), "seconds_at_zero": float(start), "r_squared": r_squared}
    return {"name": name, "x_label": x_label, "x": x, "y": y, **line}


# ------------------------------------------------------------------------------------------------ showing


def show(learning: list[dict[str, Any]], rows: list[Writing], growth: list[dict[str, Any]]) -> None:
    print(f"Learning, until held-out text costs {learning[0]['target']:.3f} nats per character\n")
    for row in learning:
        end = f"{row['nats']:.4f} nats" + ("" if row["reached"] else ", target not reached")
        memory = f"   {row['megabytes']:,.0f} MB" if "megabytes" in row else ""
        share = f"1/{1 / row['share_of_a']:.1f} of (a)" if row["share_of_a"] < 1 else f"{row['share_of_a']:.2f} × (a)"
        print(f"{row['method']}\n    {row['seconds']:7.1f} s   {share:>12}   ends with {end}{memory}")
        for step, seconds, nats in row.get("course", ()):
            print(f"    after {step:>5,} steps {seconds:7.1f} s   {nats:.4f}")
    if len(learning) == 3:
        print("(b) was left out: " + ("--quick" if trainer_is_there() else "its Trainer wants the package accelerate"))
    print(f"\nWriting and scoring, tokens a second, {torch.get_num_threads()} threads\n")
    for wrote in rows:
        print(f"{wrote.name}; {wrote.same:.1%} of the tokens alike")
        for what in ("write 1", "write 32", "score"):
            mine, other = wrote.speeds[f"{what}, ours"], wrote.speeds[f"{what}, theirs"]
            print(f"    {what:9} transformers {other:>9,.0f}   inkling {mine:>9,.0f}   {wrote.ratio(what):5.2f} ×")
    print("\nGrowth\n")
    for grown in growth:
        print(
            f"{grown['name']:9} {grown['seconds_per_thousand']:.4f} s for each thousand {grown['x_label']}, "
            f"R² = {grown['r_squared']:.4f}"
        )


def page(growth: list[dict[str, Any]]) -> Page:
    charts = []
    for grown in growth:
        slope, start = grown["seconds_per_thousand"] / 1000, grown["seconds_at_zero"]
        lines = (
            Line("measured", grown["x"], grown["y"]),
            Line("fitted", grown["x"], [start + slope * x for x in grown["x"]]),
        )
        reading = f"A line fits with R² = {grown['r_squared']:.4f}: {grown['seconds_per_thousand']:.4f} s a thousand."
        charts.append(Chart(f"Time of {grown['name']}", grown["x_label"], "seconds", lines, reading))
    said = Prose("Both grow with the number of tokens and no faster; windows keep what a token looks at bounded.")
    return Page("How the time of the small transformer grows", (said, *charts))


if __name__ == "__main__":
    main()
