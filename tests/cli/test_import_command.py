"""`inkling import`, and the directory of a trained run in the hands of the transformers library."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from driver import Cli
from safetensors.torch import load_file, save_file

from inkling.models.gpt_model import Transformer
from inkling.runs.loading import load
from inkling.runs.run import Run
from inkling.text.grammar import grammar_text

SMALL = ("--steps", "8", "--layers", "2", "--width", "32", "--heads", "2", "--mlp", "48", "--context", "16",
         "--batch", "4", "--precision", "float32")  # fmt: skip
EXPORTED = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
TEXT = "The baker bakes\nthe loaf: žluťoučký!\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from inkling.cli.app import main

    folder = tmp_path_factory.mktemp("trained")
    (folder / "novel.txt").write_text(grammar_text(np.random.default_rng(5), 1500), encoding="utf-8")
    assert main(["train", "gpt", str(folder / "novel.txt"), *SMALL, "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def exported(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What another program would be given."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in EXPORTED:
        shutil.copy(trained / name, folder / name)
    return folder


@pytest.fixture
def bring(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys, "import")


def opened(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    library: Any = AutoModelForCausalLM
    model, told = library.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    assert not any(told[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    return model.eval()


@pytest.mark.slow
def test_the_run_of_the_command_opens_in_the_transformers_library(trained: Path) -> None:
    from transformers import AutoTokenizer

    ours = load(trained)
    assert isinstance(ours, Transformer)
    theirs, tokeniser = opened(trained), AutoTokenizer.from_pretrained(trained, local_files_only=True)
    ids = tokeniser("\nThe baker", return_tensors="pt")["input_ids"]
    assert ids[0, 1:].tolist() == ours.tokeniser.encode(["The baker"]).ids.tolist()
    with torch.no_grad():
        logits = theirs(ids).logits
    torch.testing.assert_close(logits.log_softmax(-1), ours.log_probs(ids), rtol=0, atol=1e-5)
    drawn = theirs.generate(ids, max_new_tokens=16 - ids.shape[1], do_sample=False, pad_token_id=0)[0, ids.shape[1] :]
    state, log_probs = ours.begin()
    for token in ids[0, 1:].tolist():
        state, log_probs = ours.step(state, token)
    expected = []
    for _ in drawn:
        expected.append(int(log_probs.argmax()))
        state, log_probs = ours.step(state, expected[-1])
    assert drawn.tolist() == expected


def test_a_run_that_is_imported_scores_the_same_to_the_bit(trained: Path, tmp_path: Path, bring: Cli) -> None:
    summary = bring.json(str(trained), "--out", str(tmp_path / "copy"))
    assert (summary["kind"], summary["layers"], summary["context"]) == ("gpt", 2, 16)
    assert bring.notes == ""
    copy, original = Run.open(tmp_path / "copy"), Run.open(trained)
    assert copy.finished
    for name in EXPORTED[:3]:
        assert (copy.path / name).read_bytes() == (trained / name).read_bytes()
    assert copy.info["data"] == original.info["data"]  # whose text it has seen is not forgotten
    for name in ("nats", "spelling_nats"):
        assert getattr(load(copy).score([TEXT]), name).tolist() == getattr(load(original).score([TEXT]), name).tolist()


def test_a_bare_directory_is_imported_and_used_like_any_run(exported: Path, trained: Path, bring: Cli) -> None:
    bring(str(exported))
    assert "has no speller" in bring.notes
    known = "The baker bakes the loaf.\n"
    copy = load("runs/theirs")
    assert copy.score([known]).nats.tolist() == load(trained).score([known]).nats.tolist()
    assert np.isfinite(copy.score([TEXT]).spelling_nats).all()
    use = Cli(bring.capsys)
    assert use("sample", "runs/theirs", "--tokens", "5")
    assert "What it was trained on is not known." in Path("runs/theirs/README.md").read_text("utf-8")
    Path("other.txt").write_text(known * 400, encoding="utf-8")
    found = use("evaluate", "runs/theirs", "--on", "other.txt")
    assert "What theirs was trained on cannot be read again (the model was imported without it)" in found
    assert "theirs" in use("runs", "list")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_in_fewer_bits_are_widened_and_that_is_said(exported: Path, bring: Cli, dtype: torch.dtype) -> None:
    narrow = {name: value.to(dtype) for name, value in load_file(exported / "model.safetensors").items()}
    save_file(narrow, exported / "model.safetensors", {"format": "pt"})
    bring(str(exported))
    name = str(dtype).removeprefix("torch.")
    assert f"Weights in {name} were widened to float32, which changes none of them." in bring.notes
    widened = load_file("runs/theirs/model.safetensors")
    assert all(torch.equal(value, narrow[name].float()) for name, value in widened.items())


def test_weights_in_several_files_are_put_together(exported: Path, trained: Path, bring: Cli) -> None:
    opened(trained).save_pretrained(exported, max_shard_size="40KB")
    (exported / "model.safetensors").unlink()
    assert len(list(exported.glob("model-0*.safetensors"))) > 1
    bring(str(exported), "--out", "joined")
    assert Path("joined/model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()


def change(folder: Path, name: str, **changes: Any) -> None:
    record = json.loads((folder / name).read_text(encoding="utf-8"))
    (folder / name).write_text(json.dumps(record | changes), encoding="utf-8")


def with_pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def with_index(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../a.safetensors"}}', encoding="utf-8")


def with_added_token(folder: Path) -> None:
    change(folder, "tokenizer.json", added_tokens=[{"id": 1, "content": "<s>", "special": True}])


def with_spare_rows(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        tensors[name] = torch.cat([tensors[name], torch.zeros(3, 32)])
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    change(folder, "config.json", vocab_size=len(tensors["lm_head.weight"]))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda folder: (folder / "config.json").unlink(), "theirs has no config.json, which says what the model is"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json cannot be read ("),
        (lambda folder: (folder / "config.json").write_text("[]"), "config.json holds no record"),
        (lambda folder: change(folder, "config.json", model_type="gpt2"), "Inkling reads qwen3 and llama"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "theirs has no tokenizer.json"),
        (lambda folder: (folder / "tokenizer.json").write_bytes(b"\xff"), "tokenizer.json cannot be read ("),
        (with_added_token, "is not a tokeniser that Inkling has (it found added tokens or a normaliser)"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has neither model.safetensors nor"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"no"), "model.safetensors cannot be read ("),
        (with_pickle, "holds its weights as pytorch_model.bin, a pickle"),
        (with_index, "names '../a.safetensors'; the files of a model stand beside its index."),
        (with_spare_rows, "tokens and its tokenizer.json"),
    ],
)
def test_what_cannot_be_imported_is_refused_in_a_sentence(
    exported: Path, bring: Cli, damage: Any, sentence: str
) -> None:
    damage(exported)
    bring(str(exported), code=1)
    assert sentence in bring.notes
    assert bring.notes.startswith("inkling: ")
    assert bring.notes.count("\n") == 1
    assert not Path("runs").exists()


def test_other_mistakes(exported: Path, trained: Path, bring: Cli) -> None:
    bring("absent", code=1)
    assert "absent is not a directory; give one with config.json" in bring.notes
    bring(str(exported), "--out", str(trained), code=2)
    assert "exists already" in bring.notes


def test_what_was_not_imported_to_the_end_is_imported_again(
    exported: Path, bring: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "finish", killed)
    bring(str(exported), "--out", "part", code=130)
    resume = Cli(capsys, "resume")
    resume("part", code=1)
    assert "part was not imported to the end" in resume.notes


def test_a_run_that_was_damaged_or_is_not_finished_is_refused(trained: Path, tmp_path: Path, bring: Cli) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(trained, broken)
    (broken / "tokenizer.json").write_text("{}", encoding="utf-8")
    bring(str(broken), "--out", str(tmp_path / "out"), code=1)
    assert "is damaged: tokenizer.json is not what was written" in bring.notes
    for name in ("manifest.json", "model.safetensors"):
        (broken / name).unlink()
    bring(str(broken), "--out", str(tmp_path / "out"), code=1)
    assert "is a run that is not finished; finish it with `inkling resume" in bring.notes


def test_the_card_tells_what_it_is_and_how_to_open_it_elsewhere(trained: Path) -> None:
    card = (trained / "README.md").read_text(encoding="utf-8")
    info = Run.open(trained).info
    assert "A small transformer (a decoder-only language model) trained by Inkling" in card
    assert f"SHA-256 `{info['data']['sha256']}`" in card
    assert 'AutoModelForCausalLM.from_pretrained("run")  # a qwen3, float32' in card
    assert f"| held out tokens | {info['summary']['held_out_tokens']:,} |" in card
    assert '"width": 32' in card


def test_the_code_on_the_card_runs(trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    card = (trained / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(trained.parent)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for block in card.split("```python\n")[1:]:
        exec(block.partition("```")[0], {})
    assert capsys.readouterr().out.startswith("\nSome te")  # x is not in its alphabet


def test_the_card_of_what_no_other_program_opens_says_so(trained: Path, tmp_path: Path, capsys: Any) -> None:
    train = Cli(capsys, "train", "gpt", str(trained.parent / "novel.txt"), *SMALL)
    train("--activation", "squared_relu", "--grams", "2", "--out", str(tmp_path / "own"))
    card = (tmp_path / "own" / "README.md").read_text(encoding="utf-8")
    assert "This transformer has tables of hashed runs of tokens (grams is 2) and another layer than the gated" in card
    assert "AutoModelForCausalLM" not in card
    bring = Cli(capsys, "import")
    bring(str(tmp_path / "own"), "--out", str(tmp_path / "copy"))  # in Inkling it opens
    scores = [load(tmp_path / name).score([TEXT]).nats.tolist() for name in ("own", "copy")]
    assert scores[0] == scores[1]
