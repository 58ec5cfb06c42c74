"""Normalisation: named steps that compose, and that know what they lose.

    Chain.parse("nfc,lower")("Ça VA")  →  "ça va"

Every step works line by line: step(a + "\\n" + b) == step(a) + "\\n" + step(b), so a file may be normalised in blocks
that are cut at its line ends, and the number of lines never changes. Only "\\n" is a line end here.

A step is `lossy` if two texts that differ to a reader can become one. `nfc` is the only one that is not: Unicode calls
its input and its output canonically equivalent, though the bytes may differ.

What the less obvious steps decide:

    modern        a dictionary of whole words with their case kept (Thou → You, THOU → YOU). `art`, `wilt` and `wast`
                  change only beside `thou`, since alone they may be the modern words. No grammar: "thine eyes" becomes
                  "yours eyes", and a verb such as "speakest" stays.
    punctuation   quotation marks become ' and ", hyphens and short dashes -, a long dash --, the ellipsis three full
                  stops; then a run of the same mark of ,;:!?'" becomes one, two or more - become --, and two or more
                  full stops become three, so that a dash is not a hyphen and an ellipsis does not end a sentence.
    letters       combining marks count as letters, without them Hindi or Thai could not be spelled.
    spaces        every white space but "\\n" counts, also "\\r", the no-break space and U+2028.

References: Unicode Standard Annex 15 (normalisation forms); the anyascii package (transliteration).
Left out: stemming, stop words, spelling correction; they answer questions about meaning, not about spelling.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from inkling.errors import UsageError

_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_DIGIT = re.compile(r"\d")
_SPECIAL = re.compile(r"[^\w\s.,;:!?'\"\-]+|_+")
_WHITE = re.compile(r"[^\S\n]+")
_REPEATED = re.compile(r"([,;:!?'\"])\1+")
_DASHES = re.compile(r"-{2,}")
_STOPS = re.compile(r"\.{2,}")

_PLAIN_MARKS = str.maketrans(
    dict.fromkeys("‘’‚‛‹›", "'")
    | dict.fromkeys("“”„‟«»", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-")  # hyphen, no-break hyphen, figure dash, en dash, minus
    | dict.fromkeys("\u2014\u2015", "--")  # em dash, horizontal bar
    | {"…": "..."}
)

# Keys are written with the plain apostrophe; the pattern takes ’ as well.
_MODERN = {
    "thou": "you",
    "thee": "you",
    "ye": "you",
    "thy": "your",
    "thine": "yours",
    "thyself": "yourself",
    "thou'rt": "you are",
    "thou'lt": "you will",
    "hath": "has",
    "hast": "have",
    "hadst": "had",
    "doth": "does",
    "dost": "do",
    "didst": "did",
    "shalt": "shall",
    "shouldst": "should",
    "wouldst": "would",
    "canst": "can",
    "couldst": "could",
    "mayst": "may",
    "wert": "were",
    "saith": "says",
    "o'er": "over",
    "ne'er": "never",
    "e'er": "ever",
    "e'en": "even",
    "ta'en": "taken",
    "whate'er": "whatever",
    "howe'er": "however",
    "where'er": "wherever",
    "whene'er": "whenever",
    "'tis": "it is",
    "'twas": "it was",
    "'twere": "it were",
    "'twill": "it will",
    "'twould": "it would",
    "betwixt": "between",
    "oft": "often",
    "nay": "no",
    "yea": "yes",
    "hither": "here",
    "thither": "there",
    "whither": "where",
    "wherefore": "why",
}
_BESIDE_THOU = {"art": "are", "wilt": "will", "wast": "were"}


def _archaic_pattern() -> re.Pattern[str]:
    """Whole words only: no letter, mark or apostrophe joins them to a neighbour."""
    beside = "|".join(_BESIDE_THOU)
    pairs = [rf"thou[^\S\n]+(?:{beside})", rf"(?:{beside})[^\S\n]+thou"]
    words = [word.replace("'", "['’]") for word in sorted(_MODERN, key=len, reverse=True)]
    firsts = "".join(sorted({word[0] for word in (*_MODERN, *_BESIDE_THOU)})) + "’"
    body = f"(?=[{firsts}])(?:{'|'.join(pairs + words)})"  # looking at the first letter first makes it twice as fast
    return re.compile(rf"(?<!\w)(?<!\w['’]){body}(?![\w\u0300-\u036f])(?!['’]\w)", re.IGNORECASE)


_ARCHAIC = _archaic_pattern()
_WORD_OR_GAP = re.compile(r"[^\S\n]+|\S+")


def _with_case_of(old: str, new: str) -> str:
    """`new` written as `old` was: all capitals, a first capital, or as it is in the dictionary."""
    letters = old.strip("'’")
    if letters.isupper():
        return new.upper()
    return new[0].upper() + new[1:] if letters[:1].isupper() else new


def _modernise(found: re.Match[str]) -> str:
    parts: list[str] = _WORD_OR_GAP.findall(found[0])
    beside = len(parts) > 1
    for i, old in enumerate(parts):
        plain = old.replace("’", "'").casefold()  # casefold: the long s of old prints is an s
        new = _MODERN.get(plain) or (_BESIDE_THOU.get(plain) if beside else None)
        if new is not None:
            parts[i] = _with_case_of(old, new)
    return "".join(parts)


def _to_modern(text: str) -> str:
    return _ARCHAIC.sub(_modernise, text)


def _to_ascii(text: str) -> str:
    from anyascii import anyascii

    return _NON_ASCII.sub(lambda run: str(anyascii(run[0])), text)


def _to_plain_marks(text: str) -> str:
    text = _REPEATED.sub(r"\1", text.translate(_PLAIN_MARKS) if not text.isascii() else text)
    return _STOPS.sub("...", _DASHES.sub("--", text))


def _keep_letters(text: str) -> str:
    return _SPECIAL.sub(lambda run: "".join(c for c in run[0] if unicodedata.category(c)[0] == "M"), text)


def _collapse_spaces(text: str) -> str:
    # Runs first: afterwards a line ends in one space at most, and finding it cannot take quadratic time.
    return _WHITE.sub(" ", text).replace(" \n", "\n").removesuffix(" ")


def _to_digit_shape(text: str) -> str:
    return _DIGIT.sub("DG", text)


@dataclass(frozen=True)
class Step:
    name: str
    describe: str
    lossy: bool
    apply: Callable[[str], str]


STEPS = {
    step.name: step
    for step in (
        Step("lower", "capital letters become small", True, str.lower),
        Step(
            "nfc", "letters and their accents are composed (Unicode NFC)", False, partial(unicodedata.normalize, "NFC")
        ),
        Step("nfkc", "look-alike characters become one (Unicode NFKC)", True, partial(unicodedata.normalize, "NFKC")),
        Step("ascii", "every script is transliterated to ASCII", True, _to_ascii),
        Step("modern", "archaic English words become modern: thou → you, 'tis → it is", True, _to_modern),
        Step("punctuation", "quotes, dashes and dots become plain, repeated marks one", True, _to_plain_marks),
        Step("letters", "all but letters, digits, white space and . , ; : ! ? ' \" - is removed", True, _keep_letters),
        Step("spaces", "white space becomes one space, none before a line end", True, _collapse_spaces),
        Step("digits", "every digit becomes DG: 1,234.5 → DG,DGDGDG.DG", True, _to_digit_shape),
    )
}


@dataclass(frozen=True)
class Losses:
    """What a chain did to a text. Additive: the losses of two blocks of lines sum to those of both.

    Each line is compared with itself after the chain as a bag of characters. Of the characters that are gone, as many
    as came in their place count as changed, the rest as removed. This takes linear time, and since it does not see
    characters that only moved, it is a lower bound of the edits; no step moves characters, so it is seldom far off.
    """

    chain: str
    lossy: bool
    characters: int
    bytes: int
    normalised_characters: int
    normalised_bytes: int
    changed_characters: int
    removed_characters: int

    def __add__(self, other: Losses) -> Losses:
        if self.chain != other.chain:
            raise ValueError(f"cannot add the losses of {self.chain} and {other.chain}")
        return Losses(
            self.chain,
            self.lossy,
            self.characters + other.characters,
            self.bytes + other.bytes,
            self.normalised_characters + other.normalised_characters,
            self.normalised_bytes + other.normalised_bytes,
            self.changed_characters + other.changed_characters,
            self.removed_characters + other.removed_characters,
        )

    def describe(self) -> str:
        if self.chain == "none":
            return f"The text is used as it is: {self.characters:,} characters, {self.bytes:,} bytes."
        gone = self.changed_characters + self.removed_characters
        if not gone and self.characters == self.normalised_characters:
            return f"Normalisation ({self.chain}) changed nothing in {self.characters:,} characters."
        verdict = "the original cannot be restored" if self.lossy else "to a reader the text is the same"
        return (
            f"Normalisation ({self.chain}) changed {self.changed_characters:,} and removed {self.removed_characters:,} "
            f"of {self.characters:,} characters ({gone / max(self.characters, 1):.1%}), {self.bytes:,} bytes became "
            f"{self.normalised_bytes:,}, and {verdict}."
        )


@dataclass(frozen=True)
class Chain:
    """Steps in the order they are applied. The empty chain changes nothing."""

    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in STEPS:
                nearest = difflib.get_close_matches(name.lower(), STEPS, n=1, cutoff=0.0)[0]
                raise UsageError(
                    f"unknown normalisation step {name!r}: expected any of {', '.join(STEPS)}, or none alone; "
                    f"did you mean {nearest}?"
                )

    @classmethod
    def parse(cls, names: str) -> Chain:
        """From "lower,nfc"; "" and "none" are the empty chain."""
        if names.strip() in ("", "none"):
            return cls()
        return cls(tuple(name.strip() for name in names.split(",")))

    def __str__(self) -> str:
        return ",".join(self.names) or "none"

    def __call__(self, text: str) -> str:
        for name in self.names:
            text = STEPS[name].apply(text)
        return text

    @property
    def lossy(self) -> bool:
        return any(STEPS[name].lossy for name in self.names)

    def losses(self, text: str) -> Losses:
        """What this chain does to `text`; see `Losses` for how it is counted."""
        after = self(text)
        changed = removed = 0
        if after != text:
            for old, new in zip(text.split("\n"), after.split("\n"), strict=True):
                if old != new:
                    kept = (Counter(old) & Counter(new)).total()
                    gone, came = len(old) - kept, len(new) - kept
                    changed += min(gone, came)
                    removed += max(gone - came, 0)
        return Losses(
            chain=str(self),
            lossy=self.lossy,
            characters=len(text),
            bytes=len(text.encode("utf-8", "surrogatepass")),
            normalised_characters=len(after),
            normalised_bytes=len(after.encode("utf-8", "surrogatepass")),
            changed_characters=changed,
            removed_characters=removed,
        )
