"""What the page of attention shows, without the page: answers to settings, wishes as text and as links, packed maps.

draft(setting)          at once: fewer samples, and exact figures only where they take no time
settled(setting, n)     all of it, as `inkling attention KIND --json` says it; in a child where it is_long
Wishes                  tokens and wishes in words, changed by drawing a link
pack(weights)           the maps of all heads as half-precision numbers, row by row up to the diagonal
"""

from __future__ import annotations

import base64
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from inkling.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from inkling.attention.laboratory import Experiment, Setting
    from inkling.attention.orders import Order
    from inkling.figures import Exhibit, Panels
    from inkling.models.gpt_model import Transformer

FEW = 20_000  # samples, while a slider moves
LEAST = 2_000
AT_ONCE = 2_000_000  # samples × keys that take no time
LONG_DRAWS = 50_000_000  # samples × keys that take seconds
MOST_KEYS = 1000  # here; also of dimensions
SHOWN_TOKEN = 24  # characters of a token beside a map


@dataclass(frozen=True)
class Answer:
    """An experiment, drawn: sections of the page by their titles."""

    title: str
    samples: int
    whole: bool  # nothing is left out, and `samples` are those that were asked for
    figures: tuple[Mapping[str, Any], ...]  # the main ones, as in JSON; NaN where not known
    sections: Mapping[str, str]

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Answer:
        """As a child sent it: JSON has no NaN."""
        figures = (
            {key: math.nan if value is None else value for key, value in each.items()} for each in found["figures"]
        )
        return cls(**{**found, "figures": tuple(figures)})


def draft(setting: Setting) -> Answer:
    """An answer within a moment."""
    from inkling.attention.laboratory import experiment

    samples = max(LEAST, min(FEW, AT_ONCE // max(1, setting.keys)))
    return _answer(experiment(setting, samples, solve=is_quick(setting)), whole=False)


def settled(setting: Setting, samples: int, on_integral: Callable[[], None] = lambda: None) -> Answer:
    from inkling.attention.laboratory import experiment

    return _answer(experiment(setting, samples, on_integral=on_integral), whole=True, on_integral=on_integral)


def is_long(setting: Setting, samples: int) -> bool:
    """Whether all of it takes more than a second or two, so that one wants to see how far it is, and to end it."""
    differ = bool(setting.alpha and setting.coherence)  # every key noisy, and no two of the same law
    many = setting.keys > (8 if differ else 60)
    return samples * setting.keys > LONG_DRAWS or (bool(setting.alpha or setting.coherence) and many)


def is_quick(setting: Setting) -> bool:
    """Whether the exact figures take a fraction of a second. Without α at most one key is noisy; keys of equal law
    are worked out once, and with coherence no two are equal."""
    if not setting.alpha:
        return not setting.coherence or setting.keys <= 30
    return not setting.coherence and setting.keys <= 100 and setting.kind != "heads"


def _answer(found: Experiment, whole: bool, on_integral: Callable[[], None] = lambda: None) -> Answer:
    from inkling.attention.exhibits import pictures, sentences
    from inkling.figures import Prose
    from inkling.pictures.markup import section

    solved = not math.isnan(found.failure_probability)
    exhibits: list[Exhibit] = list(pictures(found, patient=whole, on_integral=on_integral))
    if solved:
        exhibits = [Prose("\n\n".join(sentences(found)), "In words"), *exhibits, found.table()]
    sections = {each.title: section(each) for each in exhibits}
    names = ["head 1: failure probability", "head 1: mean weight on a", "output: variance of a's part"]
    if found.alone is not None:
        names.append("one head: variance of a's part")
    main = tuple(found.figure(name).to_json() for name in names)
    return Answer(found.title, found.simulated.samples, whole, main, sections)


def setting_of(given: Mapping[str, Any]) -> Setting:
    """What a person set, checked; `a` and `b` count from 1 as on the command line. `kind` may be 'same' for two heads
    with the same query."""
    from inkling.attention.laboratory import Setting

    same = given["kind"] == "same"
    numbers = {}
    for name, least, most in (
        *(("keys", 1, MOST_KEYS), ("dimension", 1, MOST_KEYS), ("a", 1, MOST_KEYS), ("b", 1, MOST_KEYS)),
        ("seed", 0, 2**32 - 1),
    ):
        value = given.get(name)
        if value is None:
            if name == "dimension":
                continue
            raise UsageError(f"The field '{name}' is empty; give a whole number from {least} to {most:,}.")
        if value != int(value) or not least <= value <= most:
            raise UsageError(f"The field '{name}' is {value:g}; give a whole number from {least} to {most:,}.")
        numbers[name] = int(value)
    for name in ("beta", "noise", "alpha", "coherence"):
        if given.get(name) is None:
            raise UsageError(f"The field '{name}' is empty; give a number.")
    return Setting(
        "heads" if same else given["kind"],
        keys=numbers["keys"],
        beta=float(given["beta"]),
        alpha=float(given["alpha"]),
        noise=float(given["noise"]),
        a=numbers["a"] - 1,
        b=numbers["b"] - 1,
        dimension=numbers.get("dimension"),
        coherence=float(given["coherence"]),
        scaled=bool(given["scaled"]),
        same=same,
        seed=numbers["seed"],
    )


def command_of(setting: Setting, samples: int) -> str:
    """The command that gives the same figures."""
    words = ["inkling attention", setting.kind, f"--keys {setting.keys}", f"--beta {setting.beta:.12g}"]
    words += [f"--noise {setting.noise:.12g}", f"--alpha {setting.alpha:.12g}"]
    words += [f"--dimension {setting.dimension}"] if setting.dimension is not None else []
    words += [f"--coherence {setting.coherence:.12g}"] if setting.coherence else []
    words += ["--scaled"] * setting.scaled + ["--same"] * setting.same
    words += [f"--a {setting.a + 1}"] if setting.a else []
    words += [f"--b {setting.b + 1}"] if setting.b != 1 and setting.kind != "copy" else []
    words += [f"--samples {samples}"] if samples != 200_000 else []
    words += [f"--seed {setting.seed}"] if setting.seed else []
    return " ".join(words)


@dataclass(frozen=True)
class Wishes:
    """Tokens, what some of them should output, and where some must look: in words, as on the command line."""

    tokens: str = "d+b, a, c+b"
    wishes: str = "1=b-c, 2=b"
    looks: str = ""
    beta: float = 3.0
    linear: bool = False

    def order(self) -> Order:
        from inkling.attention.orders import order

        return order(self.tokens, self.wishes, self.beta, self.looks or None, self.linear)

    @property
    def command(self) -> str:
        words = ["inkling attention design", shlex.quote(self.tokens), shlex.quote(self.wishes)]
        words += [f"--looks {shlex.quote(self.looks)}"] if self.looks else []
        words += [f"--beta {self.beta:.12g}"] if self.beta != 3.0 else []
        return " ".join(words + ["--linear"] * self.linear)

    def board(self) -> dict[str, Any]:
        """For the drawing board: tokens in words, directions, wishes as [token, direction, number], looks as pairs.

        What cannot be read yet (a wish half typed) is left out; what the tokens are must be readable.
        """
        from inkling.attention.wishes import parse_tokens, spell_sum

        names, inputs = parse_tokens(self.tokens)
        wishes = _read(self.wishes, names, len(inputs))
        return {
            "tokens": [spell_sum(row, names) for row in inputs],
            "directions": list(names),
            "wishes": [[i, c, wish[c]] for i, wish in wishes.items() for c in range(len(names)) if wish[c]],
            "looks": [[i, j] for i, seen in self._looks(len(inputs)).items() for j in seen],
        }

    def with_wish(self, token: int, direction: int) -> Wishes:
        """The next step of a link from a token to a direction: wanted, wanted with a minus, not wanted."""
        from inkling.attention.wishes import parse_tokens

        names, inputs = parse_tokens(self.tokens)
        wishes = _read(self.wishes, names, len(inputs))
        wish = wishes.setdefault(token, [0.0] * len(names))
        wish[direction] = -wish[direction] if wish[direction] > 0 else 0.0 if wish[direction] < 0 else 1.0
        kept = {i: one for i, one in sorted(wishes.items()) if any(one)}
        looks = {i: seen for i, seen in self._looks(len(inputs)).items() if i in kept}
        spelled = ", ".join(f"{i + 1}={spell(one, names)}" for i, one in kept.items())
        return replace(self, wishes=spelled, looks=_spell_looks(looks))

    def with_look(self, token: int, at: int) -> Wishes:
        """A link from a token to one that it must look at is drawn, or taken away."""
        from inkling.attention.wishes import parse_tokens

        names, inputs = parse_tokens(self.tokens)
        if token not in _read(self.wishes, names, len(inputs)):
            raise UsageError(
                f"Token {token + 1} should look at token {at + 1}, but has no wish; first say what it should output."
            )
        looks = self._looks(len(inputs))
        looks[token] = sorted(set(looks.get(token, [])) ^ {at})
        return replace(self, looks=_spell_looks(looks))

    def _looks(self, tokens: int) -> dict[int, list[int]]:
        from inkling.attention.orders import read_looks

        found = {}
        for part in filter(str.strip, self.looks.split(",")):
            try:
                found.update({i: list(seen) for i, seen in read_looks(part, tokens).items()})
            except UsageError:
                continue
        return found


@dataclass(frozen=True)
class Drawn:
    """A head that was ordered: whether wishes are met, in words, and the sections of the page."""

    met: bool
    sentence: str
    weights: list[list[float]]
    sections: dict[str, str]


def drawn(state: Wishes) -> Drawn:
    from inkling.pictures.markup import section

    found = state.order()
    exhibits = found.page().exhibits[1:]  # the summary is the sentence
    sections = {each.title: section(each) for each in exhibits}
    return Drawn(found.design.met, found.design.summary(), found.design.weights.tolist(), sections)


def _read(text: str, names: Sequence[str], tokens: int) -> dict[int, list[float]]:
    """Those wishes that can be read."""
    from inkling.attention.wishes import parse_wishes

    found = {}
    for part in filter(str.strip, text.split(",")):
        try:
            found.update({i: wish.tolist() for i, wish in parse_wishes(part, names, tokens).items()})
        except UsageError:
            continue
    return found


def spell(wish: Sequence[float], names: Sequence[str]) -> str:
    """As one types it, with all digits: "b-c", "0.5b"."""
    import numpy as np

    text = ""
    for number, name in zip(wish, names, strict=True):
        if number:
            size = "" if abs(number) == 1 else np.format_float_positional(abs(number), trim="-")
            text += ("-" if number < 0 else "+" if text else "") + size + name
    return text or "0"


def _spell_looks(looks: Mapping[int, Sequence[int]]) -> str:
    return ", ".join(f"{i + 1}={'+'.join(str(j + 1) for j in seen)}" for i, seen in sorted(looks.items()) if seen)


@dataclass(frozen=True)
class Maps:
    """The weights of all heads on one window of a text, to be sent to a page."""

    tokens: tuple[str, ...]
    layers: int
    heads: int
    packed: str  # base64 of little-endian half precision: layer by layer, head by head, row t has t + 1 numbers


def pack(weights: NDArray[np.float32]) -> str:
    """Heads × T × T."""
    import numpy as np

    rows, columns = np.tril_indices(weights.shape[-1])
    return base64.b64encode(weights[:, rows, columns].astype("<f2").tobytes()).decode("ascii")


def tokenise(model: Transformer, text: str) -> list[int]:
    """As the model reads it: behind its normalisation, cut by its tokeniser."""
    found: list[int] = model.tokeniser.encode([model.chain(text)]).ids.tolist()
    return found


def look_at(model: Transformer, ids: Sequence[int]) -> Maps:
    """The maps of one window, read on its own as `inkling attention inspect` reads it."""
    import numpy as np
    import torch

    if not ids:
        raise UsageError("The text has no tokens; type or paste a few words.")
    look = model.look(torch.tensor([list(ids)]))
    weights = np.concatenate([layer[0].float().numpy() for layer in look.weights])
    names = tuple(shown(model.tokeniser.decode([token])) for token in ids)
    return Maps(names, model.layers, model.heads, pack(weights))


def maps_of_panels(panels: Panels) -> Maps:
    """The maps of a census, which are drawn already, for the same canvas."""
    import numpy as np

    weights = np.array([[[w or 0.0 for w in row] for row in one.values] for one in panels.maps], np.float32)
    names = tuple(shown(name) for name in panels.maps[0].rows)
    return Maps(names, len(panels.maps) // panels.across, panels.across, pack(weights))


def shown(token: str) -> str:
    from inkling.pictures.harmless import safe

    return safe(token)[:SHOWN_TOKEN]
