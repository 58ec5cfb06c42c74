from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_args
from unicodedata import category

import numpy as np
import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError, UsageError
from inkling.text.bpe import BPETokeniser
from inkling.text.tokenise import (
    KINDS,
    ByteTokeniser,
    CharacterTokeniser,
    Pieces,
    WordTokeniser,
    count_pieces,
    load_tokeniser,
    piece_pattern,
    tokenizer_config_json,
    train_tokeniser,
)
from inkling.text.tokens import Tokeniser

TEXT = (
    "The cat sat on the mat, the cat's mat.\nIt cost 1,200 pounds; the dog (a big dog) slept.\r\n"
    "Ça va? Déjà vu — “oui”…\n\n  indented   text \n私は猫です。ภาษาไทย 🙂 ❤️\n"
) * 3
ODD = "abT tsé\u0301\u0308'’\"—1٣²½ \t\r\n\u2028\x00\x85\u3000\u200d\ufe0f中カがกิ々🙂👩💻\ud7ff\U000e0100\u0378<unk>_"
texts = st.text(max_size=60) | st.text(ODD, max_size=60)

TOKENISERS: dict[str, Tokeniser] = {
    "word": train_tokeniser("word", [[TEXT]], 40),
    "word at spaces": train_tokeniser("word", [[TEXT]], 40, pieces="spaces"),
    "character": train_tokeniser("character", [[TEXT]], 30),
    "byte": train_tokeniser("byte", []),
    "bpe": train_tokeniser("bpe", [[TEXT]], 300),
    "bpe at spaces": train_tokeniser("bpe", [[TEXT]], 300, pieces="spaces"),
}
every_tokeniser = pytest.mark.parametrize("tokeniser", TOKENISERS.values(), ids=TOKENISERS.keys())
both_cuts = pytest.mark.parametrize("cut", get_args(Pieces))


def cut_into(pieces: Pieces, text: str) -> list[str]:
    return re.findall(piece_pattern(pieces), text)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("The cat's mat.", ["The", " cat", "'", "s", " mat", "."]),
        ("a  b", ["a", " ", " b"]),
        ("a\t\tb", ["a", "\t\t", "b"]),
        ("a \t b", ["a", " \t", " b"]),
        ("in 1984, (x)", ["in", " 1984", ",", " (", "x", ")"]),
        ("a \n\n b\r\nc ", ["a", " \n", "\n", " b", "\r\n", "c", " "]),
        ("don’t—stop…", ["don", "’", "t", "—", "stop", "…"]),
        ("café cafe\u0301", ["café", " cafe\u0301"]),
        ("私は猫 です", ["私", "は", "猫", " ", "で", "す"]),
        ("กำ ดี", ["ก", "ำ", " ", "ดี"]),
        ("हिन्दी 한국어", ["हिन्दी", " 한국어"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("hi 👩\u200d💻❤\ufe0fyes", ["hi", " 👩\u200d💻❤\ufe0f", "yes"]),
        ("1\ufe0f\u20e3x", ["1\ufe0f\u20e3", "x"]),
        ("a\u2028b\x85\nc", ["a", "\u2028", "b", "\x85\n", "c"]),
        ("\u0301a", ["\u0301a"]),
        ("", []),
    ],
)
def test_words_are_cut_as_described(text: str, pieces: list[str]) -> None:
    assert cut_into("words", text) == pieces


def test_text_tokenised_already_is_cut_at_its_spaces() -> None:
    text = " the <unk> did n't  pay $ N \n no\n"
    assert cut_into("spaces", text) == [
        *(" the", " <unk>", " did", " n't", " ", " pay", " $", " N", " \n"),
        *(" no", "\n"),
    ]


@both_cuts
@settings(deadline=None, max_examples=300)
@given(text=texts)
def test_pieces_cover_the_text_and_end_at_line_ends(cut: Pieces, text: str) -> None:
    pieces = cut_into(cut, text)
    assert "".join(pieces) == text
    assert all("\n" not in piece[:-1] for piece in pieces)
    lines = text.split("\n")
    ended = [line + "\n" for line in lines[:-1]] + lines[-1:]
    assert pieces == [piece for line in ended for piece in cut_into(cut, line)]


def test_every_character_of_unicode_is_cut_by_its_class() -> None:
    """After a letter: a letter or mark joins it, anything else, and a script without spaces, does not."""
    joins = re.compile(piece_pattern("words")).fullmatch
    sample = [chr(code) for code in range(0x3000) if chr(code) not in "\u200c\u200d"]
    scripts_without_spaces = re.compile(
        "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f]"
    )
    for character in sample:
        expected = category(character)[0] == "M" or (
            category(character)[0] == "L" and not scripts_without_spaces.match(character)
        )
        assert (joins("q" + character) is not None) == expected, hex(ord(character))
        assert (joins("é" + character) is not None) == expected, hex(ord(character))


@settings(deadline=None, max_examples=500)
@given(text=texts)
def test_the_short_cuts_of_the_pattern_change_no_piece(text: str) -> None:
    alternatives = piece_pattern("words").split("|")  # no class holds the bar itself
    assert len(alternatives) == 14
    assert cut_into("words", text) == re.findall("|".join(alternatives[7:]), text)


@every_tokeniser
@settings(deadline=None, max_examples=150)
@given(several=st.lists(texts, max_size=4))
@example(several=[])
@example(several=["", "\ud7ff\ue000\U0010ffff\x00", "\r\n\u2028 \n"])
def test_nothing_is_lost(tokeniser: Tokeniser, several: list[str]) -> None:
    encodings = tokeniser.encode(several)
    assert len(encodings) == len(several)
    assert encodings.ids.dtype == np.int32
    assert tokeniser.decode(encodings.ids, encodings.spellings) == "".join(several)
    unknown = encodings.ids == (-1 if tokeniser.unknown is None else tokeniser.unknown)
    assert unknown.sum() == len(encodings.spellings)
    for i, text in enumerate(several):
        span = slice(encodings.offsets[i], encodings.offsets[i + 1])
        alone = tokeniser.encode([text])
        assert encodings.ids[span].tolist() == alone.ids.tolist()
        spelled = int(unknown[: span.start].sum())
        assert encodings.spellings[spelled : spelled + len(alone.spellings)] == alone.spellings
        charged = tokeniser.byte_lengths[alone.ids].sum() + sum(len(s.encode()) for s in alone.spellings)
        assert charged == len(text.encode())


@every_tokeniser
@settings(deadline=None, max_examples=150)
@given(text=texts)
@example(text="<unknown> a <unknown>")
def test_the_tokenizers_library_gives_the_same_ids(tokeniser: Tokeniser, text: str) -> None:
    library = tokenizers.Tokenizer.from_str(tokeniser.to_json())
    assert library.encode(text).ids == tokeniser.encode([text]).ids.tolist()


@every_tokeniser
@settings(deadline=None, max_examples=60)
@given(text=texts)
def test_a_loaded_tokeniser_is_the_one_that_was_saved(tokeniser: Tokeniser, text: str) -> None:
    loaded = load_tokeniser(tokeniser.to_json())
    assert loaded == tokeniser
    assert (loaded.kind, loaded.size, loaded.begin) == (tokeniser.kind, tokeniser.size, tokeniser.begin)
    assert loaded.to_json() == tokeniser.to_json()
    ours, theirs = tokeniser.encode([text]), loaded.encode([text])
    assert (ours.ids.tolist(), ours.spellings) == (theirs.ids.tolist(), theirs.spellings)


@every_tokeniser
def test_a_long_text_is_encoded_as_its_lines_are(tokeniser: Tokeniser) -> None:
    text = TEXT * 300
    assert len(text) > 1 << 17
    long, lines = tokeniser.encode([text]), tokeniser.encode(text.splitlines(keepends=True))
    assert long.ids.tolist() == lines.ids.tolist()
    assert long.spellings == lines.spellings
    assert tokeniser.decode(long.ids, long.spellings) == text


@every_tokeniser
def test_pieces_spell_bytes_and_begin_ends_a_line(tokeniser: Tokeniser) -> None:
    lengths = [len(tokeniser.piece(i)) for i in range(tokeniser.size)]
    assert tokeniser.byte_lengths.tolist() == lengths
    assert [i for i, length in enumerate(lengths) if not length] == ([0] if tokeniser.unknown == 0 else [])
    assert tokeniser.piece(tokeniser.begin).endswith(b"\n")
    assert len({tokeniser.piece(i) for i in range(tokeniser.size)}) == tokeniser.size


@every_tokeniser
def test_a_lone_surrogate_is_refused(tokeniser: Tokeniser) -> None:
    with pytest.raises(InklingError, match=r"lone surrogate U\+D800 at character 2"):
        tokeniser.encode(["ab\ud800"])


@pytest.mark.parametrize("kind", ["word", "character", "bpe"])
def test_a_lone_surrogate_is_refused_in_training(kind: str) -> None:
    with pytest.raises(InklingError, match="lone surrogate"):
        train_tokeniser(kind, [["\udfff"]], 300)


def test_words_are_the_commonest_pieces_and_ties_go_by_spelling() -> None:
    tokeniser = train_tokeniser("word", [["b a b\n"], ["a c b\n", "a c b\n"]], 6)
    # " b" 3, "\n" 3, then "a" 2, " a" 1, " c" 2, "b" 1: by count, then by spelling
    assert isinstance(tokeniser, WordTokeniser)
    assert tokeniser.pieces == ("<unknown>", "\n", " b", " c", "a", " a")
    assert (tokeniser.size, tokeniser.unknown, tokeniser.begin) == (6, 0, 1)
    encodings = tokeniser.encode(["b a d\n"])
    assert encodings.ids.tolist() == [0, 5, 0, 1]
    assert encodings.spellings == ("b", " d")
    assert tokeniser.decode(encodings.ids) == "\ufffd a\ufffd\n"


def test_without_a_size_all_words_are_kept() -> None:
    assert train_tokeniser("word", [["x y\n"]]).size == 4
    assert train_tokeniser("word", [["x y"]]).size == 4
    assert train_tokeniser("word", []).size == 2


def test_a_line_end_takes_the_last_place_when_none_made_the_cut() -> None:
    words = train_tokeniser("word", [["a a a b b c\n"]], 3)
    assert isinstance(words, WordTokeniser)
    assert words.pieces == ("<unknown>", " a", "\n")
    characters = train_tokeniser("character", [["aaabbc"]], 3)
    assert isinstance(characters, CharacterTokeniser)
    assert characters.characters == ("<unknown>", "a", "\n")


def test_begin_is_the_commonest_line_end() -> None:
    tokeniser = train_tokeniser("word", [[" a \n b \n c\n"]], pieces="spaces")
    assert tokeniser.piece(tokeniser.begin) == b" \n"


def test_excluded_words_have_no_id_of_their_own() -> None:
    text = "<unk> the <unk> of <unknown>\n<unknown> x\n"
    tokeniser = train_tokeniser("word", [[text]], pieces="spaces", exclude=frozenset({"<unk>"}))
    assert isinstance(tokeniser, WordTokeniser)
    assert set(tokeniser.pieces) == {"<unknown>", " the", " of", " x", "\n"}
    encodings = tokeniser.encode([text])
    assert encodings.spellings == ("<unk>", " <unk>", " <unknown>", "<unknown>")
    assert tokeniser.decode(encodings.ids, encodings.spellings) == text


def test_rare_pieces_are_dropped_when_there_are_too_many() -> None:
    texts = ["common common "] + [f"rare{i} " for i in range(10)] + ["common "]
    counts = count_pieces([texts], str.split, at_most=4)
    assert counts["common"] == 3
    assert len(counts) <= 4


def test_characters_are_looked_up_one_by_one() -> None:
    tokeniser = train_tokeniser("character", [["abba\n"], ["b"]])
    assert isinstance(tokeniser, CharacterTokeniser)
    assert tokeniser.characters == ("<unknown>", "b", "a", "\n")
    encodings = tokeniser.encode(["ab", "", "🙂b"])
    assert encodings.ids.tolist() == [2, 1, 0, 1]
    assert encodings.offsets.tolist() == [0, 2, 2, 4]
    assert encodings.spellings == ("🙂",)


def test_bytes_are_their_own_ids() -> None:
    tokeniser = ByteTokeniser()
    assert tokeniser.encode(["é\n"]).ids.tolist() == [0xC3, 0xA9, 10]
    assert tokeniser.decode([0xC3]) == "\ufffd"
    assert (tokeniser.begin, tokeniser.size, tokeniser.unknown) == (10, 256, None)


def test_bpe_merges_the_commonest_pair_first() -> None:
    tokeniser = train_tokeniser("bpe", [["hug hug hug pug\n"]], 258)
    # "u"+"g" occurs 4 times, then " "+"h" 2, "h"+"ug" 3: after the first merge h·ug is the commonest
    assert tokeniser.size == 258
    assert [tokeniser.piece(256), tokeniser.piece(257)] == [b"ug", b"hug"]
    assert [tokeniser.piece(int(i)) for i in tokeniser.encode(["hug a bug\n"]).ids] == [
        *(b"hug", b" ", b"a", b" ", b"b"),
        *(b"ug", b"\n"),
    ]


def test_bpe_does_not_depend_on_how_the_text_comes_in_blocks() -> None:
    lines = TEXT.splitlines(keepends=True)
    blocks = [[line] for line in reversed(lines)]
    assert train_tokeniser("bpe", blocks, 300) == TOKENISERS["bpe"]
    assert isinstance(TOKENISERS["bpe"], BPETokeniser)


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        ("words", None, "did you mean word?"),
        ("bpe", None, "without a size"),
        ("bpe", 255, "at least 256"),
        ("word", 1, "at least 2"),
        ("character", 0, "at least 2"),
        ("byte", 100, "there are 256 bytes"),
    ],
)
def test_a_tokeniser_that_cannot_be_is_refused(kind: str, size: int | None, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        train_tokeniser(kind, [["a"]], size)


def with_change(text: str, **changes: object) -> str:
    return json.dumps(json.loads(text) | changes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        with_change(TOKENISERS["word"].to_json(), added_tokens=[{"id": 1, "content": "x"}]),
        with_change(TOKENISERS["word"].to_json(), normalizer={"type": "Lowercase"}),
        with_change(TOKENISERS["word"].to_json(), model={"type": "WordLevel", "vocab": {"<unknown>": 0, "a": 2}}),
        with_change(TOKENISERS["word"].to_json(), model={"type": "WordLevel", "vocab": {"<unknown>": 0, "a": 1}}),
        with_change(TOKENISERS["word"].to_json(), model={"type": "Unigram"}),
        with_change(
            TOKENISERS["character"].to_json(), model={"type": "WordLevel", "vocab": {"<unknown>": 0, "\n": 1, "ab": 2}}
        ),
        with_change(TOKENISERS["bpe"].to_json(), model={"type": "BPE", "vocab": {"a": 0}, "merges": []}),
    ],
)
def test_a_file_that_holds_no_tokeniser_of_ours_is_refused(text: str) -> None:
    with pytest.raises(InklingError, match="holds none of Inkling's tokenisers"):
        load_tokeniser(text)


@every_tokeniser
def test_transformers_opens_the_folder(tokeniser: Tokeniser, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    (tmp_path / "tokenizer.json").write_text(tokeniser.to_json(), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(tokenizer_config_json(tokeniser), encoding="utf-8")
    opened = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert isinstance(opened, PreTrainedTokenizerFast)
    assert opened.unk_token_id == tokeniser.unknown
    assert opened(TEXT)["input_ids"] == tokeniser.encode([TEXT]).ids.tolist()
    if tokeniser.unknown is None:
        assert opened.decode(tokeniser.encode([TEXT]).ids.tolist()) == TEXT


@pytest.mark.parametrize("setting", [None, "true"])
def test_a_forked_process_encodes_without_a_warning_and_does_not_hang(setting: str | None) -> None:
    program = """
import os
from inkling.text.tokenise import train_tokeniser
tokeniser = train_tokeniser("bpe", [["some text of some words\\n"]], 260)
texts = [f"word{i} other{i}\\n" for i in range(2000)]
ids = tokeniser.encode(texts).ids.tolist()
child = os.fork()
if child == 0:
    os._exit(0 if tokeniser.encode(texts).ids.tolist() == ids else 3)
assert os.waitpid(child, 0)[1] == 0
print(os.environ.get("TOKENIZERS_PARALLELISM"))
"""
    environment = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    if setting is not None:
        environment["TOKENIZERS_PARALLELISM"] = setting
    # With the setting "true" a forked process waits for ever for threads that it does not have, were it not told.
    done = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        output, complaints = done.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(done.pid, signal.SIGKILL)  # the child that hangs keeps the pipes open
        done.communicate()
        raise
    assert done.returncode == 0, complaints
    assert "forked" not in complaints
    assert output == f"{setting}\n"  # the parent's own setting is as it was


def test_the_kinds_are_those_that_can_be_trained() -> None:
    assert {tokeniser.kind for tokeniser in TOKENISERS.values()} == set(KINDS)
