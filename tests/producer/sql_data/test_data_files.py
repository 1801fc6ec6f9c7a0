"""JSON of a data set: a file that is none is refused in plain words."""

from pathlib import Path

import pytest

from producer.sql_data.data_files import read_strict_file

CONTENTS = {
    "empty": (b"", "Expecting value: line 1 column 1"),
    "binary": (bytes(range(256)), "not a text in UTF-8"),
    "another encoding": ('{"a": 1}'.encode("utf-16"), "not a text in UTF-8"),
    "cut off": (b'{"a": ', "Expecting value: line 1 column 7"),
    "nested": (b"[" * 200_000, "nested too deeply"),
    "nested, but read": (b"[" * 101 + b"]" * 101, "nested too deeply; at most 100"),
    "digits": (b"1" * 5_000, "a number has more than 4,300 digits"),
    "nan": (b'{"a": NaN}', "NaN is no number that JSON has"),
    "twice": (b'{"a": 1, "a": 2}', "'a'"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_what_is_no_json_is_named_without_a_codec(tmp_path: Path, name: str) -> None:
    content, reason = CONTENTS[name]
    file = tmp_path / "some.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r".") as refused:
        read_strict_file(file)
    assert reason in str(refused.value)
    assert "codec" not in str(refused.value)


def test_a_folder_and_a_missing_file_are_values_that_are_wrong_too(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^Is a directory$"):
        read_strict_file(tmp_path)
    with pytest.raises(ValueError, match=r"^No such file or directory$"):
        read_strict_file(tmp_path / "none.json")


def test_a_mark_of_a_windows_editor_is_no_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "some.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": [1]}')
    assert read_strict_file(file) == {"a": [1]}
