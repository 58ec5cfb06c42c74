"""`inkling serve`: models behind HTTP, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from inkling.serve.shelf import Opened


def serve(
    runs: Annotated[list[str], typer.Argument(help="Run directories: language models, classifiers, or both.")],
    port: Annotated[int, typer.Option(help="Where to listen; 0: any free port.")] = 8000,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    elsewhere: Annotated[
        bool, typer.Option("--elsewhere", help="Allow a --host that other computers reach. The token stays.")
    ] = False,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="A name that the server is also reached by, such as box.local; can be repeated."),
    ] = None,
    token_file: Annotated[
        str | None, typer.Option(help="A file that holds the token; made if there is none. [default: a new token]")
    ] = None,
    batch: Annotated[int, typer.Option(help="Texts of one model that are written together.")] = 32,
    queue: Annotated[int, typer.Option(help="Texts that may wait; beyond, requests get 503 and Retry-After.")] = 256,
    max_tokens: Annotated[int, typer.Option(help="The most tokens of a completion.")] = 4096,
    seconds: Annotated[float, typer.Option(help="The most time that a request may take.")] = 120.0,
    threads: Annotated[int, typer.Option(help="Cores that a model may use; 0: all.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Say where the server is as one line of JSON.")] = False,
) -> None:
    """Serve models over HTTP, as OpenAI's clients, curl and the lm-evaluation-harness speak it.

    Many requests are worked on together. Every request needs the token that is printed. Ctrl-C ends the server.

    \b
    /v1/completions   write (stream, logprobs, echo, n, stop, seed)    /v1/models    which there are
    /v1/score         nats and bits per byte, as `inkling score`       /health       alive
    /v1/classify      label and why, as `inkling classify`             /metrics      for Prometheus
    /tokenize, /detokenize

    \b
    Examples:
      inkling serve runs/gpt-novel
      inkling serve runs/gpt-novel runs/dan-reviews --port 0 --json
      inkling serve runs/gpt-novel --host 0.0.0.0 --elsewhere --name box.local --token-file token.txt

    \b
    From Python:
      client = openai.OpenAI(base_url="http://127.0.0.1:8000/v1", api_key=TOKEN)
      client.completions.create(model="gpt-novel", prompt="Once", max_tokens=50)
    """
    import sys
    import traceback
    from contextlib import closing

    import torch

    from inkling.cli.servers import needs
    from inkling.door.listening import open_socket, port_of, run_server
    from inkling.door.policy import Policy, check_token, hosts_of, new_token
    from inkling.errors import UsageError
    from inkling.serve.limits import Limits

    needs("serve", "uvicorn", "pydantic")
    from inkling.serve.app import Service, guarded
    from inkling.serve.shelf import open_runs

    if threads < 0:
        raise UsageError(f"--threads is {threads}; give the number of cores, or 0 for all.")
    lanes = threads or torch.get_num_threads()
    limits = Limits(batch=batch, lanes=lanes, queue=queue, max_tokens=max_tokens, seconds=seconds)
    token = _kept_token(token_file) if token_file else new_token()
    check_token(token)

    def log(failure: BaseException) -> None:
        traceback.print_exception(failure, file=sys.stderr)

    with closing(open_socket(host, port, elsewhere)) as listening:  # first, for it may be taken
        torch.set_num_threads(1)  # before models are loaded, which remember it; see shelf.py
        opened = open_runs(runs)
        port = port_of(listening)
        policy = Policy(
            token,
            hosts_of(host, port, names or ()),
            largest_body_bytes=limits.body_bytes,
            request_seconds=limits.seconds + 10,  # after which not even a slow reader is waited for
            cookie=f"inkling-serve-{port}",
        )
        service = Service(opened, limits, log)
        sys.setswitchinterval(SWITCH_SECONDS)
        run_server(
            guarded(service, policy),
            listening,
            lambda: _say(_address(host, port), token, opened, json),
            on_stop=service.stop,
        )


SWITCH_SECONDS = 0.0001  # a thread that writes waits no longer than this for one that answers


def _say(address: str, token: str, opened: list[Opened], json: bool) -> None:
    import json as json_format
    import sys

    from inkling.report.terminal import safe

    curl = _curl(address, token, opened)
    if json:
        models = [{"id": one.name, "kind": one.kind} for one in opened]
        found = {"url": address, "base_url": f"{address}/v1", "token": token, "models": models, "curl": curl}
        sys.stdout.write(json_format.dumps(found) + "\n")
    else:
        listed = ", ".join(f"{one.name} ({one.kind})" for one in opened)
        sys.stdout.write(f"Serving {safe(listed)}\n  at     {address}/v1\n  token  {token}\nTry:\n  {safe(curl)}\n")
        sys.stderr.write("Ctrl-C ends it.\n")
    sys.stdout.flush()


def _curl(address: str, token: str, opened: list[Opened]) -> str:
    import json
    import shlex

    first = opened[0]
    body = {"model": first.name, "input": "A fine film.", "why": True}
    if not first.is_classifier:
        body = {"model": first.name, "prompt": "The", "max_tokens": 50}
    path = "classify" if first.is_classifier else "completions"
    head = f"-H 'Authorization: Bearer {token}' -H 'Content-Type: application/json'"
    return f"curl {address}/v1/{path} {head} -d {shlex.quote(json.dumps(body))}"


def _address(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"


def _kept_token(file: str) -> str:
    """The token in a file that only its owner can read; a new one where there is none."""
    import os
    from pathlib import Path

    from inkling.door.policy import new_token

    path = Path(file)
    if path.exists():
        return path.read_text(encoding="utf-8").strip()
    token = new_token()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(token + "\n")
    return token
