"""`inkling attention …`: the laboratory. Exact and simulated, constructed, and found in a trained model."""

from __future__ import annotations

import math
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from inkling.attention.orders import read_whole_numbers
from inkling.cli.numbers import MOST_VECTORS, read_vectors
from inkling.cli.options import Json, check_seed, print_json

if TYPE_CHECKING:
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
    check_pages(html, svg)
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
        vectors = read_vectors("--from", given)
    else:
        _check_size(keys, dimension, coherence, MOST_VECTORS)
        generator = np.random.default_rng((seed, 1))
        vectors = coherent(keys, dimension or keys, coherence, generator) if coherence else orthonormal(keys, dimension)
    numbers = [number - 1 for number in read_whole_numbers("--chosen", chosen, len(vectors))]
    try:
        if error is not None:
            found = construct.average(vectors, numbers, error=error)
        else:
            found = construct.average(vectors, numbers, beta=_beta(beta, t))
    except UsageError:
        raise
    except InklingError as failure:
        raise InklingError(f"Counting keys from 0, as Python does: {failure}") from failure
    show(found, html, svg, json)


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
    one back and heads that do induction. A run of `inkling train gpt` has heads, too: name it, and with --on the text
    to watch them on. Models of `inkling train bigram`, ngram, gru and dan have none.

    \b
    Examples:
      inkling attention inspect --html heads.html
      inkling attention inspect --seed 3 --json
      inkling attention inspect --steps 50                   the same model before it has learned
    """
    from inkling.errors import UsageError
    from inkling.report.terminal import progress

    check_pages(html, svg)
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
    show(found, html, svg, json)


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
    check_pages(html, svg)
    check_seed(seed)
    sharpness = _beta(beta, t)
    _check_size(keys, dimension, coherence, MOST_ORTHONORMAL)
    from inkling.attention.exhibits import integrals
    from inkling.attention.laboratory import Setting, experiment
    from inkling.report.terminal import progress

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
    pages = not json or html is not None or svg is not None
    with progress(integrals(setting, pages), "Integrals", "integrals") as bar:
        bar.update(0)
        done = count(1)
        found = experiment(setting, samples, on_integral=lambda: bar.update(next(done)))
        page = found.page(lambda: bar.update(next(done))) if pages else None
    show(found, html, svg, json, page)


def show(found: Shown, html: str | None, svg: str | None, json: bool, page: Page | None = None) -> None:
    """On the terminal and in files; `page` where it was made already."""
    from inkling.figures import Prose, Table
    from inkling.report.page import save, write
    from inkling.report.terminal import notice, print_page

    if json and html is None and svg is None:
        print_json(found.to_json())
        return
    page = page or found.page()
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


def check_pages(html: str | None, svg: str | None) -> None:
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
