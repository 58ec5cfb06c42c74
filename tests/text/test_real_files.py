"""Real data sets, read in place: every row arrives, and figures that are known about them come out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inkling.claims.bigram import lines_of, sentences
from inkling.measure.tally import tally
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.spelling import Speller
from inkling.text.corpus import Corpus
from inkling.text.tokenise import train_tokeniser

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def data() -> Path:
    folder = os.environ.get("INKLING_TEST_DATA")
    if not folder:
        pytest.skip("INKLING_TEST_DATA names no folder")
    return Path(folder)


@pytest.mark.parametrize(
    ("name", "rows", "labelled"),
    [
        ("imdb/train.csv.xz", 25_000, True),
        ("imdb/unsup.txt.xz", 50_000, False),
        ("sst2/train.tsv", 67_349, True),
        ("sst2/dev.tsv", 872, True),
        ("birthplace/birth_places_train.tsv", 2_000, True),
        ("birthplace/birth_test_inputs.tsv", 437, False),
        ("birthplace/wiki.txt", 2_937, False),
        ("ptb/ptb.train.txt", 42_068, False),
        ("tinyshakespeare/input.txt", 40_000, False),
    ],
)
def test_every_row_of_a_published_set_arrives(data: Path, name: str, rows: int, labelled: bool) -> None:
    corpus = Corpus([data / name], keep_empty=True)
    found = list(corpus)
    assert len(found) == corpus.intake.rows_in == corpus.intake.rows_used == rows
    assert all((row.label is not None) == labelled for row in found)


def test_text_is_read_without_loss(data: Path) -> None:
    path = data / "birthplace/wiki.txt"
    assert "".join(lines_of(path)).encode() == path.read_bytes()


def test_kneser_ney_bigrams_on_penn_treebank_reach_their_known_perplexity(data: Path) -> None:
    """2,000 words, dev text: 69.1 by an independent implementation, whose ties of rare words fell otherwise."""
    train, dev = lines_of(data / "ptb/ptb.train.txt"), lines_of(data / "ptb/ptb.valid.txt")
    tokeniser = train_tokeniser("word", [train], 2000, pieces="spaces", exclude=frozenset({"<unk>"}))
    assert sum(len(tokeniser.encode(block).ids) for block in (train,)) == 929_589  # words and line ends, as published
    encoded = tokeniser.encode(train)
    model = NGram.fit([encoded], tokeniser, NGramConfig(2), speller=Speller.fit(encoded.spellings))
    measured = tally(model.score(dev))
    assert measured.tokens == 73_760
    assert measured.bytes == 399_782
    assert measured.perplexity() == pytest.approx(69.1, abs=0.2)


def test_characters_of_order_six_on_tiny_shakespeare(data: Path) -> None:
    """Last tenth held out; 1.528 nats a character by an independent implementation with another rule for beginnings."""
    text = (data / "tinyshakespeare/input.txt").read_text(encoding="utf-8")
    cut = len(text) * 9 // 10
    tokeniser = train_tokeniser("character", [[text[:cut]]])
    model = NGram.fit([tokeniser.encode([text[:cut]])], tokeniser, NGramConfig(6), speller=Speller.fit(["x"]))
    measured = tally(model.score([text[cut:]]))
    assert measured.nats / measured.tokens == pytest.approx(1.523, abs=0.005)


def test_the_tagged_course_text_becomes_sentences(data: Path) -> None:
    text = sentences((data / "ptb/tau/ptb-dev.txt").read_text(encoding="utf-8"))
    assert text.startswith(" consumers may want to move their telephones \n a little closer to the tv set . \n")
    assert " in DGDG years from among " in text
