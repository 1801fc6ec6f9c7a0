"""Files of tasks: what is read of them, and what a mistake's message names."""

import json
from pathlib import Path

import pytest

from producer.errors import UsageError
from producer.tasks.custom import tasks_from_file


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


def test_an_instruction_may_begin_with_a_bracket(tmp_path: Path) -> None:
    """Only what begins as an object or an array of tasks is read as JSON."""
    lines = ["[Settings] Turn on Wi-Fi", "{app} open it", "[ ] Mute"]
    for first in lines:
        others = [line for line in lines if line != first]
        path = write(tmp_path, "tasks.txt", "\n".join([first, *others]).encode())
        tasks = tasks_from_file(path, "tasks.file_path")
        assert [task.description for task in tasks] == [first, *others]


def test_a_table_whose_columns_another_character_separates_is_told_so(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b"\xef\xbb\xbftask_id;description\r\na;b\r\n")
    with pytest.raises(UsageError, match="its columns are separated by ';', save it with commas"):
        tasks_from_file(path, "tasks")


def test_rows_of_a_table_without_content_are_skipped(tmp_path: Path) -> None:
    """Excel writes as many commas as it likes below the last row."""
    content = b"task_id,description\r\na,Open it\r\n,\r\n , ,\r\n,,,,\r\nb,Close it\r\n"
    tasks = tasks_from_file(write(tmp_path, "tasks.csv", content), "tasks.file_path")
    assert [task.task_id for task in tasks] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"", "contains no task; give at least one"),
        ("a.txt", b"\xef\xbb\xbf# only\r\n \r\n", "contains no task; give at least one"),
        ("a.txt", "Open it".encode("utf-16"), "is not UTF-8 text"),
        (
            "a.txt",
            b"Open it\n\nOpen \x00 it\n",
            r"a\.txt\[1\]\.description: contains a NUL character; remove it \(line 3\)",
        ),
        ("a.jsonl", b'\n"a"\n{"task_id": 1\n', "nor JSON lines: line 3: "),
        ("a.jsonl", b'"a"\n\n{"task_id": "b"}\n', r"\[1\]\.description: required \(line 3\)"),
        ("a.md", b"Open it\n", r"line 1: .*whose name ends in \.txt"),
        ("a.txt", b'["a", "b]', "begin it with a line `# instructions`"),
        ("a.json", b'[{"task_id": "a", "task_id": "b"}]', "'task_id' is given twice in one object"),
        ("a.jsonl", b'"a"\n{"a": 1, "a": 1}', "line 2: 'a' is given twice in one object"),
        ("a.json", b"[NaN]", "NaN is no number"),
        ("a.json", b"[1]", r"a\.json\[0\]: 1 is not an object"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        (
            "a.jsonl",
            b'"a"\n{"setup": ' + b"[" * 300 + b"]" * 300 + b"}",
            "line 2: nested too deeply",
        ),
        ("a.json", b"[" + b"1" * 5_000 + b"]", "a number has more than 4,300 digits"),
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


def test_a_table_has_a_header_and_a_task_in_each_row(tmp_path: Path) -> None:
    text = (
        "\ufefftask_id, description,validation_query,expected,setup,max_steps,tags\r\n"
        'quiet,"Mute it, please.",media_volume,0,cmd media_session volume --stream 3 --set 7;'
        " settings put global zen_mode 0 ,8,\r\n"
        'two,"Two\nlines.",wifi_enabled,true,,,a;b\r\n'
    )
    quiet, two = tasks_from_file(write(tmp_path, "tasks.csv", text.encode()), "where")
    assert (quiet.description, quiet.expected_result, quiet.max_steps) == (
        "Mute it, please.",
        "0",
        8,
    )
    assert quiet.setup == (
        "cmd media_session volume --stream 3 --set 7",
        "settings put global zen_mode 0",
    )
    assert (two.description, two.max_steps, two.tags) == ("Two\nlines.", 20, ("a", "b"))
    tabs = text.replace(",", "\t").replace("Mute it\t", "Mute it,")
    assert tasks_from_file(write(tmp_path, "tasks.tsv", tabs.encode()), "where") == [quiet, two]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "must name each column once, among them task_id and description; found nothing"),
        ("Open it\n", "among them task_id and description; found 'Open it'"),
        ("task_id,task_id,description\n", "must name each column once.*found 'task_id', 'task_id'"),
        ("task_id,description\n", "contains no task"),
        ("task_id,description\na,Open it,now\n", "line 2 has another number of cells than the 2"),
        ("task_id,description\na\n", "line 2 has another number of cells than the 2 columns"),
        ('task_id,description\na,"Open\n', "line 2 is no row of a table: unexpected end of data"),
        ("task_id,description,exspected\na,A.,1\n", r"\.exspected: unknown field\. Did you mean"),
        (
            "task_id,description,validation_query,expected\na,A.,wifi_enabled,yes\n",
            r"\[0\]\.expected: wifi_enabled answers True or False, never 'yes'.*\(line 2\)",
        ),
        ("task_id,description,max_steps\na,A.,many\n", r"\[0\]\.max_steps: .*\(line 2\)"),
    ],
)
def test_a_mistake_in_a_table_is_named_with_its_line(
    tmp_path: Path, content: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        tasks_from_file(write(tmp_path, "a.csv", content.encode()), "where")
