"""`inkling import`: a directory in the layout of the transformers library becomes a run.

    config.json              of a qwen3 or llama, or of a run of our own
    model.safetensors        or model.safetensors.index.json and the files that it names
    tokenizer.json           one of our four tokenisers, as other programs write it too

Weights are taken over as they are; those in fewer bits are widened to float32, which changes none of them. Where the
directory is a run of ours, what it knows of its training comes along, and scores are the same to the bit. Anything that
would have to be guessed is refused in a sentence: other families of models, tokenisers that give some strings a second
meaning, a vocabulary larger than the tokeniser's.

Left out: weights in other forms than safetensors (a pickle can do anything to the computer that opens it).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inkling.errors import InklingError, UsageError
from inkling.models.gpt import Parameters
from inkling.models.gpt_layout import from_layout, tensors_of
from inkling.models.gpt_model import Transformer
from inkling.models.spelling import Speller
from inkling.recipes.card import write_card
from inkling.runs import files
from inkling.runs.loading import constant_files, dump_arrays, read_speller
from inkling.runs.recording import dump, read
from inkling.runs.run import Checkpoint, Run
from inkling.text.normalise import Chain
from inkling.text.tokenise import load_tokeniser
from inkling.text.tokens import Tokeniser

Say = Callable[[str], None]
INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
PROBE = "The quick brown fox\njumps over 12 lazy dogs’ naïve 東京 🦑!\r\n\n\tdef f(x): return x**2  # it's\n"
INHERITED = ("recipe", "normalise", "seed", "threads", "processes", "data")
NOT_KNOWN: dict[str, Any] = {
    "recipe": {},
    "normalise": "none",
    "seed": 0,
    "threads": 0,
    "data": {"files": [], "held_out": "not known", "sha256": None, "rows": 0, "bytes": 0, "notes": []},
}


def import_run(folder: Path, out: Path, say: Say = lambda _: None) -> Run:
    """Makes the finished run `out` from the model in `folder`, which is left as it is."""
    if out.exists():
        raise UsageError(f"{out} exists already; name another with --out, or remove it with `inkling runs rm`.")
    if not folder.is_dir():
        raise InklingError(
            f"{folder} is not a directory; give one with config.json, model.safetensors and tokenizer.json."
        )
    told = _of_own_run(folder)
    record = _json(folder / "config.json", "which says what the model is")
    tensors = read_weights(folder)
    tokeniser = read_tokeniser(folder)
    config, parameters = from_layout(record, tensors)
    if config.vocabulary != tokeniser.size:
        raise InklingError(
            f"The model in {folder} knows {config.vocabulary:,} tokens and its tokenizer.json {tokeniser.size:,}; the "
            "numbers must be the same, so cut the spare rows off the model with the program that made it."
        )
    _tell_of_numbers(tensors, say)
    speller = read_speller(folder)
    if speller is None and tokeniser.unknown is not None:
        speller = Speller.fit({}, tokeniser)
        say(f"{folder} has no speller: what the tokeniser does not know is charged as if spelled like what it knows.")
    model = Transformer(config, parameters, tokeniser, Chain.parse(str(told["normalise"])), speller)
    weights = dump(tensors_of(config, model.parameters))
    run = Run.create(
        out,
        info={
            "kind": "gpt",
            **told,
            "imported": {"from": str(folder), "sha256": hashlib.sha256(weights).hexdigest()},
        },
        constant=constant_files("gpt", asdict(config), tokeniser, speller),
        checkpoint=Checkpoint(0, weights, dump_arrays({}), {"step": 0}),
    )
    summary = {
        "parameters": sum(value.numel() for value in model.parameters.values()),
        "vocabulary": config.vocabulary,
        "layers": config.layers,
        "width": config.dimension,
        "heads": config.heads,
        "context": config.context,
    }
    run.finish(model=weights, card=write_card(run, summary), summary=summary)
    return run


def read_weights(folder: Path) -> Parameters:
    """All tensors, from one file or from those that an index names."""
    names = ["model.safetensors"]
    if not (folder / names[0]).exists():
        pickle = next((name for name in PICKLES if (folder / name).exists()), None)
        if pickle and not (folder / INDEX).exists():
            raise InklingError(
                f"{folder} holds its weights as {pickle}, a pickle, which can run any program when it is opened; save "
                "the model as safetensors with the program that made it."
            )
        if (folder / "checkpoints").is_dir():
            raise InklingError(f"{folder} is a run that is not finished; finish it with `inkling resume {folder}`.")
        if not (folder / INDEX).exists():
            raise InklingError(f"{folder} has neither model.safetensors nor {INDEX}; give a directory with weights.")
        listed = _json(folder / INDEX, "which says where weights are").get("weight_map")
        if not isinstance(listed, dict) or not all(isinstance(name, str) for name in listed.values()):
            raise InklingError(f"{folder / INDEX} has no weight_map; give the file that was written with the weights.")
        names = sorted(set(listed.values()))
        outside = [name for name in names if Path(name).name != name]
        if outside:
            raise InklingError(f"{folder / INDEX} names '{outside[0]}'; the files of a model stand beside its index.")
    found: Parameters = {}
    for name in names:
        found |= _tensors(folder / name)
    return found


def read_tokeniser(folder: Path) -> Tokeniser:
    """One of ours, as `tokenizer.json` holds it; checked against the library that wrote it."""
    import tokenizers

    path = folder / "tokenizer.json"
    if not path.exists():
        raise InklingError(f"{folder} has no tokenizer.json; save the tokeniser there with the program that made it.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InklingError(f"{path} cannot be read ({error}); fetch it again.") from error
    try:
        tokeniser = load_tokeniser(text)
    except InklingError as error:
        reason = str(error.__cause__ or error)
        raise InklingError(
            f"{path} is not a tokeniser that Inkling has (it found {reason}); only models with one of Inkling's own, "
            "or with byte-level BPE and no added tokens, can be imported."
        ) from error
    theirs = tokenizers.Tokenizer.from_str(text).encode(PROBE, add_special_tokens=False).ids
    if tokeniser.encode([PROBE]).ids.tolist() != theirs:
        raise InklingError(f"{path} cuts text otherwise than Inkling would; open this model with another program.")
    return tokeniser


def _of_own_run(folder: Path) -> dict[str, Any]:
    """What a run of ours knows of its training; of other directories nothing is known."""
    if not (folder / "run.json").exists():
        return dict(NOT_KNOWN)
    info = Run.open(folder).info
    files.verify(folder)
    return {name: info[name] for name in INHERITED if name in info}


def _tensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError

    try:
        found = read(path.read_bytes())
    except (OSError, SafetensorError, ValueError) as error:
        raise InklingError(f"{path} cannot be read ({error}); fetch it again.") from error
    odd = [f"{name} as {value.dtype}" for name, value in found.items() if not value.is_floating_point()]
    if odd:
        raise InklingError(f"{path} holds {odd[0]}; give weights in float32, bfloat16 or float16.")
    return found


def _tell_of_numbers(tensors: Parameters, say: Say) -> None:
    kinds = sorted({str(value.dtype).removeprefix("torch.") for value in tensors.values()} - {"float32"})
    if not kinds:
        return
    narrowed = any(value.dtype == torch.float64 for value in tensors.values())
    effect = "narrowed to float32, which rounds them" if narrowed else "widened to float32, which changes none of them"
    say(f"Weights in {' and '.join(kinds)} were {effect}.")


def _json(path: Path, purpose: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InklingError(f"{path.parent} has no {path.name}, {purpose}; give a whole directory.") from None
    except (OSError, ValueError) as error:
        raise InklingError(f"{path} cannot be read ({error}); fetch it again.") from error
    if not isinstance(found, dict):
        raise InklingError(f"{path} holds no record; give the file that was written with the model.")
    return found
