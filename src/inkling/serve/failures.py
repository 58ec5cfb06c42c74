"""What a request is answered when something fails: always a sentence, and never what the code looks like inside."""

from __future__ import annotations

from inkling.errors import InklingError
from inkling.serve.bodies import Refusal
from inkling.serve.limits import Busy, TooLong


def refusal_of(failure: BaseException) -> Refusal:
    if isinstance(failure, Refusal):
        return failure
    if isinstance(failure, Busy):
        return Refusal(
            "The server has as much to do as it can; ask again a little later.",
            status=503,
            code="busy",
            retry=failure.seconds,
        )
    if isinstance(failure, TooLong):
        return Refusal("This took too long and was given up; ask for less at once.", status=504, code="too_long")
    if isinstance(failure, InklingError):
        return Refusal(str(failure))
    if isinstance(failure, MemoryError):
        return Refusal("There is not enough memory for this now; ask for less at once.", status=503, retry=5)
    return Refusal("Something went wrong inside the server; its log has more.", status=500)
