"""From a run directory back to a model: `inkling.load(RUN)`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inkling.configuration import from_record
from inkling.errors import InklingError
from inkling.models.bigram import Bigram, BigramConfig
from inkling.models.dan import AveragingNetwork, DANConfig
from inkling.models.gpt import GPTConfig
from inkling.models.gpt_layout import from_layout, record_of
from inkling.models.gpt_model import Transformer
from inkling.models.gru import GRU, GRUConfig
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.spelling import Speller
from inkling.runs.recording import read
from inkling.runs.run import Run
from inkling.text.normalise import Chain
from inkling.text.tokenise import load_tokeniser, tokenizer_config_json
from inkling.text.tokens import Tokeniser

LanguageModelRun = Bigram | NGram | GRU | Transformer


def load(path: Path | str | Run) -> Any:
    """The model of a run, finished or not (then: its newest checkpoint), ready to score and sample, or to classify.

    Which it is shows only when the run is opened; who needs one kind asks for it by the names below.
    """
    run = path if isinstance(path, Run) else Run.open(path)
    return load_classifier(run) if run.kind == "dan" else load_language_model(run)


def load_classifier(path: Path | str | Run) -> AveragingNetwork:
    """The classifier of a run; a sentence where the run holds something else."""
    run = path if isinstance(path, Run) else Run.open(path)
    if run.kind != "dan":
        raise InklingError(
            f"{run.path} is a {run.kind}, a language model, where a classifier is wanted; train one with "
            "`inkling train dan FILE`."
        )
    weights = run.weights()
    config = json.loads((run.path / "config.json").read_text(encoding="utf-8"))
    sizes = from_record(DANConfig, config["sizes"], str(run.path / "config.json"))
    return AveragingNetwork.from_arrays(sizes, config["labels"], _arrays(weights.read_bytes()))


def load_language_model(path: Path | str | Run) -> LanguageModelRun:
    """The language model of a run; a sentence where the run holds something else."""
    run = path if isinstance(path, Run) else Run.open(path)
    if run.kind == "dan":
        raise InklingError(
            f"{run.path} is a classifier, where a language model is wanted; use it with `inkling classify`, "
            "`inkling errors` or `inkling evaluate`."
        )
    weights = run.weights()  # checks the manifest, so that what follows reads what was written
    tokeniser = load_tokeniser((run.path / "tokenizer.json").read_text(encoding="utf-8"))
    chain = Chain.parse(str(run.info["normalise"]))
    speller = read_speller(run.path)
    config = json.loads((run.path / "config.json").read_text(encoding="utf-8"))
    if run.kind == "gpt":
        return Transformer(*from_layout(config, read(weights.read_bytes())), tokeniser, chain, speller)
    record = config["sizes"]
    where = str(run.path / "config.json")
    if run.kind == "bigram":
        return Bigram(from_record(BigramConfig, record, where), read(weights.read_bytes()), tokeniser, chain, speller)
    if run.kind == "gru":
        return GRU(from_record(GRUConfig, record, where), read(weights.read_bytes()), tokeniser, chain, speller)
    if run.kind == "ngram":
        arrays = _arrays(weights.read_bytes())
        return NGram.from_tensors(from_record(NGramConfig, record, where), arrays, tokeniser, chain, speller)
    raise InklingError(f"{run.path} holds a '{run.kind}', which this version of Inkling cannot open; use a newer one.")


def read_speller(folder: Path) -> Speller | None:
    """What charges for unknown pieces, where there is such a file."""
    path = folder / "speller.safetensors"
    return Speller.from_tensors(_arrays(path.read_bytes())) if path.exists() else None


def constant_files(
    kind: str, sizes: Mapping[str, Any], tokeniser: Tokeniser, speller: Speller | None
) -> dict[str, bytes]:
    """The files of a run that do not change while it trains. That of a transformer opens in other programs too."""
    record: Mapping[str, Any] = {"model_type": f"inkling-{kind}", "sizes": dict(sizes)}
    if kind == "gpt":
        record = record_of(GPTConfig(**sizes), tokeniser.begin)
    found = {
        "config.json": (json.dumps(record, indent=1) + "\n").encode(),
        "tokenizer.json": tokeniser.to_json().encode(),
        "tokenizer_config.json": tokenizer_config_json(tokeniser).encode(),
    }
    if speller is not None:
        found["speller.safetensors"] = dump_arrays(speller.tensors())
    return found


def dan_files(sizes: DANConfig, labels: Sequence[str]) -> dict[str, bytes]:
    """The files of a classifier's run that do not change while it trains."""
    config = {"model_type": "inkling-dan", "sizes": asdict(sizes), "labels": list(labels)}
    return {"config.json": (json.dumps(config, indent=1, ensure_ascii=False) + "\n").encode()}


def dump_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    from safetensors.numpy import save

    return save({name: np.ascontiguousarray(value) for name, value in arrays.items()})


def _arrays(content: bytes) -> dict[str, NDArray[np.generic]]:
    from safetensors.numpy import load as load_arrays

    return dict(load_arrays(content))
