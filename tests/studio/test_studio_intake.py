"""Files that are handed in get a name of ours, and there is a limit to what lies there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inkling.errors import InklingError
from inkling.studio import intake


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a.csv", ".csv"),
        ("A.JSONL.GZ", ".jsonl.gz"),
        ("a.b.parquet", ".parquet"),
        ("a.gz", ".txt.gz"),
        ("a.exe", ".txt"),
        ("csv", ".txt"),
        ("../../etc/passwd", ".txt"),
        ("a.csv/../../x", ".txt"),
        ("", ".txt"),
    ],
)
def test_of_a_name_only_an_ending_that_we_read_is_kept(name: str, found: str) -> None:
    assert intake.ending(name) == found


@given(st.text(st.sampled_from("./\\ac csvtxgz%\0<")))
def test_whatever_the_name_the_ending_is_one_of_ours(name: str) -> None:
    ours = {f".{kind}{packed}" for kind in intake.KINDS for packed in ("", *(f".{one}" for one in intake.PACKED))}
    assert intake.ending(name) in ours


def test_there_is_a_limit_to_one_file_and_to_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "MOST_KEPT_BYTES", 1000)
    monkeypatch.setattr(intake, "LEAST_FREE_BYTES", 0)
    (tmp_path / "there").write_bytes(b"x" * 600)
    intake.check_room(tmp_path, 400)
    with pytest.raises(InklingError, match=r"handed in take .* remove some of"):
        intake.check_room(tmp_path, 401)
    with pytest.raises(InklingError, match="larger than 200 MB"):
        intake.check_room(tmp_path, intake.MOST_BYTES + 1)


def test_a_disk_that_is_nearly_full_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "LEAST_FREE_BYTES", 1 << 60)
    with pytest.raises(InklingError, match="The disk is nearly full"):
        intake.check_room(tmp_path, 1)
