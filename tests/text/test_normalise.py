from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inkling.errors import UsageError
from inkling.text.normalise import STEPS, Chain, Losses

TRICKY = st.text() | st.text("aAΣσİ ß'’-—…._12²½\t\r\n\u0301\u0308ﬁ\u2028\x85thouarteTHOU", max_size=40)
names = st.sampled_from(sorted(STEPS))
chains = st.lists(names, max_size=4).map(lambda chosen: Chain(tuple(chosen)))


def step(name: str, text: str) -> str:
    return Chain((name,))(text)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("lower", "Ça VA, ΟΔΟΣ", "ça va, οδος"),
        ("nfc", "e\u0301 ﬁ", "é ﬁ"),
        ("nfkc", "e\u0301 ﬁ ２", "é fi 2"),
        ("ascii", "café “naïve” — Straße\nМосква", 'cafe "naive" - Strasse\nMoskva'),
        ("punctuation", "“So…” he said—‘no’ – 5−3!!!", "\"So...\" he said--'no' - 5-3!"),
        ("punctuation", "well-known --- wait..... what?!?! ,, ''", "well-known -- wait... what?!?! , '"),
        ("letters", "a_b @home: 50% “x” (it's) re-do #1;", "ab home: 50 x it's re-do 1;"),
        ("letters", "हिन्दी ภาษาไทย ❤️", "हिन्दी ภาษาไทย \ufe0f"),
        ("spaces", "  a\t\tb \r\n\n c\u00a0\u2003d  ", " a b\n\n c d"),
        ("digits", "1,234.5 in ٣", "DG,DGDGDG.DG in DG"),
    ],
)
def test_each_step_does_what_it_says(name: str, text: str, expected: str) -> None:
    assert step(name, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thou, THOU and thee; thy, thine", "You, YOU and you; your, yours"),
        ("'Tis o'er; ’twas ne’er e'en HATH doth", "It is over; it was never even HAS does"),
        ("Thou art. THOU ART! Art thou?", "You are. YOU ARE! Are you?"),
        ("the art of art, flowers wilt", "the art of art, flowers wilt"),
        ("thou\nart", "you\nart"),  # a pair is one line's affair
        ("'thou' ‘thy’ (thee)", "'you' ‘your’ (you)"),
        ("thousand thyme other's thee's d'thou bathe", "thousand thyme other's thee's d'thou bathe"),
        ("thou'rt haſt", "you are have"),
    ],
)
def test_archaic_words_become_modern_whole_and_with_their_case(text: str, expected: str) -> None:
    assert step("modern", text) == expected


@settings(deadline=None, max_examples=300)
@given(chains, st.lists(TRICKY, min_size=1, max_size=4))
@example(Chain(("nfc",)), ["e", "\u0301"])
@example(Chain(("lower",)), ["ΑΣ", "Α"])
@example(Chain(("spaces",)), ["a ", " b "])
@example(Chain(("modern",)), ["thou ", "art"])
@example(Chain(("punctuation",)), ["!", "!"])
def test_a_text_cut_at_its_line_ends_normalises_as_the_whole(chain: Chain, lines: list[str]) -> None:
    whole = chain("\n".join(lines))
    assert whole == "\n".join(chain(line) for line in lines)
    assert whole.count("\n") == "\n".join(lines).count("\n")


@settings(deadline=None, max_examples=300)
@given(names, TRICKY)
def test_a_step_applied_twice_changes_nothing_more(name: str, text: str) -> None:
    once = step(name, text)
    assert step(name, once) == once


@settings(deadline=None)
@given(TRICKY)
def test_the_only_step_without_loss_keeps_canonical_equivalence(text: str) -> None:
    assert [name for name in STEPS if not STEPS[name].lossy] == ["nfc"]
    assert unicodedata.normalize("NFD", step("nfc", text)) == unicodedata.normalize("NFD", text)


def test_a_chain_is_parsed_and_shown() -> None:
    assert Chain.parse("lower, nfc") == Chain(("lower", "nfc"))
    assert str(Chain.parse("lower,nfc")) == "lower,nfc"
    assert Chain.parse("") == Chain.parse("none") == Chain()
    assert str(Chain()) == "none"
    assert [Chain.parse(text).lossy for text in ("none", "nfc", "nfc,lower")] == [False, False, True]


def test_steps_are_applied_in_order() -> None:
    assert Chain.parse("letters,punctuation")("“a”") == "a"
    assert Chain.parse("punctuation,letters")("“a”") == '"a"'


@pytest.mark.parametrize(("given_name", "nearest"), [("lowr", "lower"), ("NFC", "nfc"), ("nfc,space", "spaces")])
def test_an_unknown_step_is_refused_with_the_nearest_name(given_name: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=rf"unknown normalisation step .*; did you mean {nearest}\?$"):
        Chain.parse(given_name)


def test_none_stands_alone() -> None:
    with pytest.raises(UsageError, match=r"'none'.* or none alone"):
        Chain.parse("none,lower")


def test_losses_count_what_changed_and_what_is_gone() -> None:
    # "Ab  é\n" : A → a, a space goes, é is kept; "THOU" : four capitals change, then t and h become y.
    losses = Chain.parse("lower,spaces,modern").losses("Ab  é\nTHOU")
    assert losses == Losses(
        chain="lower,spaces,modern",
        lossy=True,
        characters=10,
        bytes=11,
        normalised_characters=8,
        normalised_bytes=9,
        changed_characters=4,  # A → a, THOU → you: three letters came
        removed_characters=2,  # one space, one letter
    )
    assert losses.describe() == (
        "Normalisation (lower,spaces,modern) changed 4 and removed 2 of 10 characters (60.0%), "
        "11 bytes became 9, and the original cannot be restored."
    )


def test_losses_of_nothing() -> None:
    assert Chain().losses("Ab").describe() == "The text is used as it is: 2 characters, 2 bytes."
    assert Chain(("lower",)).losses("ab").describe() == "Normalisation (lower) changed nothing in 2 characters."
    assert Chain(("nfc",)).losses("e\u0301").describe().endswith("to a reader the text is the same.")


@settings(deadline=None)
@given(chains, TRICKY)
def test_losses_agree_with_the_texts(chain: Chain, text: str) -> None:
    losses = chain.losses(text)
    after = chain(text)
    assert (losses.characters, losses.bytes) == (len(text), len(text.encode()))
    assert (losses.normalised_characters, losses.normalised_bytes) == (len(after), len(after.encode()))
    assert losses.characters - losses.removed_characters <= losses.normalised_characters
    if after == text:
        assert losses.changed_characters == losses.removed_characters == 0
    assert 0 <= losses.changed_characters + losses.removed_characters <= len(text)


@settings(deadline=None)
@given(chains, TRICKY.map(lambda text: text + "\n"), TRICKY)
def test_losses_of_two_blocks_add_up(chain: Chain, first: str, second: str) -> None:
    assert chain.losses(first) + chain.losses(second) == chain.losses(first + second)


def test_losses_of_different_chains_do_not_add() -> None:
    with pytest.raises(ValueError, match="cannot add"):
        Chain(("nfc",)).losses("a") + Chain().losses("a")
