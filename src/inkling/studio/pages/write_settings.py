"""The settings of sampling as numbers with sliders, and what they say together."""

from __future__ import annotations

from nicegui import ui

from inkling.errors import UsageError
from inkling.studio.frame import heading
from inkling.studio.views_write import MOST_SEED, MOST_TOKENS, SHORT, Settings


class Dial:
    """A number with a slider below it, which say the same; the number also takes what the slider does not reach."""

    def __init__(self, name: str, about: str, value: float, low: float, high: float, step: float) -> None:
        digits = 0 if step >= 1 else 2
        self._name = name
        with ui.element("div").classes("write-dial"):
            with ui.element("div").classes("line"):
                with ui.element("div").classes("grow"):
                    ui.label(name)
                    ui.label(about).classes("quiet")
                self._number = ui.number(value=value, step=step, precision=digits).props("outlined dense")
                self._number.classes("write-number").props["aria-label"] = name
            slider = ui.slider(min=low, max=high, step=step, value=value)
            slider.props["aria-label"] = f"{name}, as a slider"
            # Not bound to each other: what is typed beyond the slider's end would come back cut.
            slider.on(
                "update:model-value",
                lambda event: self._number.set_value(round(float(event.args), digits)),
                throttle=0.05,
            )
            self._number.on_value_change(
                lambda event: None if event.value is None else slider.set_value(min(max(event.value, low), high))
            )

    @property
    def value(self) -> float:
        if self._number.value is None:
            raise UsageError(f"{self._name} is empty; give a number.")
        return float(self._number.value)

    @value.setter
    def value(self, value: float) -> None:
        self._number.value = value


class Dials:
    def __init__(self) -> None:
        heading("Settings").classes("write-first")
        self._temperature = Dial("Temperature", "below 1 safer, above 1 wilder, 0 the likeliest", 1.0, 0.0, 2.0, 0.05)
        self._top_k = Dial("Top-k", "among the k likeliest; 0 is all", 0, 0, 100, 1)
        self._top_p = Dial("Top-p", "among the fewest that hold this share", 1.0, 0.05, 1.0, 0.01)
        self._min_p = Dial("Min-p", "at least this share of the likeliest", 0.0, 0.0, 0.5, 0.01)
        self._penalty = Dial("Repetition penalty", "for the last 64 tokens; 1 is none", 1.0, 1.0, 2.0, 0.05)
        self._tokens = Dial("Tokens", f"to write, at most {MOST_TOKENS:,}", SHORT, 10, 1000, 10)
        self._suggested = SHORT
        with ui.element("div").classes("line top write-last"):
            self._seed = ui.number("Seed", value=0, min=0, max=MOST_SEED, precision=0).props("outlined dense")
            self._seed.classes("write-number")
            self._stop = ui.textarea("Stop before").props("outlined dense autogrow").classes("grow")
        ui.label("A stop string a line; \\n stands for a line end. The same seed writes the same.").classes("quiet")

    def suggest_tokens(self, tokens: int) -> None:
        """A number that suits the model, unless another was asked for."""
        if self._tokens.value == self._suggested:
            self._tokens.value = tokens
        self._suggested = tokens

    def settings(self) -> Settings:
        return Settings(
            temperature=self._temperature.value,
            top_k=int(self._top_k.value),
            top_p=self._top_p.value,
            min_p=self._min_p.value,
            repetition_penalty=self._penalty.value,
            tokens=int(self._tokens.value),
            seed=int(self._seed.value or 0),
            stop=str(self._stop.value or ""),
        )
