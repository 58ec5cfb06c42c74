"""What the server counts, in the text format that Prometheus reads (version 0.0.4).

Counted from the event loop alone but for steps, which a lock guards. Left out: labels from outside. A path that is not
ours is counted as "other", or who asks for many of them would fill the memory.
"""

from __future__ import annotations

import os
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """Counts of values up to each bound; and their sum."""

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: Mapping[str, str]) -> Iterable[str]:
        total = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            edge = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f"{name}_bucket{_labels({**labels, 'le': edge})} {total}"
        yield f"{name}_sum{_labels(labels)} {self.sum:.9g}"
        yield f"{name}_count{_labels(labels)} {total}"


class Metrics:
    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = {}
        self.seconds: dict[str, Histogram] = {}
        self.tokens: dict[tuple[str, str], int] = {}  # model and direction
        self.steps: dict[str, Histogram] = {}  # of each model, texts that were written together
        self.given_up = 0
        self.depths: dict[str, Callable[[], int]] = {}  # texts that wait, for each queue
        self.started = time.time()
        self._lock = Lock()

    def answered(self, path: str, status: int, seconds: float) -> None:
        self.requests[path, status] = self.requests.get((path, status), 0) + 1
        self.seconds.setdefault(path, Histogram(SECONDS)).add(seconds)

    def count_tokens(self, model: str, direction: str, tokens: int) -> None:
        self.tokens[model, direction] = self.tokens.get((model, direction), 0) + tokens

    def stepped(self, model: str) -> Callable[[int], None]:
        histogram = self.steps.setdefault(model, Histogram(SIZES))

        def add(size: int) -> None:
            with self._lock:
                histogram.add(size)

        return add

    def text(self) -> str:
        lines: list[str] = []

        def family(name: str, kind: str, about: str, samples: Iterable[str]) -> None:
            lines.extend((f"# HELP {name} {about}", f"# TYPE {name} {kind}", *samples))

        family(
            "inkling_requests_total",
            "counter",
            "Requests that were answered.",
            (
                f"inkling_requests_total{_labels({'path': path, 'status': str(status)})} {count}"
                for (path, status), count in sorted(self.requests.items())
            ),
        )
        family(
            "inkling_request_seconds",
            "histogram",
            "From the head of a request to the end of its answer.",
            (
                line
                for path, histogram in sorted(self.seconds.items())
                for line in histogram.lines("inkling_request_seconds", {"path": path})
            ),
        )
        family(
            "inkling_tokens_total",
            "counter",
            "Tokens that were read (in) and written (out).",
            (
                f"inkling_tokens_total{_labels({'model': model, 'direction': direction})} {count}"
                for (model, direction), count in sorted(self.tokens.items())
            ),
        )
        with self._lock:
            steps = [
                line
                for model, histogram in sorted(self.steps.items())
                for line in histogram.lines("inkling_batch_size", {"model": model})
            ]
        family("inkling_batch_size", "histogram", "Texts that one step of a model wrote together.", steps)
        family(
            "inkling_queue_depth",
            "gauge",
            "Texts that wait.",
            (f"inkling_queue_depth{_labels({'queue': name})} {depth()}" for name, depth in sorted(self.depths.items())),
        )
        family(
            "inkling_given_up_total",
            "counter",
            "Requests whose client went away before the answer.",
            [f"inkling_given_up_total {self.given_up}"],
        )
        family(
            "process_resident_memory_bytes",
            "gauge",
            "Memory that the server takes.",
            [f"process_resident_memory_bytes {resident_bytes()}"],
        )
        family(
            "process_start_time_seconds",
            "gauge",
            "When the server started, in seconds since 1970.",
            [f"process_start_time_seconds {self.started:.3f}"],
        )
        return "\n".join(lines) + "\n"


def resident_bytes() -> int:
    """Of this process now; where the system does not say, the most it ever was."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _labels(values: Mapping[str, str]) -> str:
    if not values:
        return ""
    quoted = (f'{name}="{_escape(value)}"' for name, value in values.items())
    return "{" + ",".join(quoted) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
