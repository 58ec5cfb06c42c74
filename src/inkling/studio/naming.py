"""Files that came from people, called in sentences by the name they came with.

We name what is handed in ourselves (`intake`), so a sentence of the library about it has our name in it. That name is
sixteen random letters: it stands nowhere by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from inkling.errors import InklingError


def call(sentence: str, names: Mapping[str, str]) -> str:
    """`sentence` with the names of `names` (path → name) where it has paths, or the last part of them."""
    for path, name in names.items():
        sentence = sentence.replace(path, name).replace(Path(path).name, name)
    return sentence


@contextmanager
def calling(names: Mapping[str, str]) -> Iterator[None]:
    """The same for what is raised within."""
    try:
        yield
    except InklingError as error:
        raise InklingError(call(str(error), names)) from error
