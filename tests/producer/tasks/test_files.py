"""Files of tasks: what is read of them, and what a mistake's message names."""

import json
from pathlib import Path

import pytest

from producer.errors import UsageError
from producer.tasks.files import tasks_from_file


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_text_file_has_an_instruction_a_line_with_comments_and_blank_lines(
    tmp_path: Path,
) -> None:
    text = (
        "\ufeff# settings\r\n\r\n  Open the Settings app \r\nTurn wifi on # now\u2028and off\r\n"
        "#\n\t\n"
    )
    path = write(tmp_path, "tasks.TXT", text.encode())
    tasks = tasks_from_file(path, "tasks.file_path")
    assert [task.description for task in tasks] == [
        "Open the Settings app",
        "Turn wifi on # now\u2028and off",
    ]
    assert [task.source_type for task in tasks] == ["file", "file"]
    assert not tasks[0].is_judged


def test_a_json_file_may_hold_instructions_too_and_a_text_file_json(tmp_path: Path) -> None:
    row = {"task_id": "a", "description": "A."}
    for name, content in {
        "array.json": json.dumps(["Open it", row]),
        "lines.jsonl": f'"Open it"\n\n{json.dumps(row)}\n',
        "lines.txt": f'{json.dumps(row)}\n"Open it"\n',
    }.items():
        tasks = tasks_from_file(write(tmp_path, name, content.encode()), "tasks.file_path")
        assert {task.description for task in tasks} == {"Open it", "A."}, name


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"", "contains no task; give at least one"),
        ("a.txt", b"\xef\xbb\xbf# only\r\n \r\n", "contains no task; give at least one"),
        ("a.txt", "Open it".encode("utf-16"), "is not UTF-8 text"),
        ("a.txt", b"Open it\n\nOpen \x00 it\n", r"a\.txt\[1\].*control characters.*\(line 3\)"),
        ("a.jsonl", b'\n"a"\n{"task_id": 1\n', "nor JSON lines: line 3: "),
        ("a.jsonl", b'"a"\n\n{"task_id": "b"}\n', r"\[1\]\.description: required \(line 3\)"),
        ("a.md", b"Open it\n", r"line 1: .*whose name ends in \.txt"),
        ("a.json", b"[1]", r"a\.json\[0\]: 1 is not an object"),
        ("a.json", b"[" * 100_000, "neither a JSON array nor JSON lines"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(UsageError, match=reason) as error:
        tasks_from_file(path, "tasks[3].file_path")
    assert str(error.value).startswith(f"tasks[3].file_path: {path}")


def test_a_folder_or_nothing_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.txt", Path("a\0b")):
        with pytest.raises(UsageError, match=r"where: cannot read "):
            tasks_from_file(path, "where")
