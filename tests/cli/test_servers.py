from __future__ import annotations

import pytest

from inkling.cli.servers import needs
from inkling.errors import InklingError


def test_what_is_missing_is_named_with_the_extra_that_brings_it() -> None:
    needs("studio", "json")
    with pytest.raises(
        InklingError, match=r"This needs nicegui9; install it with `pip install 'inkling-lab\[studio\]'`"
    ):
        needs("studio", "json", "nicegui9")
