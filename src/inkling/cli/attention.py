"""`inkling attention …`: the laboratory. Exact and simulated, constructed, and found in a trained model."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from inkling.cli.options import Json, check_seed, print_json

if TYPE_CHECKING:
    from inkling.attention.arrays import Floats
    from inkling.attention.laboratory import Kind
    from inkling.figures import Page

app = typer.Typer(
    help="""Understand attention completely: what n keys and a query give, exactly and simulated; K, Q and V made to
    order; what the heads of a trained model do.

    Keys and tokens are counted from 1. JSON repeats settings as they were given, and counts from 0 in what was found,
    as Python does.

    \b
    Examples:
      inkling attention copy --keys 20 --beta 1              alignment alone is not enough
      inkling attention noise --keys 20 --beta 10            one head swings between two values
      inkling attention heads --keys 20 --beta 10 --noise 0.5 --html heads.html
      inkling attention design "d+b, a, c+b" "1=b-c, 2=b"    K, Q and V for what tokens should output
      inkling attention inspect                              train a small model, and look into its heads
    """,
    no_args_is_help=True,
    rich_markup_mode=None,
)

Keys = Annotated[int, typer.Option(help="Number of keys, n.")]
Beta = Annotated[
    float | None,
    typer.Option(help="How sharp queries are: q = β times the means of the keys looked at. [default: 10]"),
]
T = Annotated[float | None, typer.Option("--t", help="Give β as its exponential: β = ln t.")]
Noise = Annotated[float, typer.Option(help="Variance of key a along its own mean: the ½ in αI + ½μμᵀ.")]
Alpha = Annotated[float, typer.Option(help="Variance α of every key in every direction.")]
Dimension = Annotated[int | None, typer.Option(help="Dimensions of keys. [default: as many as keys]")]
Coherence = Annotated[
    float, typer.Option(help="Largest |cosine| between the means of two keys, which are random then; 0: orthonormal.")
]
Scaled = Annotated[bool, typer.Option(help="Divide scores by √d, as transformers do.")]
KeyA = Annotated[int, typer.Option("--a", help="Number of key a.")]
KeyB = Annotated[int, typer.Option("--b", help="Number of key b.")]
Samples = Annotated[int, typer.Option(help="Draws of all keys.")]
SeedOption = Annotated[int, typer.Option(help="Of the draws.")]
Html = Annotated[str | None, typer.Option(help="Also write a page with pictures that stands alone.")]
Svg = Annotated[str | None, typer.Option(help="Also write the pictures alone, under each other.")]

SAMPLES = 200_000
BETA = 10.0
MOST_ORTHONORMAL = 5000  # keys, of as many dimensions: a gigabyte
MOST_COHERENT = 1000  # keys, and dimensions, that are moved about until their cosines are right
MOST_VECTORS = 2000  # of as many numbers, that a query or a matrix is solved for: seconds
MOST_BYTES = 100_000_000  # of a file of vectors


class Shown(Protocol):
    def page(self) -> Page: ...
    def to_json(self) -> dict[str, Any]: ...


@app.command()
def copy(
    keys: Keys = 20,
    beta: Beta = None,
    t: T = None,
    noise: Noise = 0.0,
    alpha: Alpha = 0.0,
    dimension: Dimension = None,
    coherence: Coherence = 0.0,
    scaled: Scaled = False,
    a: KeyA = 1,
    samples: Samples = SAMPLES,
    seed: SeedOption = 0,
    html: Html = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """One head looks at one key, q = βμ_a: how much of v_a arrives, and what its margin guarantees.

    \b
    Examples:
      inkling attention copy --keys 20 --beta 1
      inkling attention copy --keys 1000 --beta 10 --html copy.html
      inkling attention copy --keys 64 --dimension 64 --scaled --beta 80 --alpha 0.01
    """
    _experiment(
        "copy", keys, beta, t, noise, alpha, dimension, coherence, scaled, a, 0, False, samples, seed, html, svg, json
    )


@app.command()
def average(
    context: typer.Context,
    keys: Keys = 20,
    beta: Beta = None,
    t: T = None,
    noise: Noise = 0.0,
    alpha: Alpha = 0.0,
    dimension: Dimension = None,
    coherence: Coherence = 0.0,
    scaled: Scaled = False,
    a: KeyA = 1,
    b: KeyB = 2,
    chosen: Annotated[
        str | None, typer.Option(help="Build the query that averages these keys instead, such as 1,4,7.")
    ] = None,
    error: Annotated[
        float | None, typer.Option(help="With --chosen: weight that may leak to others; finds β for it.")
    ] = None,
    given: Annotated[
        str | None, typer.Option("--from", help="With --chosen: your keys, a row each; a file, or '1 0; 1 1'.")
    ] = None,
    samples: Samples = SAMPLES,
    seed: SeedOption = 0,
    html: Html = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """One head looks at two keys, q = β(μ_a+μ_b), and gives half of each value; or the query for any set of any keys.

    \b
    Examples:
      inkling attention average --keys 20 --t 1000
      inkling attention average --keys 20 --beta 10 --alpha 0.001 --html average.html
      inkling attention average --keys 20 --chosen 1,4,7 --error 0.01
      inkling attention average --chosen 1,3 --from "1 0 0; 0 1 0; 1 1 1" --beta 8

    A file for --from has a key a row, its numbers separated by commas or spaces.
    """
    from inkling.errors import InklingError, UsageError

    if chosen is None:
        for flag, value in (("--error", error), ("--from", given)):
            if value is not None:
                raise UsageError(f"{flag} goes with --chosen; say which keys are to be averaged, such as --chosen 1,2.")
        _experiment(
            "average",
            *(keys, beta, t, noise, alpha, dimension, coherence, scaled, a, b, False, samples, seed, html, svg, json),
        )
        return
    _check_pages(html, svg)
    check_seed(seed)
    _refuse(
        context, "--chosen, which builds a query for keys as given", "noise", "alpha", "scaled", "a", "b", "samples"
    )
    if given is not None:
        _refuse(context, "--from, which has the keys", "keys", "dimension", "coherence")
    if error is not None:
        _refuse(context, "--error, which finds β", "beta", "t")
        if not 0 < error < 1:
            raise UsageError(f"--error is {error:g}; give the weight that may leak, between 0 and 1.")
    elif not 0 <= _beta(beta, t) < math.inf:
        raise UsageError(f"β is {_beta(beta, t):g}; give a finite number of at least 0, to look at the chosen keys.")
    import numpy as np

    from inkling.attention import construct
    from inkling.attention.case import coherent, orthonormal

    if given is not None:
        vectors = _vectors("--from", given)
    else:
        _check_size(keys, dimension, coherence, MOST_VECTORS)
        generator = np.random.default_rng((seed, 1))
        vectors = coherent(keys, dimension or keys, coherence, generator) if coherence else orthonormal(keys, dimension)
    numbers = [number - 1 for number in _whole_numbers("--chosen", chosen, len(vectors))]
    try:
        if error is not None:
            found = construct.average(vectors, numbers, error=error)
        else:
            found = construct.average(vectors, numbers, beta=_beta(beta, t))
    except UsageError:
        raise
    except InklingError as failure:
        raise InklingError(f"Counting keys from 0, as Python does: {failure}") from failure
    _show(found, html, svg, json)


@app.command()
def noise(
    keys: Keys = 20,
    beta: Beta = None,
    t: T = None,
    noise: Noise = 0.5,
    alpha: Alpha = 0.0,
    dimension: Dimension = None,
    coherence: Coherence = 0.0,
    scaled: Scaled = False,
    a: KeyA = 1,
    b: KeyB = 2,
    samples: Samples = SAMPLES,
    seed: SeedOption = 0,
    html: Html = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """One head looks at two keys, one of them uncertain in length: the output swings between v_a and v_b.

    \b
    Examples:
      inkling attention noise --keys 20 --beta 10
      inkling attention noise --noise 0.1 --alpha 0.0001 --html noise.html
    """
    _experiment(
        "noise", keys, beta, t, noise, alpha, dimension, coherence, scaled, a, b, False, samples, seed, html, svg, json
    )


@app.command()
def heads(
    keys: Keys = 20,
    beta: Beta = None,
    t: T = None,
    noise: Noise = 0.5,
    alpha: Alpha = 0.0,
    same: Annotated[bool, typer.Option(help="Give both heads the query β(μ_a+μ_b) of one.")] = False,
    dimension: Dimension = None,
    coherence: Coherence = 0.0,
    scaled: Scaled = False,
    a: KeyA = 1,
    b: KeyB = 2,
    samples: Samples = SAMPLES,
    seed: SeedOption = 0,
    html: Html = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """Two heads, one key each: the output holds still, unless head 1 loses its key; how often that happens.

    \b
    Examples:
      inkling attention heads --keys 20 --beta 10 --noise 0.5 --html heads.html
      inkling attention heads --keys 100 --beta 10 --alpha 0.01
      inkling attention heads --same
    """
    _experiment(
        "heads", keys, beta, t, noise, alpha, dimension, coherence, scaled, a, b, same, samples, seed, html, svg, json
    )


@app.command()
def extract(
    first: Annotated[str | None, typer.Argument(metavar="[A]", help="Basis of A, a vector a row.")] = None,
    second: Annotated[str | None, typer.Argument(metavar="[B]", help="Basis of B.")] = None,
    seed: Annotated[int, typer.Option(help="Of random bases, when none are given.")] = 0,
    html: Html = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """The matrix that reads v_a out of v_a + v_b, for v_a in the span of A and v_b in that of B.

    A basis is a file (numbers separated by commas or spaces, a vector a row) or the numbers themselves, with ; between
    vectors; these vectors are the columns of A and B. Without any, two random planes in five dimensions are taken.

    \b
    Examples:
      inkling attention extract "1 0 0; 0 1 0" "0 0 1"
      inkling attention extract "1 0 0" "1 1 0" --html extract.html
      inkling attention extract
    """
    import numpy as np

    from inkling.attention import construct
    from inkling.errors import UsageError

    _check_pages(html, svg)
    check_seed(seed)
    if (first is None) != (second is None):
        raise UsageError("One basis is given; give two, A and B, or none to see an example.")
    if first is None or second is None:
        generator = np.random.default_rng(seed)
        A, B = generator.normal(size=(2, 5)), generator.normal(size=(2, 5))
    else:
        A, B = _vectors("A", first), _vectors("B", second)
    _show(construct.extract(A.T, B.T), html, svg, json)


@app.command()
def design(
    tokens: Annotated[
        str, typer.Argument(help="What tokens are made of: components joined by + and −, tokens by commas.")
    ] = "d+b, a, c+b",
    wishes: Annotated[
        str, typer.Argument(help="What tokens should output, by their number: '1=b-c, 2=b'.")
    ] = "1=b-c, 2=b",
    beta: Annotated[float, typer.Option(help="Length of each component; the scores that are made are β².")] = 3.0,
    looks: Annotated[
        str | None, typer.Option(help="Where tokens must look, such as '1=3, 2=1+3'. [default: searched]")
    ] = None,
    linear: Annotated[
        bool, typer.Option(help="Let V be any linear map, which may make one component out of another.")
    ] = False,
    html: Html = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """Build K, Q and V of self-attention, so that tokens output what you wish; or say why it cannot be done.

    Tokens are sums of orthogonal components that you name. By default V may weigh components, not make one out of
    another. It is also said whether K = Q = V = I could do it, with a proof if not.

    \b
    Examples:
      inkling attention design "d+b, a, c+b" "1=b-c, 2=b"
      inkling attention design "a+x, b+y, c" "3=x+y" --html design.html
      inkling attention design "a, b" "1=3b" --looks "1=2"
      inkling attention design "a, a" "1=a, 2=2a"            equal tokens, different wishes
    """
    import numpy as np

    from inkling.attention import design as designs
    from inkling.attention.hull import identity_verdict
    from inkling.attention.wishes import parse_tokens, parse_wishes
    from inkling.errors import UsageError

    _check_pages(html, svg)
    if not 1e-3 <= beta <= 1e3:
        raise UsageError(f"--beta is {beta:g}; give a number from 0.001 to 1000.")
    names, inputs = parse_tokens(tokens)
    wanted = parse_wishes(wishes, names, len(inputs))
    fixed = None if looks is None else _looks(looks, len(inputs), wanted)
    components = beta * np.eye(len(names))
    found = designs.design(
        components,
        inputs,
        wanted,
        beta**2,
        names,
        looks=fixed,
        values="linear" if linear else "components",
    )
    titles = [f"token {i + 1}" for i in range(len(inputs))]
    plain = [identity_verdict(inputs @ components, wanted[i] @ components, i, names=titles) for i in sorted(wanted)]
    _show(_WithIdentity(found, plain), html, svg, json)


class _WithIdentity:
    """A design, and what K = Q = V = I would do for each of its wishes."""

    def __init__(self, found: Any, plain: Sequence[Any]) -> None:
        self.found, self.plain = found, plain

    def page(self) -> Page:
        from inkling.figures import Page, Prose

        page = self.found.page()
        said = "\n\n".join(verdict.sentence for verdict in self.plain)
        return Page(page.title, (*page.exhibits, Prose(said, "And with K = Q = V = I?")))

    def to_json(self) -> dict[str, Any]:
        return {**self.found.to_json(), "identity": [verdict.to_json() for verdict in self.plain]}


@app.command()
def induction(
    words: Annotated[str, typer.Argument(help="A text; words are separated by spaces.")] = "the cat sat on the",
    sharpness: Annotated[float, typer.Option(help="By how much a wanted score leads.")] = 40.0,
    html: Html = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """Two constructed layers that do induction: where the present word stood before, what followed it?

    The first layer tells each place what stood before it, the second looks where that is the present word.

    \b
    Examples:
      inkling attention induction "A B C A B"
      inkling attention induction "the cat sat on the" --html induction.html
    """
    from inkling.attention.induction import Induction
    from inkling.errors import UsageError

    _check_pages(html, svg)
    given = words.split()
    if not given:
        raise UsageError("The text has no words; give a few, some of them twice.")
    if not 0 < sharpness < math.inf:
        raise UsageError(f"--sharpness is {sharpness:g}; give a finite number above 0.")
    _show(Induction(tuple(dict.fromkeys(given)), len(given), sharpness).run(given), html, svg, json)


@app.command()
def inspect(
    context: typer.Context,
    run: Annotated[
        str | None,
        typer.Argument(help="A run whose model has attention heads. [default: a small model, trained now]"),
    ] = None,
    on: Annotated[list[str] | None, typer.Option(help="Text to watch the heads of RUN on: files, folders, -.")] = None,
    texts: Annotated[int, typer.Option(help="Texts, or with RUN windows of text, that heads are watched on.")] = 64,
    length: Annotated[int, typer.Option(help="Tokens of a window of text, with RUN.")] = 64,
    steps: Annotated[int, typer.Option(help="Training steps of the small model.")] = 500,
    key_noise: Annotated[float, typer.Option(help="Noise on keys, as a share of their length.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Of the small model and its texts, and of the noise on keys.")] = 0,
    html: Html = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """What every head of a trained model does: where it looks, how sharply, and what is lost without it.

    Without RUN, a two-layer model is trained on repeated random stretches (ten seconds), which grows heads that look
    one back and heads that do induction. Models of `inkling train bigram`, ngram, gru and dan have no heads.

    \b
    Examples:
      inkling attention inspect --html heads.html
      inkling attention inspect --seed 3 --json
      inkling attention inspect --steps 50                   the same model before it has learned
    """
    from inkling.errors import UsageError
    from inkling.report.terminal import progress

    _check_pages(html, svg)
    check_seed(seed)
    if not 2 <= texts <= 4096:
        raise UsageError(f"--texts is {texts}; give a whole number from 2 to 4,096.")
    if not 0 <= key_noise < math.inf:
        raise UsageError(f"--key-noise is {key_noise:g}; give a share of the keys' length, 0 or more.")
    if run is None:
        _refuse(context, "the small model, whose texts have a length of their own", "length")
        if on:
            raise UsageError("--on is the text for a RUN, and none is named; leave it out to inspect the small model.")
        from inkling.recipes.inspection import inspect_small

        with progress(steps, "Training", "steps") as bar:
            found = inspect_small(
                seed, texts, steps, key_noise, lambda step: bar.update(step.step, nats=step.nats / step.tokens)
            )
    else:
        _refuse(context, "RUN, which is trained already", "steps")
        if not on:
            raise UsageError(f"No text is named to watch the heads of {run} on; add --on FILE.")
        from inkling.recipes.inspection import inspect_run

        found = inspect_run(run, on, texts, length, key_noise, seed)
    _show(found, html, svg, json)


def _experiment(
    kind: Kind,
    keys: int,
    beta: float | None,
    t: float | None,
    noise: float,
    alpha: float,
    dimension: int | None,
    coherence: float,
    scaled: bool,
    a: int,
    b: int,
    same: bool,
    samples: int,
    seed: int,
    html: str | None,
    svg: str | None,
    json: bool,
) -> None:
    _check_pages(html, svg)
    check_seed(seed)
    sharpness = _beta(beta, t)
    _check_size(keys, dimension, coherence, MOST_ORTHONORMAL)
    from inkling.attention.laboratory import Setting, experiment

    setting = Setting(
        kind,
        keys=keys,
        beta=sharpness,
        alpha=alpha,
        noise=noise,
        a=a - 1,
        b=b - 1,
        dimension=dimension,
        coherence=coherence,
        scaled=scaled,
        same=same,
        seed=seed,
    )
    _show(experiment(setting, samples), html, svg, json)


def _show(found: Shown, html: str | None, svg: str | None, json: bool) -> None:
    from inkling.figures import Prose, Table
    from inkling.report.page import save, write
    from inkling.report.terminal import notice, print_page

    page = found.page()
    if html is not None:
        write(page, Path(html))
        notice(f"Wrote {html}.")
    if svg is not None:
        from inkling.pictures.drawing import stacked

        save(stacked(page.title, [each for each in page.exhibits if not isinstance(each, Table | Prose)]), Path(svg))
        notice(f"Wrote {svg}.")
    if json:
        print_json(found.to_json())
    else:
        print_page(page)


def _check_pages(html: str | None, svg: str | None) -> None:
    """Before the work: a page that cannot be written is noticed now."""
    from inkling.errors import UsageError

    for flag, name in (("--html", html), ("--svg", svg)):
        if name is not None and (Path(name).is_dir() or not Path(name).parent.is_dir()):
            raise UsageError(f"{flag} is '{name}', which cannot be written; name a file in a folder that exists.")
    if html is not None and svg is not None and Path(html).resolve() == Path(svg).resolve():
        raise UsageError(f"--html and --svg are both '{html}', and one would overwrite the other; give two names.")


def _check_size(keys: int, dimension: int | None, coherence: float, most: int) -> None:
    """Refuses what would take minutes or gigabytes."""
    from inkling.errors import UsageError

    if coherence and max(keys, dimension or keys) > MOST_COHERENT:
        raise UsageError(
            f"{keys} keys of {dimension or keys} dimensions are too many for --coherence, which compares each with "
            f"each, again and again; give at most {MOST_COHERENT:,} of both."
        )
    if not coherence and keys > most:
        raise UsageError(
            f"--keys is {keys}, and orthonormal keys have as many dimensions; give at most {most:,} keys here."
        )


def _refuse(context: typer.Context, what: str, *options: str) -> None:
    """Options that would be ignored are not accepted."""
    from inkling.errors import UsageError

    for option in options:
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"--{option.replace('_', '-')} plays no part with {what}; leave it out.")


def _beta(beta: float | None, t: float | None) -> float:
    from inkling.errors import UsageError

    if t is None:
        return BETA if beta is None else beta
    if beta is not None:
        raise UsageError("--beta and --t are both given, and β = ln t; give one of them.")
    if not 0 < t < math.inf:
        raise UsageError(f"--t is {t:g}; give a number above 0, as β = ln t.")
    return math.log(t)


def _vectors(flag: str, given: str) -> Floats:
    """Rows of numbers from a file, or written out with ; between rows."""
    import numpy as np

    from inkling.errors import InklingError, UsageError

    path = Path(given)
    try:
        is_file = path.is_file()
    except OSError:  # a name that no file can have
        is_file = False
    shown = given if len(given) <= 80 else f"{given[:80]}…"
    if is_file:
        if path.stat().st_size > MOST_BYTES:
            raise InklingError(f"{shown} has more than 100 MB; give a smaller matrix.")
        rows = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    else:
        rows = given.split(";")
    found: list[list[float]] = []
    for number, row in enumerate(rows, start=1):
        cells = row.replace(",", " ").split()
        if not cells:
            continue
        try:
            found.append([float(cell) for cell in cells])
        except ValueError:
            if is_file:
                raise UsageError(f"In row {number} of {shown} something is not a number; give numbers.") from None
            raise UsageError(
                f"{flag} is '{shown}', which is neither a file that exists nor numbers; give one of these, with ; "
                "between vectors that are written out."
            ) from None
        if max(len(found), len(cells)) > MOST_VECTORS:
            raise UsageError(f"{flag}, '{shown}', is too large; give at most {MOST_VECTORS:,} vectors and dimensions.")
    if not found or len({len(row) for row in found}) > 1:
        lengths = sorted({len(row) for row in found})
        said = f"has rows of {lengths[0]} and of {lengths[-1]} numbers" if found else "has no numbers"
        raise UsageError(f"{flag}, '{shown}', {said}; give vectors of one length.")
    return np.array(found)


def _whole_numbers(flag: str, given: str, most: int, example: str = "1,4,7") -> list[int]:
    from inkling.errors import UsageError

    try:
        found = [int(part) for part in given.replace("+", ",").split(",")]
    except ValueError:
        raise UsageError(f"{flag} is '{given}'; give whole numbers, such as {example}.") from None
    for number in found:
        if not 1 <= number <= most:
            raise UsageError(f"{flag} names {number}; give numbers from 1 to {most}.")
        if found.count(number) > 1:
            raise UsageError(f"{flag} names {number} twice; give each once.")
    return found


def _looks(given: str, tokens: int, wishing: Container[int]) -> dict[int, tuple[int, ...]]:
    """'1=3, 2=1+3' → {0: (2,), 1: (0, 2)}."""
    from inkling.errors import UsageError

    found: dict[int, tuple[int, ...]] = {}
    for part in given.split(","):
        token, equals, places = (side.strip() for side in part.partition("="))
        if not (token and equals and places) or "+" in token:
            raise UsageError(f"--looks is '{given}'; give token=tokens, such as '1=3, 2=1+3'.")
        (number,) = _whole_numbers("--looks", token, tokens, "'1=3, 2=1+3'")
        if number - 1 in found:
            raise UsageError(f"--looks says twice where token {number} looks; say it once, such as {number}=1+2.")
        if number - 1 not in wishing:
            raise UsageError(f"--looks says where token {number} looks, which has no wish; give it one.")
        seen = _whole_numbers("--looks", places, tokens, "'1=3, 2=1+3'")
        found[number - 1] = tuple(place - 1 for place in seen)
    return found
