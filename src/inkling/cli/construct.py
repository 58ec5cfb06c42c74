"""`inkling attention extract | design | induction`: matrices made to order."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from inkling.cli.attention import Html, Svg, check_pages, show
from inkling.cli.attention import app as app
from inkling.cli.numbers import read_vectors
from inkling.cli.options import Json, check_seed


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

    check_pages(html, svg)
    check_seed(seed)
    if (first is None) != (second is None):
        raise UsageError("One basis is given; give two, A and B, or none to see an example.")
    if first is None or second is None:
        generator = np.random.default_rng(seed)
        A, B = generator.normal(size=(2, 5)), generator.normal(size=(2, 5))
    else:
        A, B = read_vectors("A", first), read_vectors("B", second)
    show(construct.extract(A.T, B.T), html, svg, json)


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
    from inkling.attention.orders import order

    check_pages(html, svg)
    show(order(tokens, wishes, beta, looks, linear), html, svg, json)


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

    check_pages(html, svg)
    given = words.split()
    if not given:
        raise UsageError("The text has no words; give a few, some of them twice.")
    if not 0 < sharpness < math.inf:
        raise UsageError(f"--sharpness is {sharpness:g}; give a finite number above 0.")
    show(Induction(tuple(dict.fromkeys(given)), len(given), sharpness).run(given), html, svg, json)
