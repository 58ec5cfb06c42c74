"""The commands as a user types them, when all goes well: what they print where, and what they leave on disk."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from driver import on_a_terminal

import inkling
from inkling.cli.app import app, main
from inkling.doctor import Finding
from inkling.text.grammar import grammar_text

NOVEL = grammar_text(np.random.default_rng(11), 3000)
OTHER = grammar_text(np.random.default_rng(12), 1200)
TRAIN = ("train", "bigram", "novel.txt", "--steps", "12", "--hidden", "8", "--vocabulary", "200")
RUN_FILES = {
    "README.md",
    "checkpoints",
    "config.json",
    "manifest.json",
    "metrics.jsonl",
    "model.safetensors",
    "run.json",
    "speller.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two texts and two runs: a bigram network and a count model."""
    folder = tmp_path_factory.mktemp("lab")
    before = Path.cwd()
    os.chdir(folder)
    try:
        Path("novel.txt").write_text(NOVEL, encoding="utf-8")
        Path("other.txt").write_text(OTHER, encoding="utf-8")
        assert main([*TRAIN, "--out", "runs/network"]) == 0
        assert main(["train", "ngram", "novel.txt", "--vocabulary", "200", "--out", "runs/counts"]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def here(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("INKLING_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("INKLING_DATA", str(lab / "data"))
    monkeypatch.chdir(lab)
    return lab


class Cli:
    """Runs commands in this process; what went to stderr last is kept in `notes`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.notes = ""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self.capsys.readouterr()
        found = main(list(arguments))
        out, self.notes = self.capsys.readouterr()
        assert found == code, self.notes
        return out

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code))


@pytest.fixture
def cli(here: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)


# ------------------------------------------------------------------------------------------ train, resume


def test_a_trained_run_holds_all_that_it_needs_and_nothing_else(cli: Cli, tmp_path: Path) -> None:
    found = cli.json(*TRAIN, "--out", str(tmp_path / "run"))
    assert {path.name for path in (tmp_path / "run").iterdir()} == RUN_FILES
    assert found["kind"] == "bigram"
    assert found["run"] == str(tmp_path / "run")
    assert found["steps"] == 12
    assert found["held_out_perplexity"] == pytest.approx(math.exp(found["held_out_nats_per_token"]))
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["step"] for row in metrics] == list(range(1, 13))
    assert metrics[-1]["nats"] < metrics[0]["nats"]


def test_training_reports_a_table_for_people(cli: Cli, tmp_path: Path) -> None:
    out = cli(*TRAIN, "--out", str(tmp_path / "run"))
    assert "held out perplexity" in out
    assert f"inkling sample {tmp_path / 'run'}" in out
    assert cli.notes == ""


def test_runs_are_named_after_their_text_and_never_overwritten(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INKLING_RUNS", str(tmp_path))
    names = [Path(cli.json("train", "ngram", "novel.txt")["run"]).name for _ in range(3)]
    assert names == ["ngram-novel", "ngram-novel-2", "ngram-novel-3"]


def test_flags_win_over_a_file_and_a_file_over_the_environment(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recipe.toml").write_text('hidden = 5\nseed = 6\nbad-rows = "skip"\n', encoding="utf-8")
    monkeypatch.setenv("INKLING_HIDDEN", "3")
    monkeypatch.setenv("INKLING_SEED", "4")
    monkeypatch.setenv("INKLING_DROPOUT", "0.25")
    arguments = ("train", "bigram", "novel.txt", "--steps", "1", "--config", str(tmp_path / "recipe.toml"))
    cli(*arguments, "--seed", "7", "--out", str(tmp_path / "run"))
    recipe = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))["recipe"]
    assert recipe["dropout"] == 0.25
    assert recipe["hidden"] == 5
    assert recipe["seed"] == 7
    assert recipe["bad_rows"] == "skip"


def test_skipped_rows_are_reported_on_stderr(cli: Cli, tmp_path: Path) -> None:
    lines = [json.dumps({"text": line}) for line in NOVEL.splitlines()[:50]]
    (tmp_path / "t.jsonl").write_text("\n".join([*lines[:20], "{", *lines[20:]]) + "\n", encoding="utf-8")
    arguments = ("train", "bigram", str(tmp_path / "t.jsonl"), "--steps", "1", "--out", str(tmp_path / "run"))
    cli.json(*arguments, "--bad-rows", "skip")
    assert "51 rows read: 50 used, 1 left out" in cli.notes
    assert "line 21" in cli.notes
    assert "the text is column 'text'" in cli.notes


def test_ctrl_c_keeps_what_was_learned_and_resume_goes_on_as_if_nothing_had_been(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inkling.models.bigram import ExactLoss

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    cli(*TRAIN, "--out", str(whole))
    gradient = ExactLoss.gradient

    def interrupted(self: ExactLoss, batch: Any, step: int) -> tuple[float, float]:
        if step == 5:
            raise KeyboardInterrupt
        return gradient(self, batch, step)

    with monkeypatch.context() as patch:
        patch.setattr(ExactLoss, "gradient", interrupted)
        assert cli(*TRAIN, "--out", str(cut), code=130) == ""
    assert cli.notes.splitlines() == [
        f"Stopped; what was learned is kept. Go on with: inkling resume {cut}",
        "inkling: stopped.",
    ]
    assert cli.json("runs", "show", str(cut))["state"] == "interrupted"
    assert cli.json("resume", str(cut))["steps"] == 12
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    logged = [cli.json("runs", "show", str(run))["metrics"] for run in (whole, cut)]
    for row in (*logged[0], *logged[1]):
        del row["seconds"]
    assert logged[0] == logged[1]


# ------------------------------------------------------------------------------------------ evaluate

EVALUATION_KEYS = {
    *("model", "kind", "text", "normalisation", "lossy", "bits_per_byte", "low", "high", "level", "blocks", "context"),
    *("rank", "rank_best", "rank_worst"),
    *("perplexity_per_token", "perplexity_per_token_charged", "perplexity_per_word", "perplexity_per_character"),
    *("bits_per_token", "bits_per_word", "bits_per_character", "unknown_share"),
    *("nats", "spelling_nats", "tokens", "unknown", "words", "chars", "bytes"),
}


def test_two_runs_two_texts_and_two_normalisations_are_eight_rows_in_any_order(cli: Cli) -> None:
    def rows(runs: list[str], texts: list[str], chains: list[str]) -> dict[tuple[str, str, str], Any]:
        arguments = [*runs, *(a for text in texts for a in ("--on", text))]
        chosen = (a for chain in chains for a in ("--normalise", chain))
        found = cli.json("evaluate", *arguments, *chosen, "--no-baselines")["rows"]
        assert all(set(row) == EVALUATION_KEYS for row in found)
        return {(row["model"], row["text"], row["normalisation"]): row for row in found}

    runs, texts, chains = ["runs/network", "runs/counts"], ["novel.txt", "other.txt"], ["none", "lower"]
    found = rows(runs, texts, chains)
    assert set(found) == {(r, t, c) for r in ("network", "counts") for t in texts for c in chains}
    assert rows(runs[::-1], texts[::-1], chains[::-1]) == found
    alone = rows(["runs/counts"], ["other.txt"], ["lower"])
    both = found["counts", "other.txt", "lower"]
    places = {"rank": 1, "rank_best": 1, "rank_worst": 1}
    assert alone == {("counts", "other.txt", "lower"): {**both, **places}}
    for (_, text, chain), row in found.items():
        if text == "novel.txt":
            assert row["low"] <= row["bits_per_byte"] <= row["high"]
        else:
            assert row["low"] is row["high"] is None  # fewer than eight blocks
        assert row["lossy"] == (chain == "lower")
    assert {row["bytes"] for (_, text, _), row in found.items() if text == "other.txt"} == {len(OTHER.encode())}


def test_evaluate_charges_what_the_model_says(cli: Cli) -> None:
    [row] = cli.json("evaluate", "runs/network", "--on", "other.txt", "--no-baselines")["rows"]
    scores = inkling.load("runs/network").score([OTHER])
    nats = math.fsum(scores.nats) + math.fsum(scores.spelling_nats)
    assert row["nats"] + row["spelling_nats"] == pytest.approx(nats, rel=1e-12)
    assert row["bits_per_byte"] == pytest.approx(nats / math.log(2) / len(OTHER.encode()), rel=1e-12)
    assert row["words"] == len(OTHER.split())


def test_runs_of_the_same_name_are_told_apart_by_their_paths(cli: Cli, tmp_path: Path) -> None:
    cli("train", "ngram", "other.txt", "--out", str(tmp_path / "network"))
    found = cli.json("evaluate", "runs/network", str(tmp_path / "network"), "--on", "other.txt")["rows"]
    assert {row["model"] for row in found if row["kind"] == "run"} == {"runs/network", str(tmp_path / "network")}


def test_evaluate_prints_a_table_on_stdout_and_nothing_on_stderr(cli: Cli) -> None:
    out = cli("evaluate", "runs/network", "runs/counts", "--on", "other.txt")
    assert "bits per byte" in out
    assert "network" in out
    assert "counts" in out
    assert "\x1b" not in out
    assert cli.notes == ""


# ------------------------------------------------------------------------------------------ sample


def test_the_same_seed_writes_the_same_text_and_another_seed_another(cli: Cli) -> None:
    first = cli("sample", "runs/network", "--tokens", "40", "--seed", "3")
    assert cli("sample", "runs/network", "--tokens", "40", "--seed", "3") == first
    assert cli("sample", "runs/network", "--tokens", "40", "--seed", "4") != first
    greedy = [cli("sample", "runs/network", "--temperature", "0", "--seed", seed) for seed in "12"]
    assert greedy[0] == greedy[1]


def test_samples_as_json_hold_the_same_text_and_its_cost(cli: Cli) -> None:
    plain = cli("sample", "runs/counts", "--tokens", "30", "--seed", "5")
    found = cli.json("sample", "runs/counts", "--tokens", "30", "--seed", "5", "--count", "2")
    assert len(found) == 2
    assert found[0]["text"] + "\n" == plain
    assert found[0]["text"] != found[1]["text"]
    assert all(sample["nats"] > 0 and sample["tokens"] == 30 for sample in found)


def test_a_sample_goes_on_from_its_prompt(cli: Cli) -> None:
    assert cli("sample", "runs/network", "--prompt", "The baker", "--tokens", "5").startswith("The baker")
    # After this word the grammar allows one word only, and both models have learned it.
    [sample] = cli.json("sample", "runs/counts", "--prompt", "The baker near", "--tokens", "1", "--temperature", "0")
    assert sample["text"] == "The baker near the"


def test_a_sample_shows_control_characters_instead_of_sending_them(cli: Cli) -> None:
    out = cli("sample", "runs/network", "--prompt", "red\x1b[31m\u202e", "--tokens", "1")
    assert out.startswith("red\\x1b[31m\\u202e")


# ------------------------------------------------------------------------------------------ runs, data


def test_runs_are_listed_shown_and_removed(cli: Cli, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        cli("train", "ngram", "other.txt", "--out", str(tmp_path / name))
    (tmp_path / "not-a-run").mkdir()
    listed = cli.json("runs", "list", "--dir", str(tmp_path))
    assert {Path(run["path"]).name for run in listed} == {"one", "two", "three"}
    assert all(run["state"] == "finished" and run["kind"] == "ngram" for run in listed)
    table = cli("runs", "list", "--dir", str(tmp_path))
    assert all(name in table for name in ("one", "two", "three", "other.txt"))
    assert "not-a-run" not in table

    cli("runs", "rm", str(tmp_path / "one"), str(tmp_path / "two") + "/", "--yes")
    assert "Removed" in cli.notes
    assert sorted(path.name for path in tmp_path.iterdir()) == ["not-a-run", "three"]
    assert "There are no runs" in cli("runs", "list", "--dir", str(tmp_path / "not-a-run"))


def test_a_run_can_be_removed_from_inside_itself(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("train", "ngram", "other.txt", "--out", str(tmp_path / "run"))
    monkeypatch.chdir(tmp_path / "run")
    cli("runs", "rm", ".", "--yes")
    monkeypatch.chdir(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_show_tells_recipe_data_figures_and_curve(cli: Cli) -> None:
    out = cli("runs", "show", "runs/network")
    for part in ("Recipe", "Trained on", "Figures", "hidden", "sha256", "held out perplexity", "novel.txt"):
        assert part in out
    found = cli.json("runs", "show", "runs/network")
    assert found["recipe"]["hidden"] == 8
    assert len(found["metrics"]) == 12


def test_names_in_json_cannot_steer_a_terminal(cli: Cli, tmp_path: Path) -> None:
    odd = tmp_path / "odd\u202e\x7f\x9b31m"
    cli("train", "ngram", "other.txt", "--out", str(odd))
    out = cli("runs", "list", "--dir", str(tmp_path), "--json")
    assert out.replace("\n", "").isprintable()
    assert [run["path"] for run in json.loads(out)] == [str(odd)]
    assert cli("runs", "list", "--dir", str(tmp_path)).replace("\n", "").isprintable()


def test_data_sets_are_listed_with_licence_and_presence(cli: Cli) -> None:
    found = {row["name"]: row for row in cli.json("data", "list")}
    assert {"shakespeare", "wikitext2-raw", "ptb"} <= set(found)
    assert all(row["licence"] and row["files"] for row in found.values())
    assert not any(row["present"] for row in found.values())
    assert found["shakespeare"]["from_index"]
    assert not found["ptb"]["from_index"]
    assert "inkling data get NAME" in cli("data", "list")


# ------------------------------------------------------------------------------------------ gradcheck, claims, doctor


def test_gradcheck_passes_and_says_how_closely(cli: Cli) -> None:
    found = cli.json("gradcheck")
    assert len(found) >= 14
    assert all(row["passes"] and row["differences"] <= 1e-7 and row["autograd"] <= 1e-12 for row in found)
    assert f"{len(found)} of {len(found)} gradients pass." in cli("gradcheck", "--seed", "5")


def test_gradcheck_finds_a_derivative_that_is_wrong(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from inkling.models import gradients

    def forgetful_tanh(x: gradients.Array) -> gradients.Elementwise:
        y = np.tanh(x)
        return y, lambda d_y: d_y * (1.0 - y)

    monkeypatch.setattr(gradients, "tanh", forgetful_tanh)
    found = cli.json("gradcheck", code=1)
    assert [row["layer"] for row in found if not row["passes"]] == ["tanh"]
    assert f"{len(found) - 1} of {len(found)} gradients pass." in cli("gradcheck", code=1)


def test_claims_give_statement_measure_and_verdict(cli: Cli, tmp_path: Path) -> None:
    page = tmp_path / "ledger.html"
    found = cli.json("claims", "A1", "c1", "--html", str(page))
    assert [row["id"] for row in found] == ["A1", "C1"]
    for row in found:
        assert set(row) == {"id", "statement", "published", "measured", "verdict", "seconds", "figures"}
        assert row["verdict"] == "holds"
    assert cli.notes.splitlines() == ["A1 …", "C1 …"]
    assert "The ledger" in page.read_text(encoding="utf-8")


def test_a_claim_that_fails_is_an_exit_code(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from inkling.claims import ledger, rows

    failing = replace(rows.CLAIMS[0], test=lambda context: ledger.Finding("off by one", "fails"))
    monkeypatch.setattr(rows, "CLAIMS", (failing,))
    assert cli.json("claims", code=1)[0]["verdict"] == "fails"
    assert cli.json("claims", "--may-fail", "A1")[0]["verdict"] == "fails"  # known, and no reason to stop


@pytest.mark.parametrize(("verdict", "code"), [("ok", 0), ("note", 0), ("problem", 1)])
def test_doctor_exits_with_1_only_for_a_problem(
    verdict: Any, code: int, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = [Finding("Python", "3.11"), Finding("memory", "2 GiB", verdict, "Close other programs.")]
    monkeypatch.setattr("inkling.doctor.doctor", lambda progress: findings)
    assert cli.json("doctor", code=code) == [
        {"subject": "Python", "value": "3.11", "verdict": "ok", "advice": ""},
        {"subject": "memory", "value": "2 GiB", "verdict": verdict, "advice": "Close other programs."},
    ]
    assert "Close other programs." in cli("doctor", code=code)


# ------------------------------------------------------------------------------------------ help and start


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


COMMANDS = list(commands(typer.main.get_command(app)))


def test_all_commands_are_there() -> None:
    leaves = {" ".join(path) for path in COMMANDS}
    wanted = "evaluate,score,filter,sample,resume,gradcheck,claims,doctor,demo,train bigram,train ngram,runs list"
    assert leaves >= {*wanted.split(","), "runs show", "runs rm", "data list", "data get", "data path"}


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_help_shows_an_example(path: tuple[str, ...], cli: Cli) -> None:
    out = cli(*path, "--help")
    assert out == cli(*path, "-h")
    assert out.startswith(f"Usage: {' '.join(('inkling', *path))} ")
    assert " ".join(("inkling", *path)) in out[out.index("Example") : out.index("Options:")]
    assert max(map(len, out.splitlines())) <= 110


def test_no_command_at_all_shows_help(cli: Cli) -> None:
    assert "Usage: inkling" in cli()
    assert "Usage: inkling train" in cli("train")


def test_the_version_is_printed(cli: Cli) -> None:
    assert cli("--version") == f"{inkling.__version__}\n"


def test_help_is_quick() -> None:
    """User and system time of the whole process; the least of a few tries, since the machine may be busy."""
    seconds = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "inkling", "--help"], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        if seconds[-1] < 0.3:
            break
    assert min(seconds) < 0.3


def test_help_loads_none_of_the_heavy_packages() -> None:
    code = (
        "import sys; from inkling.cli.app import main; main(['train', 'bigram', '--help']); main(['--help']); "
        "print([n for n in ('torch', 'numpy', 'polars', 'tokenizers', 'rich.table') if n in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


# ------------------------------------------------------------------------------------------ pipes and terminals


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(here: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text(NOVEL * 30, encoding="utf-8")  # more than a pipe holds
    command = [sys.executable, "-m", "inkling", "score", "runs/counts", str(tmp_path / "long.txt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["row"] == 1
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_colour_is_for_terminals_that_want_it(here: Path) -> None:
    assert "\x1b[1m" in on_a_terminal(here, "data", "list", TERM="xterm", NO_COLOR="")
    assert "\x1b" not in on_a_terminal(here, "data", "list", TERM="xterm", NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(here, "data", "list", TERM="dumb", NO_COLOR="")
