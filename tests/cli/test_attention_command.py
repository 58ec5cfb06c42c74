"""`inkling attention …` as a user types it; what inspect does inside is in tests/recipes/test_recipe_inspection.py.

Few samples are drawn: that exact and simulated agree is tested in tests/attention, here that the command says it.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import xml.etree.ElementTree as ElementTree
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from statistics import NormalDist

import pytest
import typer.main
from driver import Cli

from inkling.cli.app import main

COMMANDS = ("copy", "average", "noise", "heads", "extract", "design", "induction", "inspect")
FEW = ("--samples", "2000")
BUILD = cache(typer.main.get_command)


@pytest.fixture(autouse=True)
def built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Typer builds all commands anew for each call, a tenth of a second; two hundred calls need them once."""
    monkeypatch.setattr("typer.main.get_command", BUILD)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("INKLING_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys, "attention")


# ------------------------------------------------------------------------------------------ exact and simulated


def phi(x: float) -> float:
    return NormalDist().cdf(x)


def test_two_heads_fail_as_often_as_the_formula_says(run: Cli) -> None:
    found = run.json("heads")  # n = 20, β = 10, noise ½: γβ < ln 19 with γ ~ N(1, ½)
    derived = phi(math.sqrt(2) * (math.log(19) / 10 - 1))
    assert derived == pytest.approx(0.159186, abs=1e-6)
    assert found["failure_probability"] == pytest.approx(derived, abs=1e-9)
    assert found["samples"] == 200_000
    error = math.sqrt(derived * (1 - derived) / 200_000)
    assert found["standard_error"] == pytest.approx(error, rel=0.05)
    assert abs(found["simulated"] - derived) < 4 * error
    assert found["deviation"] == pytest.approx((found["simulated"] - derived) / error, rel=0.01)
    setting = found["setting"]
    assert (setting["keys"], setting["beta"], setting["noise"], setting["a"], setting["b"]) == (20, 10, 0.5, 1, 2)


def test_no_sharpness_mends_a_key_that_points_the_wrong_way(run: Cli) -> None:
    found = run.json("heads", "--beta", "10000", *FEW)
    assert found["failure_probability"] == pytest.approx(phi(math.sqrt(2) * (math.log(19) / 1e4 - 1)), abs=1e-9)
    assert 0 < found["failure_probability"] - phi(-math.sqrt(2)) < 1e-4  # 0.0786…, the share of γ < 0


@pytest.mark.parametrize("command", ["copy", "average", "noise", "heads"])
def test_t_is_the_exponential_of_beta(command: str, run: Cli) -> None:
    by_t, by_beta = (run.json(command, *way, *FEW) for way in (("--t", "50"), ("--beta", repr(math.log(50)))))
    assert by_t == by_beta


def test_scores_over_the_root_of_d_need_a_beta_that_much_larger(run: Cli) -> None:
    plain = run.json("heads", "--keys", "16", "--beta", "8", *FEW)
    scaled = run.json("heads", "--keys", "16", "--beta", "32", "--scaled", *FEW)  # √16 = 4
    assert scaled["setting"]["scaled"]
    for one, other in zip(plain["figures"], scaled["figures"], strict=True):
        assert one["name"] == other["name"]
        assert other["exact"] == pytest.approx(one["exact"], rel=1e-9, abs=1e-12)
        assert other["simulated"] == pytest.approx(one["simulated"], rel=1e-4, abs=1e-6)


def test_the_seed_decides_the_samples_and_nothing_exact(run: Cli) -> None:
    first, again, other = (run("noise", "--json", "--seed", seed, *FEW) for seed in ("3", "3", "4"))
    assert first == again
    assert first != other
    exact = [[figure["exact"] for figure in json.loads(text)["figures"]] for text in (first, other)]
    assert exact[0] == exact[1]


def test_copying_gives_the_weight_of_the_formula_and_the_guarantee_of_the_margin(run: Cli) -> None:
    (head,) = run.json("copy", "--keys", "20", "--beta", "1", "--a", "3", *FEW)["exact"]["heads"]
    derived = math.e / (math.e + 19)
    assert head["weights_at_means"][2] == pytest.approx(derived)
    assert head["mean_weights"][2] == pytest.approx(derived)
    assert head["margin"] == pytest.approx(1)
    assert head["bound"] == pytest.approx(derived)
    assert head["weights_at_means"][0] == pytest.approx(1 / (math.e + 19))


def test_averaging_gives_half_of_each(run: Cli) -> None:
    (head,) = run.json("average", "--keys", "20", "--t", "1000", *FEW)["exact"]["heads"]
    assert head["mean_weights"][:2] == pytest.approx([1000 / 2018] * 2)
    assert head["mean_weights"][2:] == pytest.approx([1 / 2018] * 18)


def test_two_heads_with_one_query_are_no_better_than_one(run: Cli) -> None:
    figures = {figure["name"]: figure for figure in run.json("heads", "--same", *FEW)["figures"]}
    two, one = (figures[f"{whose}: variance of a's part"]["exact"] for whose in ("output", "one head"))
    assert two == pytest.approx(one, rel=1e-12)
    apart = {figure["name"]: figure for figure in run.json("heads", *FEW)["figures"]}
    assert apart["output: variance of a's part"]["exact"] < one / 5


def test_noise_in_every_direction_makes_failures_more_frequent(run: Cli) -> None:
    plain = run.json("heads", *FEW)["failure_probability"]
    assert run.json("heads", "--alpha", "0.01", *FEW)["failure_probability"] > plain + 0.001


def test_keys_that_resemble_each_other_have_the_cosine_that_was_asked_for(run: Cli) -> None:
    (head,) = run.json("copy", "--keys", "5", "--coherence", "0.4", "--beta", "1", "--seed", "2", *FEW)["exact"][
        "heads"
    ]
    weights = head["weights_at_means"]
    assert head["margin"] >= 1 - 0.4 - 1e-9  # with β = 1 a score is a cosine
    assert len({round(weight, 9) for weight in weights}) == 5


# ------------------------------------------------------------------------------------------ constructed


def test_a_query_for_chosen_keys_leaks_as_much_as_was_allowed(run: Cli) -> None:
    found = run.json("average", "--keys", "20", "--chosen", "1,4,7", "--error", "0.01")
    assert found["beta"] == pytest.approx(math.log(17 * 0.99 / (3 * 0.01)))
    assert found["chosen"] == [0, 3, 6]
    assert [found["weights"][i] for i in (0, 3, 6)] == pytest.approx([0.33] * 3)
    assert found["leak"] == pytest.approx(0.01)


def test_keys_of_a_query_come_from_a_file_or_the_line_itself(run: Cli, here: Path) -> None:
    (here / "keys.csv").write_text("\ufeff1, 0 0\n0,1,0\n\n1 1 1\n", encoding="utf-8")
    inline, file = (
        run.json("average", "--chosen", "1+3", "--from", given, "--beta", "8")
        for given in ("1 0 0; 0 1 0; 1 1 1", "keys.csv")
    )
    assert inline == file
    assert file["scores"] == pytest.approx([8, 0, 8], abs=1e-9)
    whole = 2 * math.exp(8) + 1
    assert file["weights"] == pytest.approx([math.exp(8) / whole, 1 / whole, math.exp(8) / whole])


def test_chosen_keys_are_those_of_the_experiment_with_the_same_seed(run: Cli) -> None:
    from inkling.attention.laboratory import Setting

    found = run.json("average", "--chosen", "2", "--keys", "6", "--coherence", "0.5", "--seed", "7", "--beta", "1")
    means = Setting("average", keys=6, coherence=0.5, seed=7).case().means
    assert found["scores"] == pytest.approx((means @ found["query"]).tolist(), abs=1e-12)
    assert found["scores"][1] - max(found["scores"][:1] + found["scores"][2:]) == pytest.approx(1)


def test_extraction_reads_one_part_out_of_a_sum(run: Cli, here: Path) -> None:
    found = run.json("extract", "1 0 0", "1 1 0")
    assert [cell for row in found["M"] for cell in row] == pytest.approx([1, -1, 0, 0, 0, 0, 0, 0, 0], abs=1e-12)
    assert found["angle_degrees"] == pytest.approx(45)
    assert found["norm"] == pytest.approx(math.sqrt(2))
    (here / "a.csv").write_text("1,0,0\n", encoding="utf-8")
    (here / "b.csv").write_text("1 1 0\n", encoding="utf-8")
    assert run.json("extract", "a.csv", "b.csv") == found
    random = run.json("extract", "--seed", "5")
    assert len(random["M"]) == 5
    assert random != run.json("extract", "--seed", "6")
    assert sum(random["M"][i][i] for i in range(5)) == pytest.approx(2)  # the trace of a projector onto a plane


def test_the_design_of_the_exercise_has_its_matrices_and_rules_the_identity_out(run: Cli) -> None:
    found = run.json("design")
    assert found["names"] == ["a", "b", "c", "d"]
    identity = [[float(i == j) for j in range(4)] for i in range(4)]
    assert found["K"] == identity
    assert found["Q"] == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]]  # d looks for c, a looks for d
    assert found["V"] == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, -1, 0], [0, 0, 0, 0]]
    assert found["met"]
    assert found["reasons"] == []
    first, second = found["identity"]
    assert (first["token"], second["token"]) == (0, 1)
    assert not first["possible"]
    assert first["certified"]
    assert first["proven_distance"] == pytest.approx(math.sqrt(15), rel=1e-6)  # 3·√(5/3), at ⅔(d+b) + ⅓a
    assert min(second["margins"]) > 0


def test_a_wish_that_cannot_be_met_is_explained_and_no_failure(run: Cli) -> None:
    found = run.json("design", "a, a", "1=a, 2=2a")
    assert not found["met"]
    assert any("equal inputs" in reason for reason in found["reasons"])
    assert "Not every wish is met" in run("design", "a, a", "1=a, 2=2a")
    assert not run.json("design", "a, b", "2=3a", "--looks", "2=2")["met"]
    assert run.json("design", "a, b", "2=3a", "--looks", "2=1")["met"]
    assert run.json("design", "a, b", "2=3a", "--looks", "2=2", "--linear")["met"]


def test_induction_predicts_what_followed_before(run: Cli) -> None:
    found = run.json("induction", "A B C A B")
    assert found["predictions"] == [None, None, None, None, "B", "C"]
    assert found["error"] <= found["bound"] < 1e-7
    assert "the next word is 'cat'" in run("induction")
    assert run.json("induction", "A B C A B", "--sharpness", "5")["error"] > found["error"]


# ------------------------------------------------------------------------------------------ trained


FIGURES: tuple[str, ...] = (
    "places",
    "even",
    "top_weight",
    "copies",
    "entropy_nats",
    "keys_in_use",
    "share_in_use",
    "one_back",
)
FIGURES += ("first_token", "itself", "induction_places", "induction", "induction_even", "margin_median", "beta_median")


def test_inspect_trains_a_small_model_and_gives_all_figures_of_its_heads(run: Cli) -> None:
    found = run.json("inspect", "--steps", "5", "--texts", "4", "--html", "heads.html")
    assert run.notes == "Wrote heads.html.\n"
    assert [head["name"] for head in found["heads"]] == [f"{layer}.{n}" for layer in (1, 2) for n in (1, 2, 3, 4)]
    assert found["texts"] == 4
    assert 2 < found["nats"] < 5  # five steps are none: near ln 33 = 3.50
    for head in found["heads"]:
        assert all(isinstance(head[name], int | float) for name in FIGURES)
        for effect in ("removed", "direct", "made_up", "noised"):
            assert head[effect]["low"] <= head[effect]["value"] <= head[effect]["high"]
    assert found["sentences"][0].startswith("8 heads on 4 texts")
    check_page(Path("heads.html"))


def test_models_without_heads_are_refused_in_a_sentence(
    run: Cli, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "novel.txt").write_text("The cat sat on the mat.\nThe dog sat on the cat.\n" * 20, encoding="utf-8")
    for arguments in (
        ("train", "ngram", "novel.txt", "--order", "2"),
        ("train", "bigram", "novel.txt", "--steps", "2", "--hidden", "4", "--vocabulary", "20"),
    ):
        assert main([*arguments, "--out", arguments[1]]) == 0
        assert run("inspect", arguments[1], "--on", "novel.txt", code=1) == ""
        sentence = check_sentence(run.notes)
        assert f"{arguments[1]} holds a model without attention heads" in sentence
        assert run("inspect", arguments[1], code=2) == ""
        assert "add --on FILE" in check_sentence(run.notes)


# ------------------------------------------------------------------------------------------ pages and pictures


class PlainText(HTMLParser):
    """The words of a page, and the tags that could load something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.loading: list[str] = []
        self.feed(page)
        self.text = " ".join("".join(self.parts).split())

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.parts.append(" ")
        if tag in ("script", "link", "img", "iframe", "object") or any(
            name in ("src", "href") for name, _ in attributes
        ):
            self.loading.append(tag)


def check_page(path: Path) -> str:
    """A page that stands alone; its words."""
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "//" not in page.replace("http://www.w3.org/2000/svg", "")
    found = PlainText(page)
    assert found.loading == []
    return found.text


PAGES = {
    "copy": FEW,
    "average": ("--alpha", "0.001", *FEW),
    "noise": FEW,
    "heads": FEW,
    "extract": (),
    "design": (),
    "induction": (),
}


@pytest.mark.parametrize("command", PAGES)
def test_pages_and_pictures_stand_alone_and_hold_their_readings(
    command: str, run: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inkling.figures import Page, Picture
    from inkling.report import page as pages

    kept: list[Page] = []
    render = pages.render

    def keep(page: Page) -> str:
        kept.append(page)
        return render(page)

    monkeypatch.setattr(pages, "render", keep)
    out = run(command, *PAGES[command], "--html", "y.html", "--svg", "y.svg")
    assert run.notes == "Wrote y.html.\nWrote y.svg.\n"
    assert out.startswith(kept[0].title)
    assert sorted(path.name for path in here.iterdir()) == ["y.html", "y.svg"]
    text = check_page(Path("y.html"))
    svg = Path("y.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "//" not in svg.replace("http://www.w3.org/2000/svg", "")
    drawn = " ".join(" ".join(root.itertext()).split())
    pictures = [exhibit for exhibit in kept[0].exhibits if isinstance(exhibit, Picture)]
    assert pictures
    for picture in pictures:
        assert " ".join(picture.reading.split()) in text
        assert " ".join(picture.reading.split()) in drawn
        assert picture.title in text
        assert picture.title in drawn


@pytest.mark.slow
def test_examples_in_the_help_work_as_they_stand(run: Cli) -> None:
    quick: dict[str, tuple[str, ...]] = dict.fromkeys(("copy", "average", "noise", "heads"), ("--samples", "300"))
    quick["inspect"] = ("--steps", "2", "--texts", "2")
    seen: dict[str, int] = {}
    for command in ("", *COMMANDS):
        for line in run(*([command] if command else []), "--help").splitlines():
            if not line.strip().startswith("inkling attention "):
                continue
            example, *said = line.strip().split("   ")
            _, _, name, *arguments = shlex.split(example)
            seen[name] = seen.get(name, 0) + 1
            less = () if "--chosen" in arguments else quick.get(name, ())
            assert len(run(name, *arguments, *less)) > 200, line
            assert len(said) == 0 or said[-1].strip(), line
    assert set(seen) == set(COMMANDS)
    assert min(seen.values()) >= 2


# ------------------------------------------------------------------------------------------ mistakes


def check_sentence(stderr: str) -> str:
    assert stderr.startswith("inkling: "), stderr
    assert stderr.endswith((".\n", "?\n"))
    assert stderr[:-1].isprintable()
    return stderr[:-1]


CHOSEN = ("average", "--chosen", "1,2")
LONG = " ".join(["1"] * 2001)

BAD: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    # ------------------------------------------------------------------------------------- numbers of things
    "keys 0": (("copy", "--keys", "0"), 2, ("keys is 0", "100,000")),
    "keys -3": (("heads", "--keys", "-3"), 2, ("keys is -3",)),
    "keys 2.5": (("copy", "--keys", "2.5"), 2, ("--keys is '2.5'", "whole number")),
    "too few dimensions": (("copy", "--dimension", "5"), 2, ("20 orthonormal keys need 20 dimensions", "are 5")),
    "dimension 0": (("copy", "--dimension", "0"), 2, ("dimensions",)),
    "more keys than memory": (("copy", "--keys", "100000"), 2, ("--keys is 100000", "at most 5,000")),
    "more numbers than memory": (("heads", "--keys", "100000", "--dimension", "100000"), 2, ("at most 5,000",)),
    "dimensions beyond memory": (("copy", "--dimension", "10000000"), 2, ("10000000 dimensions", "fewer dimensions")),
    "many keys that are alike": (
        ("copy", "--keys", "100000", "--dimension", "100", "--coherence", "0.6"),
        2,
        ("too many for --coherence", "at most 1,000"),
    ),
    "samples 0": (("copy", "--samples", "0"), 2, ("samples is 0",)),
    "samples 1e9": (("copy", "--samples", "1e9"), 2, ("--samples is '1e9'", "whole number")),
    "seed -1": (("noise", "--seed", "-1"), 2, ("--seed is -1",)),
    "one key for two": (("heads", "--keys", "1"), 2, ("1 key", "at least 2")),
    "a is b": (("heads", "--a", "1", "--b", "1"), 2, ("both key 1", "two different keys")),
    "a beyond the keys": (("copy", "--a", "21"), 2, ("Key 21", "from 1 to 20")),
    "a 0": (("copy", "--a", "0"), 2, ("Key 0", "from 1 to 20")),
    # ------------------------------------------------------------------------------------- sizes
    "noise -1": (("noise", "--noise", "-1"), 2, ("noise", "-1")),
    "noise nan": (("noise", "--noise", "nan"), 2, ("noise",)),
    "alpha -0.1": (("heads", "--alpha", "-0.1"), 2, ("alpha", "-0.1")),
    "alpha inf": (("heads", "--alpha", "inf"), 2, ("alpha",)),
    "beta nan": (("copy", "--beta", "nan"), 2, ("β is nan",)),
    "beta inf": (("copy", "--beta", "inf"), 2, ("β is inf",)),
    "beta 1e300": (("copy", "--beta", "1e300"), 2, ("β is 1e+300",)),
    "t 0": (("average", "--t", "0"), 2, ("--t is 0", "above 0")),
    "t nan": (("average", "--t", "nan"), 2, ("--t is nan",)),
    "beta and t": (("copy", "--beta", "3", "--t", "3"), 2, ("--beta and --t", "one of them")),
    "coherence 1.5": (("copy", "--coherence", "1.5"), 2, ("coherence is 1.5",)),
    "coherence nan": (("copy", "--coherence", "nan"), 2, ("coherence is nan",)),
    "coherence out of reach": (
        ("copy", "--keys", "30", "--dimension", "20", "--coherence", "0.01"),
        2,
        ("coherence is 0.01", "30 random keys in 20 dimensions"),
    ),
    # ------------------------------------------------------------------------------------- chosen keys
    "nothing chosen": (("average", "--chosen", ""), 2, ("--chosen is ''", "1,4,7")),
    "chosen twice": (("average", "--chosen", "1,1"), 2, ("names 1 twice",)),
    "chosen beyond the keys": (("average", "--chosen", "99"), 2, ("names 99", "from 1 to 20")),
    "chosen words": (("average", "--chosen", "one"), 2, ("--chosen is 'one'",)),
    "error 2": ((*CHOSEN, "--error", "2"), 2, ("--error is 2", "between 0 and 1")),
    "error 0": ((*CHOSEN, "--error", "0"), 2, ("--error is 0",)),
    "error nan": ((*CHOSEN, "--error", "nan"), 2, ("--error is nan",)),
    "error and beta": ((*CHOSEN, "--error", "0.1", "--beta", "3"), 2, ("--beta plays no part with --error",)),
    "error alone": (("average", "--error", "0.1"), 2, ("--error goes with --chosen",)),
    "from alone": (("average", "--from", "1 0"), 2, ("--from goes with --chosen",)),
    "chosen and noise": ((*CHOSEN, "--noise", "0.1"), 2, ("--noise plays no part with --chosen",)),
    "chosen and samples": ((*CHOSEN, "--samples", "5"), 2, ("--samples plays no part with --chosen",)),
    "from and keys": ((*CHOSEN, "--from", "1 0; 0 1", "--keys", "3"), 2, ("--keys plays no part with --from",)),
    "beta -1 for chosen keys": ((*CHOSEN, "--beta", "-1"), 2, ("β is -1", "at least 0")),
    "too many keys to solve for": ((*CHOSEN, "--keys", "3000"), 2, ("--keys is 3000", "at most 2,000")),
    "from no file": ((*CHOSEN, "--from", "none.csv"), 2, ("--from is 'none.csv'", "neither a file that exists")),
    "from ragged rows": ((*CHOSEN, "--from", "1 2; 3"), 2, ("rows of 1 and of 2 numbers",)),
    "from a ragged file": ((*CHOSEN, "--from", "ragged.csv"), 2, ("ragged.csv", "rows of 2 and of 3 numbers")),
    "from a file of words": ((*CHOSEN, "--from", "words.csv"), 2, ("row 2 of words.csv", "not a number")),
    "from an empty file": ((*CHOSEN, "--from", "empty.csv"), 2, ("empty.csv", "no numbers")),
    "from nothing": ((*CHOSEN, "--from", ""), 2, ("no numbers",)),
    "from a folder": ((*CHOSEN, "--from", "folder"), 2, ("neither a file that exists",)),
    "from nan": ((*CHOSEN, "--from", "nan 0; 0 1"), 2, ("NaN",)),
    "from too long a line": ((*CHOSEN, "--from", LONG), 2, ("…', is too large", "at most 2,000")),
    "equal keys": (
        ("average", "--chosen", "1", "--from", "1 0; 0 1; 1 0"),
        1,
        ("Counting keys from 0", "Keys 0 and 2 are equal"),  # construct.py counts from 0
    ),
    # ------------------------------------------------------------------------------------- extract
    "subspaces that meet": (("extract", "1 0 0; 0 1 0", "1 1 0"), 1, ("spans of A and B meet", "share only 0")),
    "subspaces that must meet": (("extract", "1 0; 0 1", "1 1"), 1, ("always meet",)),
    "no subspace": (("extract", "0 0 0", "1 0 0"), 1, ("zero",)),
    "one basis": (("extract", "1 0"), 2, ("One basis is given",)),
    "bases of two lengths": (("extract", "1 0", "1 0 0"), 2, ("2 numbers", "3")),
    "basis in words": (("extract", "one", "1 0"), 2, ("A is 'one'",)),
    # ------------------------------------------------------------------------------------- design
    "unknown component": (("design", "a, b", "1=z"), 2, ("component 'z'", "a and b")),
    "wish for token 9": (("design", "a, b", "9=a"), 2, ("no token 9", "1 to 2")),
    "wish without a token": (("design", "a, b", "a"), 2, ("names no token",)),
    "two wishes": (("design", "a, b", "1=a, 1=b"), 2, ("Token 1 has two wishes",)),
    "no tokens": (("design", "", "1=a"), 2, ("No tokens are given",)),
    "no wishes": (("design", "a", ""), 2, ("No wishes are given",)),
    "an empty token": (("design", "a,,b", "1=a"), 2, ("Token 2 is empty",)),
    "tokens in prose": (("design", "a b c", "1=a"), 2, ("Token 1 is 'a b c'",)),
    "looks nonsense": (("design", "a, b", "1=b", "--looks", "nonsense"), 2, ("--looks is 'nonsense'", "1=3, 2=1+3")),
    "looks of two tokens": (("design", "a, b", "1=b", "--looks", "1+2=1"), 2, ("--looks is '1+2=1'",)),
    "looks nowhere": (("design", "a, b", "1=b", "--looks", "1="), 2, ("--looks is '1='",)),
    "no looks": (("design", "a, b", "1=b", "--looks", ""), 2, ("--looks is ''",)),
    "looks twice": (("design", "a, b", "1=b", "--looks", "1=2, 1=1"), 2, ("twice", "token 1")),
    "looks without a wish": (("design", "a, b", "1=b", "--looks", "2=1"), 2, ("token 2", "no wish")),
    "looks at token 3": (("design", "a, b", "1=b", "--looks", "1=3"), 2, ("names 3", "from 1 to 2")),
    "design, beta 0": (("design", "--beta", "0"), 2, ("--beta is 0", "0.001 to 1000")),
    "design, beta nan": (("design", "--beta", "nan"), 2, ("--beta is nan",)),
    "design, beta 1e200": (("design", "--beta", "1e200"), 2, ("--beta is 1e+200",)),
    # ------------------------------------------------------------------------------------- induction and inspect
    "no words": (("induction", ""), 2, ("no words",)),
    "sharpness nan": (("induction", "--sharpness", "nan"), 2, ("--sharpness is nan",)),
    "sharpness 0": (("induction", "--sharpness", "0"), 2, ("--sharpness is 0", "above 0")),
    "sharpness -1": (("induction", "--sharpness", "-1"), 2, ("--sharpness is -1",)),
    "too many words": (("induction", "a " * 2000), 2, ("2000", "1500")),
    "no such run": (("inspect", "nowhere", "--on", "words.csv"), 1, ("nowhere is not a run",)),
    "run without text": (("inspect", "nowhere"), 2, ("No text is named", "nowhere", "--on FILE")),
    "text without run": (("inspect", "--on", "words.csv"), 2, ("--on is the text for a RUN",)),
    "texts 1": (("inspect", "--texts", "1"), 2, ("--texts is 1", "from 2 to 4,096")),
    "steps 0": (("inspect", "--steps", "0"), 2, ("steps is 0", "from 1")),
    "key-noise -1": (("inspect", "--key-noise", "-1"), 2, ("--key-noise is -1",)),
    "key-noise nan": (("inspect", "--key-noise", "nan"), 2, ("--key-noise is nan",)),
    "length without run": (("inspect", "--length", "9"), 2, ("--length plays no part with the small model",)),
    "steps with run": (("inspect", "nowhere", "--steps", "9", "--on", "words.csv"), 2, ("--steps plays no part",)),
    "length 2": (("inspect", "nowhere", "--length", "2", "--on", "words.csv"), 2, ("2 tokens", "at least 3")),
    "inspect, seed -1": (("inspect", "--seed", "-1"), 2, ("--seed is -1",)),
    # ------------------------------------------------------------------------------------- where pages go
    "one file for two": (("copy", "--html", "y", "--svg", "./y"), 2, ("--html and --svg are both 'y'",)),
    "page without a name": (("copy", "--html", ""), 2, ("--html is ''",)),
    "page that is a folder": (("extract", "--svg", "folder"), 2, ("--svg is 'folder'",)),
    "hostile names": (("average", "--chosen", "\x1b[31m\u202e"), 2, ("\\x1b",)),
} | {f"{command} into no folder": ((command, "--html", "no/y.html"), 2, ("'no/y.html'",)) for command in COMMANDS}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_sentence_and_writes_nothing(
    case: str, run: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*_: object, **__: object) -> None:
        raise AssertionError("the work was begun")

    monkeypatch.setattr("inkling.recipes.inspection.train_induction", too_late)
    (here / "ragged.csv").write_text("1,2\n3,4,5\n", encoding="utf-8")
    (here / "words.csv").write_text("1,2\nthree,4\n", encoding="utf-8")
    (here / "empty.csv").write_text("\n \n", encoding="utf-8")
    (here / "folder").mkdir()
    before = sorted(here.rglob("*"))
    arguments, code, fragments = BAD[case]
    assert run(*arguments, code=code) == ""
    sentence = check_sentence(run.notes)
    assert len(sentence) < 400
    for fragment in fragments:
        assert fragment in sentence
    assert sorted(here.rglob("*")) == before


def test_options_and_their_defaults_are_in_the_help(run: Cli) -> None:
    for command in COMMANDS:
        words = " ".join(run(command, "--help").split())
        for option in ("--html", "--svg", "--json"):
            assert option in words
    words = " ".join(run("heads", "--help").split())
    assert "[default: 10]" in words
    assert "[default: as many as keys]" in words


def test_many_orthonormal_keys_answer_in_bounded_memory(run: Cli) -> None:
    found = run.json("copy", "--keys", "2000", "--beta", "10", "--samples", "200")
    weight = found["exact"]["heads"][0]["mean_weights"][0]
    assert weight == pytest.approx(math.exp(10) / (math.exp(10) + 1999), rel=1e-9)


def test_infinite_margins_are_null_in_json(run: Cli) -> None:
    (head,) = run.json("copy", "--keys", "1", *FEW)["exact"]["heads"]
    assert head["margin"] is None
    assert head["mean_weights"] == pytest.approx([1.0])
