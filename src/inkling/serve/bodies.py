"""What requests may say. A wrong one is answered in a sentence: the field, what was given, what was expected.

The fields of completions are OpenAI's (https://platform.openai.com/docs/api-reference/completions) and three of our
own: top_k, min_p, repetition_penalty. What OpenAI knows and Inkling cannot do is taken only where it changes nothing.
"""

from __future__ import annotations

import difflib
import json
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

SHOWN_CHARS = 60
Body = TypeVar("Body", bound="Request")
Seed = 2**63


class Refusal(Exception):
    """A request that is answered with an error, in OpenAI's form."""

    def __init__(
        self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None, retry: int = 0
    ) -> None:
        super().__init__(message)
        self.status, self.param, self.code, self.retry = status, param, code, retry

    def record(self) -> dict[str, Any]:
        kinds = {503: "overloaded_error", 504: "timeout_error", 500: "server_error"}
        kind = kinds.get(self.status, "invalid_request_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())

    model: str | None = Field(None, description="the name of a model, as GET /v1/models lists them")


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool = Field(False, description="true or false")
    include_obfuscation: bool = Field(False, description="true or false")


Tokens = list[int]


class CompletionRequest(Request):
    prompt: str | Tokens | list[str] | list[Tokens] = Field(
        "", description="a string, a list of strings, a list of token ids, or a list of such lists"
    )
    max_tokens: int | None = Field(None, ge=0, description="a whole number of at least 1 (0 with echo)")
    temperature: float | None = Field(None, ge=0, le=100, description="a number from 0 (the likeliest) to 100")
    top_p: float | None = Field(None, gt=0, le=1, description="a number above 0 and up to 1")
    top_k: int | None = Field(None, ge=-1, description="a whole number; 0 or -1: all tokens")
    min_p: float | None = Field(None, ge=0, le=1, description="a number from 0 to 1")
    repetition_penalty: float | None = Field(None, ge=1, le=1e6, description="a number of at least 1, which is none")
    n: int | None = Field(None, ge=1, description="a whole number of at least 1")
    stop: str | list[str] | None = Field(None, description="a string or a list of strings, none of them empty")
    seed: int | None = Field(None, ge=-Seed, lt=Seed, description="a whole number of at most 64 bits")
    stream: bool | None = Field(None, description="true or false")
    stream_options: StreamOptions | None = Field(None, description='an object such as {"include_usage": true}')
    logprobs: int | None = Field(None, ge=0, description="a whole number of likeliest tokens, or null")
    echo: bool | None = Field(None, description="true or false")
    user: str | None = Field(None, description="a string, which is not used")
    # Known to other servers, and taken only where they change nothing.
    best_of: int | None = Field(None, description="nothing")
    suffix: str | None = Field(None, description="nothing")
    logit_bias: dict[str, float] | None = Field(None, description="nothing")
    presence_penalty: float | None = Field(None, description="nothing")
    frequency_penalty: float | None = Field(None, description="nothing")

    def refuse_what_is_missing(self) -> None:
        asked = {
            "best_of": self.best_of not in (None, self.n or 1),
            "suffix": bool(self.suffix),
            "logit_bias": bool(self.logit_bias),
            "presence_penalty": bool(self.presence_penalty),
            "frequency_penalty": bool(self.frequency_penalty),
        }
        instead = {
            "presence_penalty": "use repetition_penalty",
            "frequency_penalty": "use repetition_penalty",
            "best_of": "ask for n completions with logprobs and choose",
        }
        for name, is_asked in asked.items():
            if is_asked:
                given = shown(getattr(self, name))
                way = instead.get(name, "leave it out")
                raise Refusal(f"'{name}' is {given}, which this server cannot do; {way}.", param=name)


class ClassifyRequest(Request):
    input: str | list[str] = Field(description="a text or a list of texts")
    why: bool = Field(False, description="true or false")
    all: bool = Field(False, description="true or false")


class ScoreRequest(Request):
    input: str | list[str] = Field(description="a text or a list of texts")


class TokenizeRequest(Request):
    prompt: str = Field(description="a text")


class DetokenizeRequest(Request):
    tokens: Tokens = Field(description="a list of token ids")


def parse(kind: type[Body], raw: bytes) -> Body:
    """A body of that kind; `Refusal` in a sentence where it is not one."""
    try:
        found = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise Refusal(f"The body is not JSON ({error}); send an object such as {{}}.") from error
    if not isinstance(found, dict):
        raise Refusal(f"The body is {shown(found)}; send a JSON object.")
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        raise _refusal(kind, error) from error


def _refusal(kind: type[Request], error: ValidationError) -> Refusal:
    first = error.errors(include_url=False, include_context=False)[0]
    name = str(first["loc"][0])
    inner = kind.model_fields.get(name)
    if first["type"] == "extra_forbidden":
        known = list(kind.model_fields)
        if len(first["loc"]) > 1:
            known = list(StreamOptions.model_fields)
        unknown = str(first["loc"][-1])
        nearest = difflib.get_close_matches(unknown.lower(), known, n=1, cutoff=0.0)[0]
        return Refusal(f"There is no field {shown(unknown)}; did you mean '{nearest}'?", param=name)
    expected = inner.description if inner is not None and inner.description else "something else"
    if first["type"] == "missing":
        return Refusal(f"'{name}' is missing; give {expected}.", param=name)
    # A union is complained about once for each of its parts, so the whole value is what to show.
    given = shown(first["input"])
    return Refusal(f"'{name}' is {given}; give {expected}.", param=name)


def shown(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=True, default=str) if not isinstance(value, str) else json.dumps(value)
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
