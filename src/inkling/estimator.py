"""The classifier as an estimator: lists of texts and labels in, the manners of scikit-learn.

    DAN().fit(texts, labels).predict(texts)        Pipeline, cross_val_score, GridSearchCV

The same network, by the same fit, as `inkling train dan` makes: the parameters are the options of the command, and the
same texts and `random_state` give the same model as `--seed`. With scikit-learn installed the class is one of its
classifiers (tags, clone, drawing in a notebook); without it, it works alone.

A share of the texts (`held_out`) chooses the settings and makes the probabilities honest; equal texts are never both
learned from and held out. Mistakes in what is given are ValueErrors of one sentence.

Left out: sample weights, weights of single classes (naive Bayes counts texts, so a weight of 2 would not be the text
twice), several labels for one text, `partial_fit`.
"""

from __future__ import annotations

import inspect
import math
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from inkling.configuration import from_record
from inkling.errors import InklingError
from inkling.models.dan import AveragingNetwork
from inkling.recipes.averaging import Choice, Fitted, choose_bits, fit_network, fit_scores, prepare_network
from inkling.recipes.dan import DANRecipe
from inkling.recipes.data import resolve
from inkling.recipes.labelled import split
from inkling.recipes.labelled_text import LabelledText, Origin
from inkling.recipes.repeats import group_texts
from inkling.text.vectors import load_vectors

if TYPE_CHECKING:
    from inkling.explain.words import Explanation

Labels = NDArray[Any]
Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_OPTION = re.compile(r"(?:--|^DAN: )([a-z][a-z_-]*)")
SHOWN_CHARS = 40


class InputError(InklingError, ValueError):
    """What was given to an estimator cannot be used: an InklingError to us, a ValueError to scikit-learn."""


class _Alone:
    """What scikit-learn would give the estimator if it were installed."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise InputError(f"Invalid parameter '{name}' for {type(self).__name__}; give one of {list(known)}.")
            setattr(self, name, value)
        return self

    def score(self, X: Iterable[str], y: Iterable[object], sample_weight: Iterable[float] | None = None) -> float:
        """The share of texts whose label is predicted."""
        right = self.predict(X) == np.asarray(y)  # type: ignore[attr-defined]
        return float(np.average(right, weights=None if sample_weight is None else np.asarray(sample_weight)))

    def __repr__(self) -> str:
        usual = inspect.signature(type(self)).parameters
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value != usual[name].default]
        return f"{type(self).__name__}({', '.join(changed)})"


if TYPE_CHECKING:
    _Base = _Alone

    class NotFittedError(ValueError, AttributeError):
        """The estimator was asked before it was fitted."""

    class DataConversionWarning(UserWarning):
        """The data were read in another form than they were given in."""

else:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin
        from sklearn.exceptions import DataConversionWarning, NotFittedError
    except ImportError:
        _Base = _Alone

        class NotFittedError(ValueError, AttributeError):
            """The estimator was asked before it was fitted."""

        DataConversionWarning = UserWarning
    else:

        class _Base(ClassifierMixin, BaseEstimator):
            def __sklearn_tags__(self):
                tags = super().__sklearn_tags__()
                tags.input_tags.string = True
                tags.input_tags.one_d_array = True
                tags.input_tags.two_d_array = False
                return tags


class DAN(_Base):
    """A deep averaging network for texts.

    >>> from inkling.estimator import DAN
    >>> warm = [f"a {word} film with a {other} end" for word in ("moving", "clever") for other in ("warm", "funny")]
    >>> cold = [f"a {word} film with a {other} end" for word in ("dull", "clumsy") for other in ("stale", "silly")]
    >>> model = DAN().fit(warm + cold, ["good"] * 4 + ["bad"] * 4)
    >>> model.predict(["clever and funny", "so dull, so silly"]).tolist()
    ['good', 'bad']
    >>> model.classes_.tolist(), model.predict_proba(["clever"]).shape
    (['bad', 'good'], (1, 2))

    The text as features:
        words           longest run of words; None: 3, or 1 with vectors from a file
        characters      "3-5": runs of 3 to 5 characters inside words too, for noisy text
        min_count       texts that a feature must occur in; 0: by the size of the data
    The network:
        dimension       of the vectors; 0: a score for each class; None: 0, or 100 with hidden layers
        depth, width    hidden layers and the units of each
        activation      one name, or one a layer: "relu,tanh"
        vectors         a file of word vectors to start from, or "data:glove-50d"
        learn_vectors   False: they stay as they are in the file
    How it is fitted:
        held_out        share of each class that chooses settings and makes probabilities honest; 0: none
        refit           learn from the held-out texts too, once they have chosen (scores only)
        strength, trust how far scores are pulled, and how much to naive Bayes; None: chosen on held-out texts
        class_weight    None, or "balanced": all classes weigh the same
        word_dropout, weight_decay, epochs, batch, rate, patience: of networks (dimension above 0)
        random_state    a number: the same model each time; None: another one each time

    After `fit`: `classes_`, sorted; `network_`, the AveragingNetwork; `held_out_rows_`, the places of the texts that
    were held out; `choices_`, the pairs of strength and trust that were tried.
    """

    classes_: Labels
    network_: AveragingNetwork
    held_out_rows_: Rows
    choices_: tuple[Choice, ...]

    def __init__(
        self,
        *,
        words: int | None = None,
        characters: str = "",
        min_count: int = 0,
        dimension: int | None = None,
        depth: int = 0,
        width: int = 100,
        activation: str = "relu",
        vectors: str | os.PathLike[str] | None = None,
        learn_vectors: bool = True,
        held_out: float = 0.1,
        refit: bool = True,
        strength: float | None = None,
        trust: float | None = None,
        class_weight: str | None = None,
        word_dropout: float = 0.0,
        weight_decay: float = 0.0,
        epochs: int = 20,
        batch: int = 250,
        rate: float = 0.002,
        patience: int = 0,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
    ) -> None:
        self.words = words
        self.characters = characters
        self.min_count = min_count
        self.dimension = dimension
        self.depth = depth
        self.width = width
        self.activation = activation
        self.vectors = vectors
        self.learn_vectors = learn_vectors
        self.held_out = held_out
        self.refit = refit
        self.strength = strength
        self.trust = trust
        self.class_weight = class_weight
        self.word_dropout = word_dropout
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.patience = patience
        self.random_state = random_state

    def fit(self, X: Iterable[str], y: Iterable[object]) -> Self:
        """Learns from texts (any sequence of str) and a label for each (str, int or bool)."""
        texts = read_texts(X)
        if not texts:
            raise InputError("There are 0 sample(s): no text was given, so there is nothing to learn from.")
        labels = read_labels(y)
        if len(labels) != len(texts):
            raise InputError(
                f"There are {len(texts):,} texts and {len(labels):,} labels; give one label for each text."
            )
        classes, truth = _find_classes(labels)
        recipe = self._recipe()
        try:
            held_rows = self._hold_out(texts, truth, len(classes), recipe)
            fitted = _fit(recipe, texts, truth, [str(label) for label in classes.tolist()], held_rows)
        except InklingError as error:
            raise _translated(error) from error
        self.classes_ = classes
        self.network_ = fitted.network
        self.held_out_rows_ = held_rows
        self.choices_ = fitted.choices
        return self

    def predict(self, X: Iterable[str]) -> Labels:
        """The likeliest label of each text."""
        places = self.predict_log_proba(X).argmax(axis=1)
        found: Labels = self.classes_[places]
        return found

    def predict_proba(self, X: Iterable[str]) -> Floats:
        """Texts × classes, in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Iterable[str]) -> Floats:
        """The natural logarithms of the probabilities."""
        return self._fitted().log_probs(read_texts(X)).numpy()

    def explain(self, X: Iterable[str]) -> list[Explanation]:
        """For each text, what leaving out each of its words and sentences does to the verdict."""
        from inkling.explain.words import explain

        return explain(self._fitted(), read_texts(X))

    def _fitted(self) -> AveragingNetwork:
        if not hasattr(self, "network_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet; call fit with texts and labels first.")
        return self.network_

    def _recipe(self) -> DANRecipe:
        """The parameters as the command's options, by whose rules they are judged."""
        if self.class_weight not in (None, "balanced"):
            raise InputError(f"class_weight is {self.class_weight!r}; give None or 'balanced'.")
        options = {
            "words": self.words,
            "characters": self.characters,
            "min_count": self.min_count,
            "dimension": self.dimension,
            "depth": self.depth,
            "width": self.width,
            "activation": self.activation,
            "vectors": os.fspath(self.vectors) if isinstance(self.vectors, os.PathLike) else self.vectors,
            "learn_vectors": self.learn_vectors,
            "held_out_share": self.held_out,
            "refit": self.refit,
            "strength": 0.0 if self.strength is None else self.strength,
            "trust": self.trust,
            "class_weights": self.class_weight or "none",
            "word_dropout": self.word_dropout,
            "weight_decay": self.weight_decay,
            "epochs": self.epochs,
            "batch": self.batch,
            "rate": self.rate,
            "patience": self.patience,
            "seed": self._seed(),
        }
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items()}
        try:
            recipe = from_record(DANRecipe, plain, "DAN")
        except InklingError as error:
            raise _translated(error) from error
        if self.strength is not None and not recipe.strength:
            raise InputError(f"strength is {self.strength}; give a number above 0, or None to have it chosen.")
        if not 0 <= recipe.held_out_share < 1:
            raise InputError(f"held_out is {self.held_out}; give a share from 0 to below 1.")
        return recipe

    def _seed(self) -> int:
        """A number stays itself; a generator gives one, and so does chance where there is none."""
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(1 << 32, dtype=np.uint32))
        if self.random_state is None or isinstance(self.random_state, np.random.Generator):
            return int(np.random.default_rng(self.random_state).integers(1 << 32))
        return self.random_state

    def _hold_out(self, texts: list[str], truth: Rows, classes: int, recipe: DANRecipe) -> Rows:
        if not recipe.held_out_share:
            return np.zeros(0, np.int64)
        rows = np.arange(len(texts))
        labelled = LabelledText(
            texts,
            tuple(map(str, range(classes))),
            truth,
            np.zeros(len(texts), np.int32),
            rows + 1,
            group_texts(texts),
            Origin((), (), (), "", 0, len(texts), 0, 0),
            [],
        )
        _, held = split(labelled, recipe.held_out_share, recipe.seed)
        if not len(held) and not recipe.sizes().dimension:
            warnings.warn(
                f"No text could be held out of {len(texts):,}, for no class has two different ones: strength and trust "
                "were not chosen and the probabilities are not calibrated.",
                UserWarning,
                stacklevel=3,
            )
        return held


def _fit(recipe: DANRecipe, texts: list[str], truth: Rows, labels: list[str], held_rows: Rows) -> Fitted:
    held = np.zeros(len(texts), np.bool_)
    held[held_rows] = True
    vectors = load_vectors(resolve(recipe.vectors)) if recipe.vectors else None
    if vectors is not None and recipe.dimension not in (None, vectors.dimension):
        raise InputError(f"dimension is {recipe.dimension}, but the vectors have {vectors.dimension}; leave it out.")
    sizes = recipe.sizes(dimension=None if vectors is None else vectors.dimension)
    sizes = replace(sizes, bits=choose_bits(texts, sizes, from_file=vectors is not None))
    if not sizes.dimension:
        return fit_scores(texts, truth, labels, held, sizes, recipe.score_settings())
    prepared = prepare_network(texts, truth, labels, held, sizes, recipe.network_settings(), vectors)
    *_, (state, _step) = fit_network(prepared)
    return prepared.finish(state.chosen(), state.step)


def _translated(error: InklingError) -> InputError:
    """The command's options by the names that they have here."""
    names = {"held_out_share": "held_out", "class_weights": "class_weight", "seed": "random_state"}

    def name(found: re.Match[str]) -> str:
        option = found[1].replace("-", "_")
        return names.get(option, option)

    return InputError(_OPTION.sub(name, str(error)))


# ------------------------------------------------------------------------------------------------ what is given


def read_texts(X: Iterable[str]) -> list[str]:
    """The texts of a list, an array, a column of a table, or anything else that holds one text after another."""
    if isinstance(X, str | bytes):
        raise InputError("X is one text, and a sequence of texts was expected; give [text].")
    if hasattr(X, "__array__") and not isinstance(X, Iterable):
        X = np.asarray(X)
    if len(getattr(X, "shape", (0,))) != 1:
        raise InputError(
            f"X has the shape {tuple(getattr(X, 'shape', ()))}, and a sequence of texts was expected; give one column "
            "of it, as a list of str."
        )
    if isinstance(X, Mapping | Set) or not isinstance(X, Iterable):
        raise InputError(f"X is a {type(X).__name__}, and a sequence of texts was expected; give a list of str.")
    texts = X.tolist() if isinstance(X, np.ndarray) else list(X)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"Text {i} of X (counted from 0) is {_shown(text)}, and a str was expected; leave such rows out, or "
                "write them as text."
            )
    return texts


def read_labels(y: Iterable[object]) -> Labels:
    """One label for each text, none of them missing."""
    if y is None:
        raise InputError("DAN requires y to be passed, but the target y is None; give a label for each text.")
    is_array = hasattr(y, "__array__")
    if isinstance(y, str | bytes | Mapping | Set) or not (is_array or isinstance(y, Iterable)):
        raise InputError(f"y is a {type(y).__name__}, and a sequence of labels was expected; give a list.")
    given = y if is_array else list(y)
    try:
        labels = np.asarray(given)
    except ValueError as error:  # rows of unequal lengths
        raise InputError(
            "y should be a 1d array, but its items are sequences; give one label for each text."
        ) from error
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; its only column is taken.",
            DataConversionWarning,
            stacklevel=3,
        )
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"y should be a 1d array, but has the shape {labels.shape}; give one label for each text.")
    items = given if isinstance(given, list) else labels.tolist()
    for i, label in enumerate(items):
        if _is_missing(label):
            raise InputError(f"Label {i} of y (counted from 0) is missing ({_shown(label)}); leave such rows out.")
    if labels.dtype.kind == "U" and not all(isinstance(label, str) for label in items):
        raise InputError("y mixes text and other labels, and numpy would make text of all; give labels of one type.")
    if labels.dtype.kind == "f" and not (labels == np.floor(labels)).all():
        raise InputError(
            f"Unknown label type: y holds continuous numbers such as {labels[labels != np.floor(labels)][0]:g}, and "
            "classes were expected; give labels, such as those of ranges."
        )
    return labels


def _find_classes(labels: Labels) -> tuple[Labels, Rows]:
    try:
        classes, truth = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise InputError(
            f"Labels of the types {', '.join(kinds)} cannot be sorted; give labels of one type."
        ) from error
    if len(classes) < 2:
        raise InputError(
            f"All {len(labels):,} labels are {_shown(classes[0])}, which makes one class, and a classifier needs at "
            "least two; add texts of another class."
        )
    return classes, truth.astype(np.int64)


def _is_missing(label: object) -> bool:
    """None, a number that is none, and what pandas writes for missing values."""
    if isinstance(label, float):
        return not math.isfinite(label)
    return label is None or type(label).__name__ in ("NAType", "NaTType")


def _shown(value: object) -> str:
    shown = repr(value.item() if isinstance(value, np.generic) else value)
    return shown if len(shown) <= SHOWN_CHARS else f"{shown[: SHOWN_CHARS - 1]}…"
