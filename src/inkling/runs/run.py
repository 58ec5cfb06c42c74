"""A run: one directory that loads alone.

    run.json              what was asked for (recipe, seed), versions, threads, fingerprint of the data, state, summary
    metrics.jsonl         one line per logged step
    config.json           the model's sizes            ┐
    model.safetensors     its weights                  │ of a finished run; before that, the newest
    tokenizer.json        its tokeniser                │ checkpoint holds the weights
    tokenizer_config.json                              │
    speller.safetensors   the spelling of unknown words┘
    README.md             a model card
    checkpoints/step-N/   model.safetensors, state.safetensors, state.json, manifest.json
    manifest.json         SHA-256 of all of the above, written last: its presence means finished

The directory appears in one step with a checkpoint of step 0 inside, so from its first moment on it loads.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from inkling.errors import InklingError, UsageError
from inkling.runs import files

CHECKPOINTS_KEPT = 2
REQUIRED = ("kind", "state", "started", "recipe", "normalise", "seed", "threads", "data", "versions")


@dataclass(frozen=True)
class Checkpoint:
    """The bytes of a checkpoint: weights for use, and all that is needed to go on."""

    step: int
    model: bytes
    state: bytes
    scalars: dict[str, Any]

    def files(self) -> dict[str, bytes]:
        content = {
            "model.safetensors": self.model,
            "state.safetensors": self.state,
            "state.json": json.dumps(self.scalars).encode(),
        }
        return {**content, files.MANIFEST: files.manifest_of(content)}


class Run:
    """A run directory that exists."""

    def __init__(self, path: Path, info: dict[str, Any]) -> None:
        self.path = path
        self.info = info

    # ------------------------------------------------------------------------------------------- making, finding

    @classmethod
    def create(
        cls, path: Path, *, info: Mapping[str, Any], constant: Mapping[str, bytes], checkpoint: Checkpoint
    ) -> Run:
        """Makes the directory with its unchanging files and a first checkpoint, in one step."""
        if path.exists():
            raise UsageError(f"{path} exists already; name another with --out, or remove it with `inkling runs rm`.")
        started = datetime.now(UTC).isoformat(timespec="seconds")
        full = {"format": 1, **info, "state": "running", "started": started, "versions": versions()}
        content = {"run.json": _json(full), "metrics.jsonl": b"", **constant}
        content |= {f"{_folder(checkpoint.step)}/{name}": data for name, data in checkpoint.files().items()}
        files.write_folder(path, content)
        return cls(path, full)

    @classmethod
    def open(cls, path: Path | str) -> Run:
        path = Path(path)
        try:
            info = json.loads((path / "run.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            near = [run.path.name for run in list_runs(path.parent)] if path.parent.is_dir() else []
            hint = f" (runs there: {', '.join(near[:5])})" if near else ""
            raise InklingError(
                f"{path} is not a run: it has no run.json{hint}; `inkling runs list` shows runs."
            ) from None
        except (OSError, ValueError) as error:
            raise InklingError(f"{path / 'run.json'} cannot be read ({error}); restore it or train anew.") from error
        if not isinstance(info, dict) or info.get("format") != 1:
            raise InklingError(f"{path} was written by another version of Inkling; open it with that one.")
        lacking = [key for key in REQUIRED if key not in info]
        if lacking:
            raise InklingError(
                f"{path / 'run.json'} has no '{lacking[0]}', so it is damaged; restore it or train anew."
            )
        return cls(path, info)

    # ------------------------------------------------------------------------------------------- state

    @property
    def kind(self) -> str:
        return str(self.info["kind"])

    @property
    def finished(self) -> bool:
        return (self.path / files.MANIFEST).exists()

    def update(self, **changes: Any) -> None:
        self.info |= changes
        files.write_file(self.path / "run.json", _json(self.info))

    # ------------------------------------------------------------------------------------------- metrics

    def metrics(self) -> list[dict[str, Any]]:
        """The logged steps; a last line cut short by a crash is left out."""
        rows = []
        for line in (self.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                break
        return rows

    def log(self, row: Mapping[str, Any]) -> None:
        with (self.path / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(files.finite(row)) + "\n")

    def rewind(self, step: int) -> None:
        """Forgets what was logged and saved after `step`, to go on from there: what was saved later is damaged."""
        kept = "".join(json.dumps(row) + "\n" for row in self.metrics() if row["step"] <= step)
        files.write_file(self.path / "metrics.jsonl", kept)
        for later in self.checkpoints():
            if later.name > Path(_folder(step)).name:
                shutil.rmtree(later, ignore_errors=True)

    # ------------------------------------------------------------------------------------------- checkpoints

    def save(self, checkpoint: Checkpoint) -> None:
        folder = self.path / _folder(checkpoint.step)
        if folder.exists():  # the same step was saved before an interruption: same bytes
            return
        files.write_folder(folder, checkpoint.files())
        for old in self.checkpoints()[:-CHECKPOINTS_KEPT]:
            shutil.rmtree(old, ignore_errors=True)

    def checkpoints(self) -> list[Path]:
        """Complete checkpoints, oldest first."""
        return sorted(p for p in (self.path / "checkpoints").glob("step-*") if (p / files.MANIFEST).exists())

    def newest(self) -> Path:
        """The newest checkpoint whose content is what was written."""
        for folder in reversed(self.checkpoints()):
            try:
                files.verify(folder)
            except InklingError:
                continue
            return folder
        raise InklingError(f"The run in {self.path} has no intact checkpoint; train anew.")

    def weights(self) -> Path:
        """The weights to use: of a finished run, or of its newest checkpoint."""
        return self.path / "model.safetensors" if files.verify(self.path) else self.newest() / "model.safetensors"

    # ------------------------------------------------------------------------------------------- the end

    def finish(self, *, model: bytes, card: str, summary: Mapping[str, Any]) -> None:
        """Writes the weights and the model card, drops the checkpoints' states, and the manifest last."""
        files.write_file(self.path / "model.safetensors", model)
        files.write_file(self.path / "README.md", card)
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        self.update(state="finished", summary=dict(summary), ended=ended)
        names = sorted(p.name for p in self.path.iterdir() if p.is_file() and not p.name.startswith("."))
        hashes = {name: files.sha256_file(self.path / name) for name in names if name != files.MANIFEST}
        files.write_file(self.path / files.MANIFEST, json.dumps(hashes, indent=1))
        for old in self.checkpoints()[:-1]:
            shutil.rmtree(old, ignore_errors=True)
        files.sweep(self.path)


def list_runs(folder: Path) -> list[Run]:
    """The runs directly inside `folder`, oldest first; folders that are not runs are passed over."""
    return sorted(_runs_in(folder), key=lambda run: (str(run.info.get("started", "")), run.path.name))


def _runs_in(folder: Path) -> Iterator[Run]:
    for path in folder.iterdir() if folder.is_dir() else ():
        if not path.name.startswith(".") and (path / "run.json").is_file():
            try:
                yield Run.open(path)
            except InklingError:
                continue


def remove(run: Run) -> None:
    """Removes a run. It is renamed first, so that an interruption never leaves half a run under its name."""
    doomed = run.path.with_name(f"{files.TEMPORARY}{os.getpid()}-{run.path.name}")
    run.path.rename(doomed)
    shutil.rmtree(doomed)


def unused_path(folder: Path, name: str) -> Path:
    """`folder/name`, or `folder/name-2`, … whichever is free first."""
    path, number = folder / name, 1
    while path.exists():
        number += 1
        path = folder / f"{name}-{number}"
    return path


def versions() -> dict[str, str]:
    packages = ("inkling-lab", "torch", "numpy", "tokenizers", "safetensors")
    found = {"python": platform.python_version(), "platform": platform.platform(), "machine": platform.machine()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _folder(step: int) -> str:
    return f"checkpoints/step-{step:09d}"


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(files.finite(value), indent=1, ensure_ascii=False) + "\n").encode()
