"""C2 to C4 on small stand-ins for the files: what is counted, charged and concluded."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inkling.claims import passages, perplexity, ranking
from inkling.claims.ledger import Context, LedgerRow, run, select
from inkling.claims.rows import CLAIMS
from inkling.figures import Chart, Table
from inkling.measure.intervals import Judged
from inkling.measure.tally import Tally, tally
from inkling.models.baselines import Uniform
from inkling.text.grammar import grammar_text
from inkling.text.normalise import Chain
from inkling.text.tokenise import ByteTokeniser, train_tokeniser

VERSE = "\n".join(
    f"Thou hast o'er the {word} gone," for word in ("mill", "lake", "hill", "road", "farm", "yard", "sea", "wood")
)
ARTICLE = (
    "\n\n".join(
        f"In {year} the Pākehā (settlers) built {n} mills. The town – then small – grew."
        for n, year in enumerate(range(1840, 1848), 2)
    )
    + "\n"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same layout as the real folder: the verse lies in the middle of the training text."""
    folder = tmp_path_factory.mktemp("data")
    tau = folder / "ptb" / "tau"
    tau.mkdir(parents=True)
    (folder / "tinyshakespeare").mkdir()
    text = grammar_text(np.random.default_rng(0), 3000)
    lines = text.splitlines(keepends=True)
    middle = len(lines) // 2
    whole = "".join(lines[:middle]) + VERSE + "\n" + "".join(lines[middle:])
    (folder / "tinyshakespeare" / "input.txt").write_text(whole, encoding="utf-8", newline="")
    words = ["the", ",", ".", "UUUNKKK", "<s>", "</s>", "a", "in", "and", "baker", "DGDGDGDG"]
    (tau / "vocab.ptb.txt").write_text("".join(f"{w:10}\t5\t0.1\n" for w in words), encoding="utf-8")
    generator = np.random.default_rng(1)
    vectors = "".join(f"{word} {' '.join(f'{x:.3f}' for x in generator.normal(size=4))}\n" for word in words)
    (tau / "vocab2000.glove50.derived.txt").write_text(vectors, encoding="utf-8")
    tagged = "\n".join(
        "".join(f"{word}\tX\n" for word in line.replace(".", " .").replace(",", " ,").split()) for line in lines[:200]
    )
    (tau / "ptb-dev.txt").write_text(tagged, encoding="utf-8")
    (tau / "shakespeare_for_perplexity.txt").write_text(VERSE, encoding="utf-8", newline="")
    (tau / "wikipedia_for_perplexity.txt").write_text(ARTICLE, encoding="utf-8", newline="")
    return folder


@pytest.fixture(scope="module")
def rows(data: Path) -> dict[str, LedgerRow]:
    small = replace(passages.GRU_RECIPE, hidden=24, steps=60, batch=8, chunk=32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passages, "GRU_RECIPE", small)
        patch.setattr(ranking, "FAR_CHARACTERS", 800)
        said: list[str] = []
        found = {row.id: row for row in run(select(CLAIMS, ["C2", "C3", "C4"]), Context(data, said.append))}
    return found


# ------------------------------------------------------------------------------------------------ the parts


def test_lines_and_runs_of_lines_are_the_predictions() -> None:
    assert perplexity.runs_of_lines("a b\nc\n\n\nd\n") == [["a b", "c"], ["d"]]
    assert perplexity.runs_of_lines("\n \n") == []
    tokeniser = train_tokeniser("word", [["a b c d\n"]])
    uniform = Uniform(tokeniser)
    forty_one = "\n".join("some words of verse" for _ in range(41))
    eight = "\n\n".join("a whole paragraph" for _ in range(8))
    for passage, predictions, lines in ((forty_one, 42, 41), (eight, 16, 8)):
        counted = perplexity.published_count(uniform, passage)
        assert (counted.tokens, counted.unknown) == (predictions, lines)
        assert counted.perplexity() == pytest.approx(tokeniser.size, rel=1e-6)  # a uniform model: V, however counted


def test_the_published_pair_gives_back_the_probabilities_it_was_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, again, end = 0.2, 0.3, 0.05
    lines, paragraphs = "\n".join("x" * 10), "\n\n".join("x" * 4)
    verse = math.exp(-(9 * math.log(again) + math.log(begin * end)) / 11)
    article = (begin * end) ** -0.5
    monkeypatch.setattr(perplexity, "PUBLISHED_WORD", {"Shakespeare": verse, "Wikipedia": article})
    found = perplexity.implied_probabilities({"Shakespeare": lines, "Wikipedia": paragraphs})
    assert found["implied_unknown_after_unknown"] == pytest.approx(again)


def test_plain_pair_counts_give_the_perplexity_that_can_be_worked_out_by_hand(tmp_path: Path) -> None:
    (tmp_path / "vocab.ptb.txt").write_text("the\t1\t1\nUUUNKKK\t1\t1\n", encoding="utf-8")
    # Two sentences, "the X" and "X Y": begin→unknown 1 of 2, unknown→unknown 1 of 3, unknown→end 2 of 3.
    (tmp_path / "text").write_text("the\tD\nxx\tN\n\nxx\tN\nyy\tN\n", encoding="utf-8")
    found = perplexity.counted_lines(tmp_path, "text", "one line\nanother\n")
    assert found == pytest.approx((1 / 2 * 1 / 3 * 2 / 3) ** (-1 / 3))
    (tmp_path / "text").write_text("the\tD\nthe\tD\n", encoding="utf-8")
    assert perplexity.counted_lines(tmp_path, "text", "one line") == math.inf


def test_the_passage_is_taken_out_line_by_line_and_nothing_else() -> None:
    assert passages.without("a\n\nb\nc\nb d\n", "b\n\nc") == "a\n\nb d\n"


def test_a_text_in_the_form_of_the_newspaper() -> None:
    found = passages.newspaper_form("In 1642, Tasman's self-governing crew.\nWhy? Yes")
    assert found == " in DGDGDGDG , tasman 's self-governing crew . \n why ? \n yes"


def test_verse_is_judged_by_lines_and_prose_by_sentences_and_nothing_is_lost() -> None:
    assert ranking.units_of("One.\nTwo. Three\n") == ["One.\n", "Two. Three\n"]
    prose = "A long line, with words. " * 10 + "\n"
    assert len(ranking.units_of(prose)) == 11
    assert "".join(ranking.units_of(prose)) == prose


def test_what_the_units_are_charged_is_what_the_text_costs() -> None:
    text = "abc\ndeé\n"
    scores = Uniform(ByteTokeniser()).score([text])
    charged = passages.charged(scores, ["abc\n", "deé\n"])
    assert charged == pytest.approx([4 * math.log(256), 5 * math.log(256)])  # é is two bytes


def test_the_last_context_that_helps_is_the_one_before_the_first_that_does_not() -> None:
    def judged(values: list[float], p_values: list[float]) -> Judged:
        zeros = np.zeros(len(values))
        return Judged(np.array(values), zeros, zeros, np.array(p_values), 20)

    assert ranking.last_gain(judged([1.0, 0.5, 0.1], [1e-9, 1e-9, 0.6])) == 2
    assert ranking.last_gain(judged([1.0, 0.5, 0.1], [1e-9, 1e-9, 1e-9])) == 3
    assert ranking.last_gain(judged([1.0, -0.5, 0.1], [1e-9, 1e-9, 1e-9])) == 1  # worse is no gain
    assert ranking.last_gain(judged([0.1, 0.5], [0.3, 1e-9])) == 0


def test_a_saving_is_fewer_bytes_and_easier_bytes_and_no_more() -> None:
    before, after = Tally(nats=100.0, bytes=50), Tally(nats=60.0, bytes=40)
    found = perplexity.explain_reduction(before, after)
    assert (found.fewer_bytes_nats, found.easier_nats) == pytest.approx((10 * 2.0, 40 * 0.5))
    assert found.fewer_bytes_nats + found.easier_nats == pytest.approx(100 - 60)
    assert found.share_of_fewer_bytes == pytest.approx(0.5)


def test_for_a_uniform_model_all_of_the_saving_is_fewer_bytes() -> None:
    text = "Pākehā (1840) – «Häuser»\n" * 5
    after = Chain.parse("ascii,letters,lower")(text)
    uniform = Uniform(ByteTokeniser())
    found = perplexity.explain_reduction(tally(uniform.score([text])), tally(uniform.score([after])))
    assert found.share_of_fewer_bytes == pytest.approx(1.0)


def test_characters_that_are_gone_are_named() -> None:
    assert perplexity.named_losses("(A) (B)", Chain.parse("letters,lower")) == "'('×2, ')'×2, 'A'×1, 'B'×1"
    assert perplexity.named_losses("abc", Chain.parse("lower")) == ""
    assert perplexity.named_losses("ABC", Chain.parse("lower"), most=1).endswith("and 2 more")


@pytest.mark.data
@pytest.mark.skipif("INKLING_TEST_DATA" not in os.environ, reason="INKLING_TEST_DATA names no folder of real sets")
def test_the_real_passages_have_42_and_16_predictions_and_one_of_them_lies_in_the_training_text() -> None:
    folder = Path(os.environ["INKLING_TEST_DATA"])
    texts = passages.passages(Context(data=folder))
    assert texts is not None
    uniform = Uniform(train_tokeniser("word", [["a\n"]]))
    assert [perplexity.published_count(uniform, text).tokens for text in texts.values()] == [42, 16]
    whole = (folder / "tinyshakespeare" / "input.txt").read_text(encoding="utf-8")
    assert whole.count("\n") - passages.without(whole, texts["Shakespeare"]).count("\n") == 41


# ------------------------------------------------------------------------------------------------ the rows


@pytest.mark.parametrize("name", ["C2", "C3", "C4"])
def test_without_their_files_they_are_not_run(name: str, tmp_path: Path) -> None:
    for context in (Context(), Context(data=tmp_path)):
        (row,) = run(select(CLAIMS, [name]), context)
        assert row.verdict == "not run"
        assert "--data" in row.measured


def test_c2_counts_lines_as_words_and_then_the_words(rows: dict[str, LedgerRow]) -> None:
    figures = rows["C2"].figures
    assert figures["shakespeare_predictions"] == 8 + 1
    assert figures["wikipedia_predictions"] == 8 + 8
    assert figures["removed_lines"] == 8
    words = len(passages.newspaper_form(VERSE).split(" ")) - 1
    (table,) = rows["C2"].exhibits
    assert isinstance(table, Table)
    assert words in [row[2] for row in table.rows]
    assert len(table.rows) == 2 * 4
    assert figures["wikipedia_words_unknown_share"] > 0.5  # eleven words are all that the stand-in knows
    assert rows["C2"].verdict in ("corrected", "fails")
    assert (rows["C2"].verdict == "corrected") == (figures["largest_ratio_to_published"] <= perplexity.CLOSE)


def test_the_model_that_has_read_the_passage_knows_it_better(rows: dict[str, LedgerRow]) -> None:
    figures = rows["C2"].figures
    assert figures["shakespeare_characters_left_in"] < figures["shakespeare_characters"]


def test_c3_ranks_by_bits_per_byte_and_finds_how_far_back_helps(rows: dict[str, LedgerRow]) -> None:
    row = rows["C3"]
    table, chart = row.exhibits
    assert isinstance(table, Table)
    assert isinstance(chart, Chart)
    assert len(table.rows) == 2 * 4
    for passage in ("Shakespeare", "Wikipedia"):
        bits = [float(cells[4]) for cells in table.rows if cells[0] == passage and isinstance(cells[4], float)]
        assert bits == sorted(bits)
    assert row.verdict == "corrected"
    assert [line.name for line in chart.lines] == ["Shakespeare", "Wikipedia", "held out"]
    assert all(list(line.x) == list(ranking.CONTEXTS) for line in chart.lines)
    assert row.figures["held_out_bits_with_8"] < row.figures["held_out_bits_with_1"]
    assert row.figures["held_out_useful_context"] in ranking.CONTEXTS


def test_who_is_better_is_said_only_where_it_is_sure() -> None:
    bigram, network = ranking.BIGRAM, ranking.NETWORK
    found = Judged(np.array([0.5, -0.5]), np.zeros(2), np.zeros(2), np.zeros(2), 20)
    assert ranking._better(found, 0, 0.01) == network  # the bigram needs more
    assert ranking._better(found, 1, 0.01) == bigram
    assert ranking._better(found, 1, 0.2) == ranking._better(found, 1, math.nan) == ""
    assert "is the published" in ranking._reading({"Shakespeare": bigram, "Wikipedia": network})
    assert "reversed" in ranking._reading({"Shakespeare": network, "Wikipedia": bigram})
    assert "not the published" in ranking._reading({"Shakespeare": network, "Wikipedia": ""})


def test_a_context_as_long_as_the_text_is_no_truncation(rows: dict[str, LedgerRow], data: Path) -> None:
    models = passages._models(data)
    text = VERSE[:100]
    figures, _, _ = ranking.context_lengths(models.network, {"verse": text}, (1, 100))
    assert figures["verse_bits_with_100"] == pytest.approx(tally(models.network.score([text])).bits("token"), abs=1e-5)


def test_c4_charges_for_the_original_bytes(rows: dict[str, LedgerRow]) -> None:
    row = rows["C4"]
    (table,) = row.exhibits
    assert isinstance(table, Table)
    figures = row.figures
    for name, text in (("shakespeare", VERSE), ("wikipedia", ARTICLE)):
        before, after = (cells for cells in table.rows if str(cells[0]).lower() == name)
        assert before[6] == before[7]  # what is left of the original is all of it
        chain = Chain.parse(str(after[1]))
        left = len(chain(text).encode()) / len(text.encode())
        assert isinstance(after[6], float)
        assert after[7] == pytest.approx(after[6] * left)
        saved = figures[f"{name}_bits_per_original_byte_before"] - figures[f"{name}_bits_per_original_byte_after"]
        assert figures[f"{name}_saved_bits_per_byte"] == pytest.approx(saved)
    assert figures["shakespeare_changed_characters"] + figures["shakespeare_removed_characters"] > 8 * 3
    assert "'('" in table.notes[1]
    assert row.verdict in ("holds if", "corrected")
    fell = [figures[f"{n}_perplexity_after"] < figures[f"{n}_perplexity_before"] for n in ("shakespeare", "wikipedia")]
    assert (row.verdict == "holds if") == all(fell)
