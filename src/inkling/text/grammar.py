"""English of a known entropy: sentences from a small stochastic grammar, and what the best model must pay for them.

    Every patient baker near the mill often kneads some new loaves and tastes a pie in spring.

A sentence is a walk over states; an arc (chance, piece, next state) writes one piece. From one state no two arcs write
the same piece, so a text has exactly one derivation, and its probability is the product of the chances on the way:

    H = Σ_s visits(s) · Σ_arcs −p ln p          nats a sentence, with visits = start · (I − P)⁻¹

Five themes (kitchen, harbour, farm, school, workshop) own their nouns and verbs. The subject fixes theme and number,
which the verb and the object must follow across "near the mill" and "often": a dependence longer than one word
that no bigram can see. What a bigram must pay is known as well, from the expected number of each pair of pieces:

    H₂ = Σ_{u,v} E[count(u, v)] · −ln( E[count(u, v)] / E[count(u)] )     nats a sentence; the first u is a line end

Pieces are those of the lossless word tokeniser: a word with the space before it, ",", ".", and the line end; the first
word of a line has a capital and no space. Tokens are pieces; words are runs between white space. Text is ASCII.
The chances within a class of words fall as a power of the rank, so the rare tail is real.
Left out: recursion (the language is regular).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import log

import numpy as np

from inkling.errors import InklingError

PIECE = re.compile(r"\n|[.,]| ?[A-Za-z]+")
BLOCK = 8192  # random numbers drawn at once

# theme: its chance; its subjects, verbs and objects. Irregular forms (plural noun, singular verb) follow a slash.
# Nouns and adjectives begin with a consonant, because they may follow "a".
THEMES = {
    "kitchen": (
        0.30,
        "baker cook waiter guest butcher brewer taster confectioner",
        "bake taste carry/carries stir serve knead spice devour",
        "loaf/loaves soup pie pudding dumpling pancake stew waffle custard marzipan",
    ),
    "harbour": (
        0.25,
        "sailor captain fisherman/fishermen pilot diver smuggler boatman/boatmen mariner",
        "steer load paint anchor moor haul launch/launches caulk",
        "boat net sail rope barrel ferry/ferries lantern cutter trawler schooner",
    ),
    "farm": (
        0.20,
        "farmer shepherd milker gardener dairymaid ploughman/ploughmen drover beekeeper",
        "feed lead wash/washes count groom milk shear pasture",
        "cow horse goat lamb donkey hen mule heifer gosling bull",
    ),
    "school": (
        0.15,
        "teacher pupil student clerk poet tutor librarian scholar",
        "read write copy/copies learn recite translate study/studies memorise",
        "letter book poem story/stories lesson word fable sonnet proverb glossary/glossaries",
    ),
    "workshop": (
        0.10,
        "carpenter smith tailor weaver potter mason cobbler glazier",
        "mend make measure sell polish/polishes carve gild whittle",
        "table coat chair pot blanket kettle wheel cabinet goblet spindle",
    ),
}
ADJECTIVES = (
    "good young small big new red quiet happy clever brown tired heavy patient little proud strange bright lazy gentle "
    "famous wooden cheerful modest stubborn crooked pale splendid foolish solemn mysterious venerable dappled "
    "threadbare gaunt nimble mottled sprightly bashful peculiar forlorn"
)
PLACES = (
    "house river market mill gate bridge church garden tower road forest square well meadow chapel fountain orchard "
    "barn quarry lighthouse windmill cemetery causeway monastery"
)
PREPOSITIONS = "near behind beside under beyond"
SEASONS = "winter spring summer autumn secret"
HOURS = "dawn noon night dusk midnight"
ADVERBS = "often always never slowly gladly seldom rarely carefully secretly reluctantly"

DETERMINERS = {"the": 0.48, "a": 0.22, "every": 0.08, "this": 0.06, "some": 0.09, "many": 0.04, "these": 0.03}
NUMBERS = {"a": {"one": 1.0}, "every": {"one": 1.0}, "this": {"one": 1.0}, "the": {"one": 0.6, "many": 0.4}}
NUMBERS |= {"some": {"many": 1.0}, "many": {"many": 1.0}, "these": {"many": 1.0}}

# Chances of what may be there or not: "At dawn,", an adjective, "near the mill", "often", "in spring", "and …".
OPENER, ADJECTIVE, PLACE, ADVERB, SEASON, AND = 0.15, 0.30, 0.25, 0.20, 0.20, 0.15

Arc = tuple[float, str, str]  # chance, piece, next state
START, END = "start", "end"


@dataclass(frozen=True)
class Entropy:
    """What a sentence costs the best model on average, and how long it is on average."""

    nats_per_sentence: float
    tokens_per_sentence: float
    words_per_sentence: float
    bytes_per_sentence: float

    @property
    def nats_per_token(self) -> float:
        return self.nats_per_sentence / self.tokens_per_sentence

    @property
    def nats_per_word(self) -> float:
        return self.nats_per_sentence / self.words_per_sentence

    @property
    def bits_per_byte(self) -> float:
        return self.nats_per_sentence / log(2) / self.bytes_per_sentence


def grammar_text(generator: np.random.Generator, words: int) -> str:
    """Whole sentences, a line each, until there are at least `words` words."""
    table = {
        state: (np.cumsum([arc[0] for arc in arcs])[:-1].tolist(), [(arc[1], arc[2]) for arc in arcs])
        for state, arcs in grammar().items()
    }
    pieces: list[str] = []
    state, written = START, 0
    while True:
        for draw in generator.random(BLOCK).tolist():
            if state == START and written >= words:
                return "".join(pieces)
            bounds, choices = table[state]
            piece, state = choices[bisect_right(bounds, draw)]
            pieces.append(piece)
            written += piece[0] not in ".,\n"
            if state == END:
                state = START


def grammar_nats(text: str) -> float:
    """Exactly −ln of the probability of these sentences, found by parsing them."""
    table = _by_piece()
    nats = 0.0
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        state = START
        pieces = PIECE.findall(line)
        for piece in pieces:
            chance, state = table.get(state, {}).get(piece, (0.0, ""))
            if not chance:
                break
            nats -= log(chance)
        if state != END or "".join(pieces) != line:
            raise InklingError(f"Line {number} is not a sentence of the grammar; give text that grammar_text wrote.")
    return nats


@cache
def grammar_entropy() -> Entropy:
    """What nobody can beat."""
    visits, arcs = _visits(), grammar()
    flows = [(visits[state] * chance, chance, piece) for state in arcs for chance, piece, _ in arcs[state]]
    return Entropy(
        nats_per_sentence=-sum(flow * log(chance) for flow, chance, _ in flows),
        tokens_per_sentence=sum(flow for flow, _, _ in flows),
        words_per_sentence=sum(flow for flow, _, piece in flows if piece[0] not in ".,\n"),
        bytes_per_sentence=sum(flow * len(piece) for flow, _, piece in flows),
    )


@cache
def grammar_bigram_counts() -> Mapping[tuple[str, str], float]:
    """How often each pair of neighbouring pieces is expected in a sentence, the line end before it included."""
    visits, arcs = _visits(), grammar()
    counts: dict[tuple[str, str], float] = defaultdict(float)
    for chance, piece, _ in arcs[START]:
        counts["\n", piece] += chance
    for state in arcs:
        for chance, piece, target in arcs[state]:
            for next_chance, next_piece, _ in arcs.get(target, []):
                counts[piece, next_piece] += visits[state] * chance * next_chance
    return dict(counts)


@cache
def grammar_bigram_nats() -> float:
    """Nats per token of the best bigram model: the entropy of a piece when only the piece before it is known."""
    counts = grammar_bigram_counts()
    before: dict[str, float] = defaultdict(float)
    for (first, _), count in counts.items():
        before[first] += count
    nats = -sum(count * log(count / before[first]) for (first, _), count in counts.items())
    return nats / sum(counts.values())


@cache
def grammar() -> Mapping[str, list[Arc]]:
    """All arcs, by state. A state is named by what is settled (theme and number of the subject) and what comes next."""
    arcs: dict[str, list[Arc]] = defaultdict(list)

    def add(state: str, words: Mapping[str, float], target: str, chance: float = 1.0) -> None:
        arcs[state] += [
            (chance * share, word if word in ("\n", ".", ",") else f" {word}", target) for word, share in words.items()
        ]

    def add_noun_phrase(state: str, nouns: list[tuple[float, str, str]]) -> None:
        """Determiner, perhaps an adjective, then one of `nouns`: chance, word, next state ({} is its number)."""
        for determiner, share in DETERMINERS.items():
            add(state, {determiner: share}, f"{state} {determiner}")
            add(f"{state} {determiner}", _zipf(ADJECTIVES), f"{state} {determiner} adjective", ADJECTIVE)
            for number, number_share in NUMBERS[determiner].items():
                for noun_share, noun, target in nouns:
                    word = {_form(noun, bare=number == "one"): noun_share * number_share}
                    add(f"{state} {determiner}", word, target.format(number), 1 - ADJECTIVE)
                    add(f"{state} {determiner} adjective", word, target.format(number))

    subjects = [
        (share * theme_share, noun, f"{theme} {{}} place")
        for theme, (theme_share, names, _, _) in THEMES.items()
        for noun, share in _zipf(names).items()
    ]
    add("opener", _zipf(HOURS), "comma")
    add("comma", {",": 1.0}, "subject")
    add_noun_phrase("subject", subjects)
    for theme, (_, _, verbs, objects) in THEMES.items():
        for number in ("one", "many"):
            so_far = f"{theme} {number}"
            acts = {_form(verb, bare=number == "many"): share for verb, share in _zipf(verbs).items()}
            add(f"{so_far} place", _zipf(PREPOSITIONS), f"{so_far} the place", PLACE)
            add(f"{so_far} the place", {"the": 1.0}, f"{so_far} which place")
            add(f"{so_far} which place", _zipf(PLACES), f"{so_far} adverb")
            for state, share in ((f"{so_far} place", 1 - PLACE), (f"{so_far} adverb", 1.0)):
                add(state, _zipf(ADVERBS), f"{so_far} verb", share * ADVERB)
                add(state, acts, f"{so_far} object", share * (1 - ADVERB))
            add(f"{so_far} verb", acts, f"{so_far} object")
            add_noun_phrase(
                f"{so_far} object", [(share, noun, f"{so_far} done") for noun, share in _zipf(objects).items()]
            )
            add(f"{so_far} done", {"and": AND}, f"{so_far} verb")
            add(f"{so_far} done", {"in": SEASON}, "season")
            add(f"{so_far} done", {".": 1 - AND - SEASON}, "line end")
    add("season", _zipf(SEASONS), "full stop")
    add("full stop", {".": 1.0}, "line end")
    add("line end", {"\n": 1.0}, END)
    arcs[START] = [(OPENER, "At", "opener")] + [
        ((1 - OPENER) * chance, piece.strip().capitalize(), target) for chance, piece, target in arcs["subject"]
    ]
    return dict(arcs)


def _zipf(words: str) -> dict[str, float]:
    """Chances in proportion to rank^−3/2, the first word having rank 1."""
    names = words.split()
    weights = [(rank + 1) ** -1.5 for rank in range(len(names))]
    return {name: weight / sum(weights) for name, weight in zip(names, weights, strict=True)}


def _form(entry: str, bare: bool) -> str:
    """A singular noun or plural verb is bare; the other form has an s, or is written after a slash."""
    word, _, other = entry.partition("/")
    return word if bare else other or word + "s"


@cache
def _by_piece() -> Mapping[str, Mapping[str, tuple[float, str]]]:
    """Chance and next state, by state and piece."""
    return {state: {piece: (chance, target) for chance, piece, target in arcs} for state, arcs in grammar().items()}


@cache
def _visits() -> Mapping[str, float]:
    """How often each state is expected in a sentence: visits = start + visits · P."""
    arcs = grammar()
    place = {state: i for i, state in enumerate(arcs)}
    moves = np.zeros((len(arcs), len(arcs)))
    for state in arcs:
        for chance, _, target in arcs[state]:
            if target != END:
                moves[place[state], place[target]] += chance
    start = np.zeros(len(arcs))
    start[place[START]] = 1.0
    visits = np.linalg.solve(np.eye(len(arcs)) - moves.T, start)
    return dict(zip(arcs, visits.tolist(), strict=True))
