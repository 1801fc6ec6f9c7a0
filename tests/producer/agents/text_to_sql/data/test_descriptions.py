"""BIRD's description files are notes: a file that cannot be used never costs the data."""

import csv
import logging
from pathlib import Path

import pytest

from producer.agents.text_to_sql.data.descriptions import MAX_BYTES, read_descriptions

HEADER = "original_column_name,column_name,column_description,data_format"
ROW = "City,city,where it is — café,text"
WHOLE = f"{HEADER}\n{ROW}\n"
NOTE = {("shop", "city"): "where it is — café"}


def shop(tmp_path: Path, content: bytes, name: str = "shop.csv") -> Path:
    folder = tmp_path / "database_description"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return tmp_path / "shops.sqlite"


@pytest.mark.parametrize(
    "content",
    [
        WHOLE.encode(),
        WHOLE.encode("utf-8-sig"),
        WHOLE.encode("utf-16"),
        b"\xfe\xff" + WHOLE.encode("utf-16-be"),
        WHOLE.encode("cp1252"),
        WHOLE.replace("\n", "\r\n").encode(),
        f",{HEADER}\n0,{ROW}\n".encode(),
        f"{HEADER},extra\n{ROW},,more,and more\n".encode(),
        WHOLE.replace("column_description", " Column_Description ").encode(),
        f"{HEADER}\nid\n\n{ROW}\n".encode(),
    ],
)
def test_a_file_of_any_encoding_and_more_columns_is_read(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert read_descriptions(shop(tmp_path, content)) == NOTE
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            WHOLE.replace("column_description", "column_desription").encode(),
            "expected the column column_description; found original_column_name, column_name,",
        ),
        (WHOLE.replace("original_", "").encode(), "expected the column original_column_name;"),
        (b"a,b\n1,2\n", "expected the column original_column_name and column_description"),
        (b"", "found nothing"),
        (f"{WHOLE}\0".encode(), "is no text: it has NUL bytes"),
        (WHOLE.encode("utf-16-le"), "is no text: it has NUL bytes"),
        (WHOLE.encode("utf-32"), "is no text: it has NUL bytes"),
        (HEADER.encode() + b"\n" + b"x" * MAX_BYTES, "is larger than 4,000,000 bytes"),
        (f"{HEADER}\n{'x' * (csv.field_size_limit() + 1)}".encode(), "cannot be read as CSV"),
    ],
)
def test_a_file_that_cannot_be_used_costs_its_notes_and_one_warning(
    content: bytes, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = shop(tmp_path, content)
    shop(tmp_path, WHOLE.encode(), "town.csv")
    expected = {("town", "city"): NOTE["shop", "city"]}
    assert [read_descriptions(database) for _ in range(2)] == [expected, expected]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"{tmp_path}/database_description/shop.csv: " in record.getMessage()
    assert reason in record.getMessage()


def test_whatever_stands_in_a_files_place_costs_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = shop(tmp_path, WHOLE.encode())
    folder = tmp_path / "database_description"
    (folder / "town.csv").mkdir()
    (folder / "gone.csv").symlink_to(folder / "nowhere")
    shop(tmp_path, b"\0", "._shop.csv")
    shop(tmp_path, b"\0", ".DS_Store")
    assert read_descriptions(database) == NOTE
    assert [message.partition(": ")[0] for message in caplog.messages] == [
        str(folder / "gone.csv"),
        str(folder / "town.csv"),
    ]


def test_without_a_folder_there_are_no_notes(tmp_path: Path) -> None:
    assert read_descriptions(tmp_path / "shops.sqlite") == {}
    (tmp_path / "database_description").write_text("a file")
    assert read_descriptions(tmp_path / "shops.sqlite") == {}
