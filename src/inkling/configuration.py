"""One frozen dataclass filled from everywhere: defaults < INKLING_* variables < a TOML file < flags.

    INKLING_SEED=3    seed = 3    --seed 3

An unknown key is an error that names the nearest known one; a value of the wrong type says what was expected.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import tomllib
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from inkling.errors import InklingError, UsageError

Config = TypeVar("Config")
PREFIX = "INKLING_"
RESERVED = ("INKLING_CACHE", "INKLING_DATA", "INKLING_RUNS", "INKLING_TEST_DATA")


def fill(
    kind: type[Config],
    flags: Mapping[str, Any],
    toml: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """A `kind` from flags that were given (None means not given), a TOML file, and the environment."""
    hints = get_type_hints(kind)
    known = {field.name: hints[field.name] for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for variable, text in (os.environ if environment is None else environment).items():
        name = variable.removeprefix(PREFIX).lower()
        if variable.startswith(PREFIX) and variable not in RESERVED and name in known:
            values[name] = _convert(text, known[name], variable)
    if toml is not None:
        for key, value in _read(toml).items():
            name = key.replace("-", "_")
            if name not in known:
                raise UsageError(f"{toml}: unknown key '{key}'; {_nearest(name, known)}")
            values[name] = _convert(value, known[name], f"{toml}: {key}")
    values |= {name: value for name, value in flags.items() if value is not None}
    return kind(**values)


def from_record(kind: type[Config], record: Mapping[str, Any], where: str) -> Config:
    """A `kind` from what run.json recorded of it."""
    known = get_type_hints(kind)
    for name in record:
        if name not in known:
            raise InklingError(f"{where}: unknown key '{name}'; {_nearest(name, known)}")
    return kind(**{name: _convert(value, known[name], f"{where}: {name}") for name, value in record.items()})


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); give a TOML file.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML ({error}); write lines such as `seed = 3`.") from error


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return f"did you mean '{close[0]}'?" if close else "there are no keys."


def _convert(value: Any, hint: Any, where: str) -> Any:
    """`value` as the type `hint` asks for; text (from the environment) is read as a number or a truth where needed."""
    origin, choices = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in choices:
            return None
        return _convert(value, next(c for c in choices if c is not type(None)), where)
    if origin is Literal:
        if value not in choices:
            raise UsageError(f"{where} is {value!r}; give one of {', '.join(map(str, choices))}.")
        return value
    if origin is tuple:
        items = value.split(",") if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            raise UsageError(f"{where} is {value!r}; give a list.")
        return tuple(_convert(item, choices[0], where) for item in items)
    if hint is bool:
        named = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        found = named.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(found, bool):
            raise UsageError(f"{where} is {value!r}; give true or false.")
        return found
    if hint in (int, float):
        number = _number(value, hint)
        if number is None:
            raise UsageError(f"{where} is {value!r}; give a {'whole ' if hint is int else ''}number.")
        return number
    if hint is str and not isinstance(value, str):
        raise UsageError(f"{where} is {value!r}; give text in quotes.")
    return value


def _number(value: Any, hint: type[int] | type[float]) -> int | float | None:
    if isinstance(value, bool):
        return None
    try:
        return hint(value) if isinstance(value, str) or hint is float or float(value).is_integer() else None
    except (TypeError, ValueError, OverflowError):
        return None
