"""What the studio costs: CPU until the first page is painted, and the speed that a training loses while it is watched.

    python bench/studio.py                three pairs of trainings, alone and watched, one after the other
    python bench/studio.py --check        exits with 1 beyond the bounds

The server, and Chromium as the one who watches, run on the same cores as the training, and Chromium draws without a
graphics card: this is the worst case of a laptop. Trainings alternate, so that what else goes on falls on both sides.
First paint is that of the browser (first contentful paint); CPU is that of the server's process up to then. Updates are
counted in the page: changes of the figures beside the curve.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MOST_CPU_SECONDS = 3.0
LEAST_UPDATES = 5.0
MOST_LOSS = 0.05
COUNT = """() => {
  window.updates = 0;
  const seen = new MutationObserver(() => { window.updates += 1; });
  seen.observe(document.querySelector('.figures'), { subtree: true, childList: true, characterData: true });
}"""
ENDED = "() => !document.querySelector('[data-testid=figure-state]').textContent.includes('running')"
PAINTED = """() => performance.getEntriesByName('first-contentful-paint').length > 0
  && document.querySelector('.stage h1') !== null"""


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "inkling", *words]


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def opened(folder: Path) -> Iterator[tuple[str, int]]:
    """A studio: its address and its process."""
    words = command("studio", "--no-browser", "--port", "0", "--json")
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = ""
        while not said.rstrip().endswith("}"):
            said += process.stdout.readline()
        try:
            yield json.loads(said)["address"], process.pid
        finally:
            process.send_signal(signal.SIGINT)


def browser_cpu_seconds() -> float:
    """Of all processes of Chromium on this computer."""
    total = 0.0
    for found in Path("/proc").glob("[0-9]*"):
        try:
            if (found / "comm").read_text().startswith("chromium"):
                total += cpu_seconds(int(found.name))
        except OSError:
            continue
    return total


def train(folder: Path, name: str, steps: int, page: Any, server: int = 0) -> tuple[float, float]:
    """Steps a second of one training, and updates a second in the page (0 without one)."""
    words = command("train", "gpt", "world.txt", "--steps", str(steps), "--out", f"runs/{name}")
    words += ["--layers", "2", "--width", "128", "--context", "64", "--batch", "32"]
    watched = 0.0
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        if page is not None:
            page.locator("tr", has_text=name).first.wait_for(timeout=120_000)
            page.locator("tr", has_text=name).first.click()
            page.locator("[data-testid=figure-state]", has_text="running").wait_for(timeout=60_000)
            page.evaluate(COUNT)
            began, spent, drawn = time.monotonic(), cpu_seconds(server), browser_cpu_seconds()
            page.wait_for_function(ENDED, timeout=600_000)
            seconds = time.monotonic() - began
            spent, drawn = cpu_seconds(server) - spent, browser_cpu_seconds() - drawn
            print(f"CPU while watching: server {spent / seconds:.1%}, browser {drawn / seconds:.1%} of one core")
            watched = page.evaluate("() => window.updates") / seconds
        process.wait()
    rows = [json.loads(line) for line in (folder / f"runs/{name}/metrics.jsonl").read_text().splitlines()]
    first, last = rows[len(rows) // 10], rows[-1]  # the first steps warm up
    return (last["step"] - first["step"]) / (last["seconds"] - first["seconds"]), watched


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300, help="of each training")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is needed: install Debian's package `chromium`.")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        subprocess.run(command("data", "make", "text", "world.txt"), cwd=folder, check=True, stdout=subprocess.DEVNULL)
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        costs = []
        for _ in range(options.rounds):
            with opened(folder) as (address, process):
                page = browser.new_page()
                page.goto(address)
                page.wait_for_function(PAINTED)
                costs.append(cpu_seconds(process))
                page.close()
        print(f"CPU of the server until first paint: {', '.join(f'{cost:.2f}' for cost in costs)} s")

        alone, watched, updates = [], [], []
        for number in range(options.rounds):
            alone.append(train(folder, f"alone-{number}", options.steps, None)[0])
            with opened(folder) as (address, process):
                page = browser.new_page()
                page.goto(address)
                speed, rate = train(folder, f"watched-{number}", options.steps, page, process)
                page.close()
            watched.append(speed)
            updates.append(rate)
            print(f"round {number + 1}: alone {alone[-1]:.2f} steps/s, watched {speed:.2f}, {rate:.1f} updates/s")
        browser.close()
    loss = 1 - statistics.median(watched) / statistics.median(alone)
    print(f"loss of training speed while watched: {loss:+.1%} (medians of {options.rounds})")
    print(f"updates a second in the page: {min(updates):.1f} at least")
    bad = []
    if min(costs) >= MOST_CPU_SECONDS:
        bad.append(f"first paint takes {min(costs):.2f} s of CPU, wanted below {MOST_CPU_SECONDS:g}")
    if min(updates) < LEAST_UPDATES:
        bad.append(f"{min(updates):.1f} updates a second, wanted at least {LEAST_UPDATES:g}")
    if loss >= MOST_LOSS:
        bad.append(f"training loses {loss:.1%} of its speed, wanted below {MOST_LOSS:.0%}")
    for sentence in bad:
        print(f"BEYOND THE BOUND: {sentence}")
    return 1 if bad and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
