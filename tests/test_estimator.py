"""The classifier as an estimator of scikit-learn, and without it."""

from __future__ import annotations

import copy
import doctest
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.validation import validate_data

import inkling.estimator
from inkling.errors import InklingError
from inkling.estimator import DAN, InputError
from inkling.recipes.dan import DANRecipe, train_dan
from inkling.recipes.repeats import group_texts
from inkling.runs.loading import load_classifier
from inkling.text.world import reviews

FAST: dict[str, Any] = {"words": 1, "strength": 0.01, "trust": 1.0}
NETWORK: dict[str, Any] = {"words": 1, "dimension": 8, "epochs": 4, "rate": 0.05, "batch": 50}


def made_reviews(rows: int, seed: int = 0) -> tuple[list[str], list[str]]:
    pairs = reviews(np.random.default_rng(seed), rows, noise=0.0)
    return [text for text, _ in pairs], [label for _, label in pairs]


def planted(rows: int = 60) -> tuple[list[str], list[int]]:
    """Texts of class 0, 1 or 2; the words zero, one and two tell, and the rest is chance."""
    generator = np.random.default_rng(0)
    noise = np.array(["the", "of", "and", "in", "to", "is", "was", "for", "on", "that", "with", "as", "by", "at"])
    labels = [i % 3 for i in range(rows)]
    return [" ".join([*generator.choice(noise, 6), ("zero", "one", "two")[label]]) for label in labels], labels


# ------------------------------------------------------------------------------------------------ what it learns


def test_planted_words_are_found_and_labels_come_back_as_given() -> None:
    texts, labels = planted()
    model = DAN()
    assert model.fit(texts, labels) is model
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict(["of two", "zero was", "one"]).tolist() == [2, 0, 1]
    assert model.score(texts, labels) == 1.0
    chances = model.predict_proba(texts)
    assert chances.shape == (60, 3)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(chances), model.predict_log_proba(texts))
    assert model.predict_proba([]).shape == (0, 3)


@pytest.mark.parametrize("names", [("no", "yes"), (False, True), (-1, 1), (0.0, 1.0), (b"no", b"yes")])
def test_labels_of_any_type_keep_their_type(names: tuple[Any, Any]) -> None:
    texts = [f"{word} {i}" for i in range(10) for word in ("dull", "warm")]
    model = DAN(**FAST).fit(texts, names * 10)
    assert model.classes_.tolist() == list(names)
    found = model.predict(["warm", "dull"]).tolist()
    assert found == [names[1], names[0]]
    assert type(found[0]) is type(names[1])


@pytest.mark.parametrize(
    "held", [list, tuple, np.array, polars.Series, iter, lambda items: np.array(items, dtype=object)]
)
def test_texts_and_labels_come_in_any_sequence(held: Callable[[list[Any]], Any]) -> None:
    texts, labels = planted()
    expected = DAN(**FAST).fit(texts, labels).predict_proba(texts)
    np.testing.assert_array_equal(DAN(**FAST).fit(held(texts), held(labels)).predict_proba(held(texts)), expected)


def test_a_network_with_hidden_layers_learns_too() -> None:
    texts, labels = planted(300)
    model = DAN(depth=1, **NETWORK).fit(texts, labels)
    assert model.network_.config.depth == 1
    assert model.network_.config.dimension == 8
    assert model.predict(["of two", "zero was", "one"]).tolist() == [2, 0, 1]
    assert DAN(depth=1, epochs=1).fit(texts, labels).network_.config.dimension == 100


def test_vectors_are_read_from_a_file_and_stay_when_they_must(tmp_path: Path) -> None:
    path = tmp_path / "three.txt"
    path.write_text("zero 1 0 0\none 0 1 0\ntwo 0 0 1\n", encoding="utf-8")
    texts, labels = planted(300)
    options = {**NETWORK, "dimension": None, "vectors": path, "random_state": 1}
    model = DAN(learn_vectors=False, **options).fit(texts, labels)
    assert sorted(map(tuple, model.network_.vectors.tolist())) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    assert model.score(texts, labels) == 1.0
    with pytest.raises(ValueError, match="dimension is 8, but the vectors have 3"):
        DAN(**{**options, "dimension": 8}).fit(texts, labels)


def test_parameters_reach_the_network() -> None:
    texts, labels = planted()
    model = DAN(words=2, characters="2-3", strength=0.5, trust=0.0).fit(texts, labels)
    config = model.network_.config
    assert (config.words, config.low, config.high, config.distinct) == (2, 2, 3, True)
    assert [(choice.strength, choice.trust) for choice in model.choices_] == [(0.5, 0.0)]
    fewer = clone(model).set_params(min_count=2).fit(texts, labels)
    assert 0 < len(fewer.network_.keys) < len(model.network_.keys)
    assert len(DAN().fit(texts, labels).choices_) > 1


def test_balanced_classes_weigh_the_same() -> None:
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(["red", "blue", "green", "grey", "white"], 4)) for _ in range(400)]
    labels = ["seldom" if i % 20 == 0 else "often" for i in range(400)]  # the words say nothing
    plain = DAN(held_out=0, **FAST).fit(texts, labels).predict_proba(texts)[:, 1]
    even = DAN(held_out=0, class_weight="balanced", **FAST).fit(texts, labels).predict_proba(texts)[:, 1]
    assert plain.mean() == pytest.approx(0.05, abs=0.02)
    assert even.mean() == pytest.approx(0.5, abs=0.05)


def test_the_command_and_the_estimator_make_the_same_model(tmp_path: Path) -> None:
    texts, labels = made_reviews(200)
    rows = "".join(f"{label}\t{text}\n" for text, label in zip(texts, labels, strict=True))
    path = tmp_path / "reviews.tsv"
    path.write_text("label\ttext\n" + rows, encoding="utf-8")
    recipe = DANRecipe(files=(str(path),), text_column="text", label_column="label", seed=4)
    assert not list(train_dan(recipe, tmp_path / "run"))  # scores are fitted in one go
    trained = load_classifier(tmp_path / "run")
    model = DAN(random_state=4).fit(texts, labels)
    assert trained.labels == model.network_.labels
    np.testing.assert_allclose(trained.log_probs(texts).numpy(), model.predict_log_proba(texts), atol=1e-3)


def test_reasons_are_given_for_verdicts() -> None:
    texts, labels = planted()
    (why,) = DAN(**FAST).fit(texts, labels).explain(["of the two"])
    assert why.labels == ("0", "1", "2")
    assert why.word(int(why.effects[:, 2].argmax())) == "two"


# ------------------------------------------------------------------------------------------------ holding out


def test_a_tenth_of_each_class_is_held_out_and_never_half_of_a_pair() -> None:
    texts, labels = planted(120)
    texts[60:90] = [text.upper() for text in texts[30:60]]  # the same text twice
    held = DAN(**FAST).fit(texts, labels).held_out_rows_
    assert np.bincount(np.array(labels)[held]).tolist() == [4, 4, 4]
    groups = group_texts(texts)
    assert not np.isin(groups[held], np.delete(groups, held)).any()


def test_without_texts_to_spare_it_is_fitted_and_says_what_is_missing() -> None:
    with pytest.warns(UserWarning, match="No text could be held out of 2.* not calibrated"):
        model = DAN().fit(["warm sun", "cold rain"], ["good", "bad"])
    assert model.predict(["warm", "rain"]).tolist() == ["good", "bad"]
    assert len(model.held_out_rows_) == 0
    assert model.network_.temperature == 1.0
    with pytest.raises(ValueError, match="A network needs held-out texts"):
        DAN(**NETWORK).fit(["warm sun", "cold rain"], ["good", "bad"])


def test_nothing_is_held_out_when_nothing_should_be() -> None:
    texts, labels = planted()
    model = DAN(held_out=0, **FAST).fit(texts, labels)
    assert len(model.held_out_rows_) == 0
    assert model.network_.temperature == 1.0


# ------------------------------------------------------------------------------------------------ chance


@pytest.mark.parametrize("options", [{}, NETWORK])
def test_the_same_random_state_gives_the_same_model_and_another_another(options: dict[str, Any]) -> None:
    texts, labels = made_reviews(100)
    seeds: tuple[Any, ...] = (1, np.int64(1), 2)
    first, again, other = (DAN(random_state=seed, **options).fit(texts, labels).predict_proba(texts) for seed in seeds)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_is_drawn_from_at_each_fit(make: Callable[[int], Any]) -> None:
    texts, labels = planted()
    generator = make(3)
    model = DAN(random_state=generator, **FAST)
    first = model.fit(texts, labels).held_out_rows_
    assert not np.array_equal(first, model.fit(texts, labels).held_out_rows_)
    np.testing.assert_array_equal(first, DAN(random_state=make(3), **FAST).fit(texts, labels).held_out_rows_)


def test_without_a_random_state_every_fit_holds_out_others() -> None:
    texts, labels = made_reviews(200)
    drawn = {tuple(DAN(random_state=None, **FAST).fit(texts, labels).held_out_rows_.tolist()) for _ in range(3)}
    assert len(drawn) == 3


# ------------------------------------------------------------------------------------------------ mistakes

GOOD = ["warm sun", "cold rain", "warm day", "cold day"]
CLASSES = ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ("warm sun", CLASSES, r"X is one text, .* give \[text\]"),
        ([*GOOD[:3], None], CLASSES, "Text 3 of X .* is None"),
        ([*GOOD[:3], float("nan")], CLASSES, "Text 3 of X .* is nan"),
        ([*GOOD[:3], b"bytes"], CLASSES, "Text 3 of X .* is b'bytes'"),
        (np.arange(4), CLASSES, "Text 0 of X .* is 0"),
        (np.array([GOOD]), CLASSES, r"shape \(1, 4\)"),
        (polars.DataFrame({"text": GOOD}), CLASSES, r"shape \(4, 1\)"),
        (np.array("warm"), CLASSES, r"shape \(\)"),
        (set(GOOD), CLASSES, "X is a set"),
        (dict.fromkeys(GOOD), CLASSES, "X is a dict"),
        (None, CLASSES, "X is a NoneType"),
        ([], [], "no text was given"),
        (GOOD, CLASSES[:3], "4 texts and 3 labels"),
        (GOOD, ["a"] * 4, "All 4 labels are 'a', which makes one class"),
        (GOOD, None, "y is None"),
        (GOOD, "abab", "y is a str"),
        (GOOD, 3, "y is a int"),
        (GOOD, ["a", "b", None, "a"], r"Label 2 of y .* missing \(None\)"),
        (GOOD, [0, 1, float("nan"), 1], r"Label 2 of y .* missing \(nan\)"),
        (GOOD, ["a", "b", float("nan"), "b"], r"Label 2 of y .* missing \(nan\)"),
        (GOOD, polars.Series(["a", "b", None, "b"]), "Label 2 of y .* missing"),
        (GOOD, [0.5, 1.5, 2.5, 0.5], "continuous numbers such as 0.5"),
        (GOOD, ["a", 1, "a", 1], "y mixes text and other labels"),
        (GOOD, np.array(["a", 1, "a", 1], dtype=object), "types int, str cannot be sorted"),
        (GOOD, [("a", "b")] * 4, r"shape \(4, 2\)"),
        (GOOD, [["a"], ["a", "b"], [], []], "its items are sequences"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_in_one_sentence(X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        DAN().fit(X, y)
    assert isinstance(caught.value, InklingError)
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words": 9}, "^words is 9; give a whole number from 1 to 8"),
        ({"words": "three"}, "^words is 'three'; give a whole number"),
        ({"vectors": 3}, "^vectors is 3; give text"),
        ({"characters": "5-3"}, "^characters is 5-3"),
        ({"word_dropout": 1.0}, "^word_dropout is 1.0"),
        ({"class_weight": {"a": 2}}, "give None or 'balanced'"),
        ({"strength": "weak"}, "^strength is 'weak'; give a number"),
        ({"strength": 0}, "^strength is 0; give a number above 0, or None"),
        ({"trust": -1}, "^trust is -1"),
        ({"held_out": 1.0}, "^held_out is 1.0; give a share"),
        ({"held_out": None}, "^held_out is None; give a number"),
        ({"random_state": -1}, "^random_state is -1"),
        ({"random_state": "one"}, "^random_state is 'one'; give a whole number"),
        ({"activation": "step"}, "^activation is step"),
        ({"depth": 1, "dimension": 0}, r"\(depth 1\) need vectors to read; give dimension"),
        ({"min_count": 9}, "smaller min_count"),
    ],
)
def test_parameters_are_judged_when_fitting_and_by_their_names_here(options: dict[str, Any], message: str) -> None:
    model = DAN(**options)
    with pytest.raises(InputError, match=message):
        model.fit(GOOD, CLASSES)
    assert {name: model.get_params()[name] for name in options} == options


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "explain"])
def test_before_fitting_nothing_is_answered(method: str) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(DAN(), method)(GOOD)


def test_texts_without_words_are_refused() -> None:
    with pytest.raises(InputError, match="hold no words; give texts with letters"):
        DAN(held_out=0).fit(["", " ", "", " "], CLASSES)


def test_a_failed_fit_leaves_the_model_as_it_was() -> None:
    texts, labels = planted()
    model = DAN(**FAST).fit(texts, labels)
    with pytest.raises(ValueError, match="one class"):
        model.fit(GOOD, ["a"] * 4)
    assert model.score(texts, labels) == 1.0


def test_predicting_one_text_or_a_table_is_refused() -> None:
    model = DAN(**FAST).fit(*planted())
    mistakes: tuple[Any, ...] = ("zero", [["zero"]], np.array([["zero"]]))
    for wrong in mistakes:
        with pytest.raises(ValueError, match=r"(a sequence of texts|a str) was expected"):
            model.predict(wrong)


def test_a_column_of_labels_is_taken_with_a_warning() -> None:
    texts, labels = planted()
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model = DAN(**FAST).fit(texts, np.array(labels)[:, None])
    assert model.score(texts, labels) == 1.0


# ------------------------------------------------------------------------------------------------ scikit-learn


def lower(texts: Iterable[str]) -> list[str]:
    return [text.lower().replace("_", " ") for text in texts]


def test_it_stands_at_the_end_of_a_pipeline() -> None:
    texts, labels = planted()
    glued = [text.replace(" ", "_") for text in texts]
    model = make_pipeline(FunctionTransformer(lower), DAN(**FAST)).fit(glued, labels)
    assert model.score(glued, labels) == 1.0
    assert model.predict_proba(["of_two"]).argmax() == 2
    assert model[-1].classes_.tolist() == model.classes_.tolist()


@pytest.mark.parametrize("held", [list, np.array, polars.Series])
def test_it_is_cross_validated(held: Callable[[list[Any]], Any]) -> None:
    texts, labels = planted(90)
    scores = cross_val_score(DAN(**FAST), held(texts), held(labels), cv=3, error_score="raise")
    assert scores.tolist() == [1.0, 1.0, 1.0]


def test_a_grid_finds_the_better_setting() -> None:
    # Order decides: only runs of two words tell "not good" from "good not".
    texts = [f"{i} {first} {second}" for i in range(30) for first, second in (("not", "good"), ("good", "not"))]
    labels = [True, False] * 30
    grid = GridSearchCV(DAN(held_out=0, strength=0.01, trust=1.0), {"words": [1, 2]}, cv=3, error_score="raise")
    grid.fit(texts, labels)
    assert grid.best_params_ == {"words": 2}
    assert grid.best_score_ == 1.0
    assert grid.predict(["they are not good"]).tolist() == [True]


def test_it_is_a_classifier_of_texts_to_scikit_learn() -> None:
    model = DAN(words=2, depth=1)
    assert isinstance(model, BaseEstimator)
    assert is_classifier(model)
    tags = get_tags(model)
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "DAN(depth=1, words=2)"
    assert "DAN" in model._repr_html_()
    with pytest.raises(ValueError, match="Invalid parameter 'word'"):
        model.set_params(word=1)


def test_a_copy_answers_like_the_original() -> None:
    texts, labels = planted()
    model = DAN(**FAST).fit(texts, labels)
    np.testing.assert_array_equal(copy.deepcopy(model).predict_proba(texts), model.predict_proba(texts))


INDEPENDENT_CHECKS = (
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
)


@pytest.mark.parametrize("name", INDEPENDENT_CHECKS)
def test_the_checks_that_need_no_data_pass_as_they_are(name: str) -> None:
    getattr(estimator_checks, name)("DAN", DAN())


LEVELS = np.linspace(-3, 3, 13)


def write(numbers: NDArray[Any]) -> list[str]:
    """Each number as a word of its own and one for each level, telling on which side of it the number lies."""
    return [
        " ".join(
            f"n{column}is{value:.2f}".replace(".", "p").replace("-", "m")
            + "".join(f" n{column}{'above' if value >= level else 'below'}{i}" for i, level in enumerate(LEVELS))
            for column, value in enumerate(row)
        )
        for row in numbers.tolist()
    ]


class WrittenNumbers(DAN):
    """The checks with data feed arrays of numbers; written as words, they go through all that DAN does after."""

    def fit(self, X: Any, y: Any) -> WrittenNumbers:
        return super().fit(write(validate_data(self, X)), y)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        self._fitted()
        return super().predict_log_proba(write(validate_data(self, X, reset=False)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.string = tags.input_tags.one_d_array = False
        tags.input_tags.two_d_array = True
        return tags


@pytest.mark.filterwarnings("ignore")  # the checks give their data in many forms, and count the warnings themselves
@pytest.mark.parametrize("options", [FAST, NETWORK], ids=["scores", "network"])
def test_the_checks_with_data_pass_when_numbers_are_written_as_words(options: dict[str, Any]) -> None:
    results = estimator_checks.check_estimator(
        WrittenNumbers(**options),
        expected_failed_checks={"check_class_weight_classifiers": "a weight for each class is not offered"},
        on_skip=None,
    )
    passed = {result["check_name"] for result in results if result["status"] == "passed"}
    assert {result["check_name"] for result in results if result["status"] not in ("passed", "skipped")} == {
        "check_class_weight_classifiers"
    }
    assert {result["check_name"] for result in results if result["status"] == "skipped"} <= {
        "check_array_api_input",  # where SCIPY_ARRAY_API is not set
        "check_classifier_data_not_an_array",  # its last part, where pandas is not installed
        "check_estimators_unfitted",
    }
    assert passed >= {
        "check_classifiers_train",
        "check_classifiers_classes",
        "check_classifiers_one_label",
        "check_classifiers_regression_target",
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_estimators_fit_returns_self",
        "check_estimators_pickle",
        "check_estimators_unfitted",
        "check_fit_idempotent",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_pipeline_consistency",
        "check_requires_y_none",
        "check_supervised_y_2d",
        "check_supervised_y_no_nan",
    }


# ------------------------------------------------------------------------------------------------ alone

ALONE = """
    import sys
    sys.modules["sklearn"] = None
    from inkling.estimator import DAN, NotFittedError
    texts = [f"{word} {i}" for i in range(20) for word in ("dull", "warm")]
    model = DAN(words=2, random_state=1)
    try:
        model.predict(texts)
    except (NotFittedError, ValueError, AttributeError) as error:
        print(type(error).__name__)
    model.fit(texts, [0, 1] * 20)
    print(model, model.predict(["warm", "dull"]).tolist(), model.score(texts, [0, 1] * 20))
    print(model.set_params(words=1).get_params()["words"], model.score(["warm", "dull"], [1, 1], [3, 1]))
    try:
        model.set_params(word=1)
    except ValueError as error:
        print(error)
    print([name for name in sys.modules if name.startswith("sklearn.")])
"""


@pytest.mark.slow
def test_it_works_without_scikit_learn() -> None:
    program = [sys.executable, "-W", "error", "-c", textwrap.dedent(ALONE)]
    lines = subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[:3] == ["NotFittedError", "DAN(words=2, random_state=1) [1, 0] 1.0", "1 0.75"]
    assert lines[3].startswith("Invalid parameter 'word' for DAN; give one of ['words', ")
    assert lines[4] == "[]"


def test_the_example_in_the_documentation_is_true() -> None:
    failed, attempted = doctest.testmod(inkling.estimator)
    assert failed == 0
    assert attempted > 0
