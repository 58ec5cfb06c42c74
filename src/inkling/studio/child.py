"""`python -m inkling.studio.child JOB`: one job of the studio in a process of its own, within limits.

Gets JSON on standard input; says JSON lines on standard output (see `work.py`). A job is a function from its arguments
and `say(done, sentence)` to something that JSON can hold; it lives in a module `tasks_….py` beside this one. One whose
result comes in parts hands each over as the third argument of `say`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

JOBS = {
    "look-at-file": "tasks_files:look_at_file",
    "ruler": "tasks_compare:ruler",
    "mistakes": "tasks_classify:mistakes",
    "experiment": "tasks_attention:experiment",
    "census": "tasks_attention:census",
    "order": "tasks_attention:order",
    "answers": "tasks_knowledge:answers",
    "lines-about": "tasks_knowledge:lines_about",
    "claim": "tasks_claims:claim",
}
MOST_MEMORY_BYTES = 12 << 30  # of addresses; what is used is far less
MOST_SECONDS = 3600  # of CPU
TIGHTER = {"look-at-file": (3 << 30, 60)}  # a file of a few megabytes can unpack to a line of many gigabytes


def main(job: str) -> int:
    if job in TIGHTER:
        os.environ["POLARS_MAX_THREADS"] = "2"  # each takes addresses
    _limit(*TIGHTER.get(job, (MOST_MEMORY_BYTES, MOST_SECONDS)))
    put = _only_way_out()

    def say(done: float | None, sentence: str, part: Any = None) -> None:
        put({"done": done, "say": sentence} if part is None else {"part": part})

    from inkling.errors import InklingError

    try:
        module, name = JOBS[job].split(":")
        function: Callable[[Any, Callable[[float | None, str], None]], Any]
        function = getattr(import_module(f"inkling.studio.{module}"), name)
        put({"result": function(json.load(sys.stdin), say)})
    except InklingError as error:
        put({"error": str(error)})
    except MemoryError:
        put({"error": "There is not enough memory for this; give less at once."})
    return 0


def _only_way_out() -> Callable[[Any], None]:
    """A function that writes a JSON line to standard output, which nothing else reaches from now on."""
    from inkling.runs.files import finite

    out, sys.stdout = sys.stdout, sys.stderr

    def put(message: Any) -> None:
        out.write(json.dumps(finite(message)) + "\n")
        out.flush()

    return put


def _limit(memory_bytes: int, seconds: int) -> None:
    """Memory and time, where the system can."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
