"""A page as a piece of HTML for a notebook: the same drawings as in the file, without a style sheet or a script.

Pictures bring their own white paper, so that they can be read in a dark notebook too.
"""

from __future__ import annotations

from inkling.figures import Exhibit, Page
from inkling.pictures.markup import escape_line, section


def notebook(page: Page) -> str:
    """All exhibits of a page, one under the other."""
    title = f"<h1>{escape_line(page.title)}</h1>\n" if page.title else ""
    return title + "\n".join(piece(exhibit) for exhibit in page.exhibits)


def piece(exhibit: Exhibit) -> str:
    """One exhibit, with its title and its reading."""
    return f"<section>\n{section(exhibit)}\n</section>"
