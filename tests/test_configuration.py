"""Configuration: flags over file over environment over defaults, and mistakes named with what was meant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.configuration import fill, from_record
from inkling.errors import InklingError, UsageError
from inkling.models.bigram import BigramConfig
from inkling.recipes.bigram import BigramRecipe
from inkling.recipes.ngram import NGramRecipe


@dataclass(frozen=True)
class Sample:
    seed: int = 0
    rate: float = 0.5
    fast: bool = False
    name: str = "none"
    kind: Literal["exact", "sgd"] = "exact"
    files: tuple[str, ...] = ()
    column: str | None = None
    header: bool | None = None
    learn_vectors: bool = True


def from_toml(folder: Path, text: str, **flags: Any) -> Sample:
    path = folder / "config.toml"
    path.write_text(text)
    return fill(Sample, flags, path, {})


def from_environment(**variables: str) -> Sample:
    return fill(Sample, {}, None, {f"INKLING_{name.upper()}": value for name, value in variables.items()})


# ------------------------------------------------------------------------------------------------ who wins


def test_flags_win_over_the_file_which_wins_over_the_environment_which_wins_over_defaults(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    environment = {"INKLING_SEED": "1", "INKLING_RATE": "0.1", "INKLING_NAME": "env"}
    assert fill(Sample, {}, None, {}) == Sample()
    assert fill(Sample, {}, None, environment) == Sample(seed=1, rate=0.1, name="env")
    path.write_text("seed = 2\nrate = 0.2\n")
    assert fill(Sample, {}, path, environment) == Sample(seed=2, rate=0.2, name="env")
    assert fill(Sample, {"seed": 3}, path, environment) == Sample(seed=3, rate=0.2, name="env")


def test_a_flag_that_was_not_given_says_nothing_and_one_that_is_false_does(tmp_path: Path) -> None:
    assert from_toml(tmp_path, "seed = 2\nfast = true\n", seed=None, fast=None) == Sample(seed=2, fast=True)
    assert from_toml(tmp_path, "seed = 2\nfast = true\n", seed=0, fast=False) == Sample()


def test_the_environment_of_the_process_is_read_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INKLING_SEED", "11")
    assert fill(Sample, {}).seed == 11


def test_variables_of_others_are_none_of_our_business() -> None:
    environment = {"SEED": "5", "INKLING_RUNS": "folder", "INKLING_SOMETHING": "x", "XINKLING_SEED": "4"}
    assert fill(Sample, {}, None, environment) == Sample()


# ------------------------------------------------------------------------------------------------ types


def test_text_from_the_environment_becomes_what_is_asked_for() -> None:
    found = from_environment(
        seed="7", rate="1e-3", fast="Yes", kind="sgd", files="a.txt,b.txt", column="body", header="no"
    )
    assert found == Sample(
        seed=7, rate=0.001, fast=True, kind="sgd", files=("a.txt", "b.txt"), column="body", header=False
    )


@pytest.mark.parametrize(
    ("text", "truth"), [("1", True), ("TRUE", True), ("0", False), ("false", False), ("No", False)]
)
def test_ways_to_say_yes_and_no(text: str, truth: bool) -> None:
    assert from_environment(fast=text).fast is truth


def test_a_file_fills_lists_numbers_and_dashes(tmp_path: Path) -> None:
    found = from_toml(tmp_path, 'files = ["a", "b"]\nrate = 2\nseed = 3.0\nlearn-vectors = false\ncolumn = "x"\n')
    assert found == Sample(files=("a", "b"), rate=2.0, seed=3, learn_vectors=False, column="x")
    assert (type(found.rate), type(found.seed)) == (float, int)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('seed = "many"', r"seed is 'many'; give a whole number"),
        ("seed = 1.5", r"seed is 1\.5; give a whole number"),
        ("seed = true", r"seed is True; give a whole number"),
        ("seed = inf", r"seed is inf; give a whole number"),
        ('rate = "fast"', r"rate is 'fast'; give a number"),
        ("rate = [1]", r"rate is \[1\]; give a number"),
        ("fast = 1", r"fast is 1; give true or false"),
        ('fast = "perhaps"', r"fast is 'perhaps'; give true or false"),
        ("name = 3", r"name is 3; give text in quotes"),
        ("column = 3", r"column is 3; give text in quotes"),
        ('kind = "magic"', r"kind is 'magic'; give one of exact, sgd"),
        ("kind = 3", r"kind is 3; give one of exact, sgd"),
        ("files = 3", r"files is 3; give a list"),
        ("files = [1, 2]", r"files is 1; give text in quotes"),
        ("name = 2024-01-01", r"name is .*; give text in quotes"),
    ],
)
def test_a_value_of_the_wrong_type_says_what_was_expected_and_where(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=rf"config\.toml: {complaint}"):
        from_toml(tmp_path, line)


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(UsageError, match=r"INKLING_SEED is 'x'; give a whole number"):
        from_environment(seed="x")


# ------------------------------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("key", "meant"), [("sed", "seed"), ("learn_vector", "learn_vectors"), ("Rate", "rate"), ("colum", "column")]
)
def test_an_unknown_key_names_the_nearest(tmp_path: Path, key: str, meant: str) -> None:
    with pytest.raises(UsageError, match=rf"unknown key '{key}'; did you mean '{meant}'\?"):
        from_toml(tmp_path, f"{key} = 1")


def test_a_section_is_an_unknown_key(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown key 'seeds'; did you mean 'seed'"):
        from_toml(tmp_path, "[seeds]\nseed = 1\n")


def test_a_file_that_is_not_there_or_is_not_toml_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.toml cannot be read"):
        fill(Sample, {}, tmp_path / "nowhere.toml", {})
    with pytest.raises(UsageError, match=r"config\.toml is not TOML"):
        from_toml(tmp_path, "seed 3")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not TOML"):
        fill(Sample, {}, tmp_path / "binary.toml", {})


# ------------------------------------------------------------------------------------------------ records


def by_json(record: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(record))
    return found


RECIPES = [
    BigramRecipe(),
    BigramRecipe(files=("a", "b"), held_out=("c",), text_column="x", header=True, vectors="v", learn_vectors=False),
    BigramRecipe(method="sgd", pieces="spaces", exclude=("<unk>",), rate=0.25, minutes=1.5, encoding="latin-1"),
    NGramRecipe(files=("ä",), order=5, tokens="character", discounts="single", bad_rows="skip"),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)
def test_a_recipe_comes_back_from_its_record(recipe: BigramRecipe | NGramRecipe) -> None:
    assert from_record(type(recipe), by_json(asdict(recipe)), "run.json") == recipe


@settings(deadline=None, max_examples=50)
@given(
    st.builds(
        Sample,
        seed=st.integers(-(2**40), 2**40),
        rate=st.floats(allow_nan=False, allow_infinity=False),
        fast=st.booleans(),
        name=st.text(st.characters(exclude_categories=["Cs"])),
        kind=st.sampled_from(["exact", "sgd"]),
        files=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3).map(tuple),
        column=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        header=st.none() | st.booleans(),
    )
)
def test_any_configuration_comes_back_from_its_record(sample: Sample) -> None:
    assert from_record(Sample, by_json(asdict(sample)), "run.json") == sample


def test_a_record_may_leave_out_what_has_a_default_but_not_add_anything() -> None:
    assert from_record(BigramConfig, {"hidden": 7}, "config.json") == BigramConfig(hidden=7)
    with pytest.raises(InklingError, match=r"config\.json: unknown key 'hiden'; did you mean 'hidden'\?"):
        from_record(BigramConfig, {"hiden": 7}, "config.json")
    with pytest.raises(InklingError, match=r"config\.json: hidden is None; give a whole number"):
        from_record(BigramConfig, {"hidden": None}, "config.json")
