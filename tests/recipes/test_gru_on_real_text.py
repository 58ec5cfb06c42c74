"""One minute of `inkling train gru` on Shakespeare, and the ruler on four texts that it has not chosen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inkling.recipes.evaluation import EvaluationRecipe, evaluate_runs
from inkling.recipes.gru import GRURecipe, train_gru
from inkling.runs.run import Run


@pytest.mark.data
@pytest.mark.skipif("INKLING_TEST_DATA" not in os.environ, reason="INKLING_TEST_DATA names no folder of real sets")
def test_a_minute_on_shakespeare_and_the_ruler_on_four_texts(tmp_path: Path) -> None:
    data = Path(os.environ["INKLING_TEST_DATA"])
    text = (data / "tinyshakespeare/input.txt").read_text(encoding="utf-8")
    cut = len(text) * 9 // 10
    for name, part in (("train.txt", text[:cut]), ("rest.txt", text[cut:])):
        (tmp_path / name).write_text(part, encoding="utf-8", newline="")
    recipe = GRURecipe(files=(str(tmp_path / "train.txt"),), held_out=(str(tmp_path / "rest.txt"),), minutes=1)
    for _ in train_gru(recipe, tmp_path / "gru"):
        pass
    summary = Run.open(tmp_path / "gru").info["summary"]
    assert summary["held_out_tokens"] == len(text) - cut
    assert summary["held_out_nats_per_token"] < 1.70  # 1.58 on an idle machine of two cores
    assert summary["seconds"] < 66

    files = (
        "ptb/tau/shakespeare_for_perplexity.txt",
        "ptb/tau/wikipedia_for_perplexity.txt",
        "wikitext2/wiki.valid.raw.xz",
        "ptb/ptb.valid.txt",
    )
    matrix = evaluate_runs(EvaluationRecipe((str(tmp_path / "gru"),), tuple(str(data / file) for file in files)))
    sizes = {row.text: row.tally.bytes for row in matrix.rows if row.model == "uniform bytes"}
    assert len(sizes) == len(files)
    assert sizes["ptb.valid.txt"] == (data / "ptb/ptb.valid.txt").stat().st_size
    for row in matrix.rows:
        assert row.tally.bytes == sizes[row.text]  # every model pays for the same bytes
        if row.model == "uniform bytes":
            assert row.bits_per_byte.value == pytest.approx(8, abs=1e-9)
    (overlap,) = [found for found in matrix.overlaps if found.text == "shakespeare_for_perplexity.txt"]
    assert overlap.exact_share > 0.9  # the passage lies inside the training text
