"""The published layout: read from JSON and from Parquet with JSON text; what is broken is named."""

import copy
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from producer.agents.dbbench.data.layout import entry_fields, read_entries, write_entries
from producer.errors import UsageError
from schemas.entry import Column, EntryContent, TableInfo

TABLE = {
    "name": "people",
    "column_info_list": [{"name": "id", "type": "INT"}, {"name": "name", "type": "TEXT"}],
    "row_list": [[1, "Ann"], [2, "Bo, Jr."]],
}
SELECTED: dict[str, Any] = {
    "instruction": "Who is 2?",
    "table_info": TABLE,
    "answer_info": {
        "direct": [["Bo, Jr."]],
        "md5": None,
        "sql": "SELECT name FROM people WHERE id = 2;",
    },
    "skill_list": ["select", "where_single_condition"],
}
DELETED: dict[str, Any] = {
    "instruction": "Delete all.",
    "table_info": TABLE,
    "answer_info": {"direct": None, "md5": "None", "sql": "DELETE FROM people"},
    "skill_list": ["delete"],
}
EXPECTED = EntryContent(
    kind="dbbench",
    entry_id="7",
    instruction="Who is 2?",
    table_info=TableInfo(
        name="people",
        columns=(Column(name="id", type="INT"), Column(name="name", type="TEXT")),
        rows=((1, "Ann"), (2, "Bo, Jr.")),
    ),
    answer_direct=(("Bo, Jr.",),),
    sql="SELECT name FROM people WHERE id = 2;",
    skills=("select", "where_single_condition"),
)


def test_an_entry_dict_is_read(tmp_path: Path) -> None:
    (tmp_path / "entry_dict.json").write_text(json.dumps({"7": SELECTED, "8": DELETED}))
    first, second = read_entries(tmp_path)
    assert first == EXPECTED
    assert (second.entry_id, second.answer_direct, second.answer_md5) == ("8", None, "None")


def test_a_folder_around_it_and_the_file_itself_are_read_too(tmp_path: Path) -> None:
    folder = tmp_path / "processed" / "v0317_first500"
    folder.mkdir(parents=True)
    (folder / "entry_dict.json").write_text(json.dumps({"7": SELECTED}))
    assert read_entries(tmp_path) == read_entries(folder / "entry_dict.json") == [EXPECTED]


@pytest.mark.parametrize("is_text", [True, False], ids=["JSON text", "structs"])
def test_parquet_is_read_with_text_or_structs_in_its_fields(tmp_path: Path, is_text: bool) -> None:
    row = copy.deepcopy(SELECTED)
    # A column of Parquet has one type: values of rows are all texts there.
    row["table_info"]["row_list"] = [["1", "Ann"], ["2", "Bo, Jr."]]
    if is_text:
        row |= {key: json.dumps(row[key]) for key in ("table_info", "answer_info", "skill_list")}
    (tmp_path / "db_bench").mkdir()
    parquet.write_table(
        pa.Table.from_pylist([{"sample_index": 7, **row}]),
        tmp_path / "db_bench" / "train-00000-of-00001.parquet",
    )
    (entry,) = read_entries(tmp_path)
    assert entry.answer_direct == EXPECTED.answer_direct
    assert entry.skills == EXPECTED.skills
    assert entry.entry_id == "7"


def test_answer_fields_may_be_text_inside_an_object(tmp_path: Path) -> None:
    entry = copy.deepcopy(SELECTED)
    entry["answer_info"] |= {"direct": "[('Bo, Jr.',)]", "md5": ""}
    entry["table_info"]["row_list"] = json.dumps(TABLE["row_list"])
    (tmp_path / "entry_dict.json").write_text(json.dumps({"7": entry}))
    assert read_entries(tmp_path) == [EXPECTED]


def test_entries_without_labels_get_those_of_their_tree(tmp_path: Path) -> None:
    entry = {key: value for key, value in SELECTED.items() if key != "skill_list"}
    (tmp_path / "entry_dict.json").write_text(json.dumps({"7": entry}))
    assert read_entries(tmp_path) == [EXPECTED]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_entries([EXPECTED], tmp_path / "new")
    assert read_entries(tmp_path / "new") == [EXPECTED]
    assert entry_fields(EXPECTED) == SELECTED


BROKEN: list[tuple[str, Any, str]] = [
    ("instruction", "", "instruction: a text is needed"),
    ("instruction", None, "instruction: a text is needed"),
    ("table_info", None, "table_info: an object is needed"),
    ("table_info", "{", "table_info: '{' is no JSON"),
    ("table_info.name", 3, "table_info.name: a text is needed"),
    ("table_info.column_info_list", [], "columns with different names"),
    (
        "table_info.column_info_list",
        [{"name": "id", "type": "INT"}, {"name": "ID", "type": "TEXT"}],
        "columns with different names",
    ),
    (
        "table_info.column_info_list",
        [{"name": "id", "type": "BLOB"}, {"name": "name", "type": "TEXT"}],
        "column_info_list[0].type: column type 'BLOB' is not",
    ),
    ("table_info.row_list", None, "table_info.row_list: a list is needed"),
    ("table_info.row_list", [[1]], "table_info.row_list[0]: it has 1 values"),
    ("table_info.row_list", [["x", "y"]], "row_list[0], column id: 'x' is no number"),
    ("answer_info", [], "answer_info: an object is needed"),
    ("answer_info.direct", None, "exactly one of direct and md5"),
    ("answer_info.md5", "0" * 32, "exactly one of direct and md5"),
    ("answer_info.direct", "[[", "answer_info.direct: '[[' is no JSON"),
    ("answer_info.direct", [1], "answer_info.direct[0]: a row of values"),
    ("answer_info.direct", [[[1]]], "answer_info.direct[0]: a row of values"),
    ("answer_info.direct", [[1], [1, 2]], "different numbers of values"),
    ("answer_info.sql", None, "answer_info.sql: a text is needed"),
    ("answer_info.sql", "SELECT (", "answer_info.sql: it cannot be read"),
    ("answer_info.sql", "DROP TABLE people", "answer_info.sql: it is no SELECT"),
    ("answer_info.sql", "SELECT 1; SELECT 2", "answer_info.sql: it has 2 statements"),
    ("answer_info.sql", "DELETE FROM people", "answer_info.md5: it is missing"),
    ("instruction", "a\0b", "instruction: 'a\\x00b' has a NUL"),
    ("instruction", "a\ud800", "instruction: 'a\\ud800' is no valid Unicode"),
    ("table_info.row_list", [[1, "a\0"]], "table_info.row_list[0][1]: 'a\\x00' has a NUL"),
    ("table_info.row_list", '[[1, "a\\ud800"]]', "row_list[0][1]: 'a\\ud800' is no valid Unicode"),
    ("table_info.row_list", [["1" * 40, "a"]], "is out of range of an INT"),
    ("table_info.row_list", [[10**40, "a"]], "is out of range of an INT"),
    ("table_info.row_list", [[1e300, "a"]], "is out of range of an INT"),
    ("table_info.name", "sqlite_people", "table_info.name: 'sqlite_people': SQLite keeps"),
    ("table_info.name", "x" * 65, "table_info.name: it has 65 characters; 64 are possible"),
    (
        "table_info.column_info_list",
        [{"name": "x" * 65, "type": "INT"}, {"name": "name", "type": "TEXT"}],
        "column_info_list[0].name: it has 65 characters; 64 are possible",
    ),
    ("answer_info.direct", "[[NaN]]", "answer_info.direct: '[[NaN]]' is no JSON"),
    ("answer_info.direct", "[[1e999]]", "answer_info.direct[0][0]: inf is no number"),
    ("skill_list", ["selekt"], "skill_list: 'selekt' is no skill. Did you mean 'select'?"),
]


@pytest.mark.parametrize(("field", "value", "reason"), BROKEN, ids=[case[2] for case in BROKEN])
def test_a_broken_entry_is_named_with_its_file_and_field(
    tmp_path: Path, field: str, value: object, reason: str
) -> None:
    entry = copy.deepcopy(SELECTED)
    outer, _, inner = field.partition(".")
    if inner:
        entry[outer][inner] = value
    else:
        entry[outer] = value
    path = tmp_path / "entry_dict.json"
    path.write_text(json.dumps({"good": SELECTED, "bad": entry}))
    with pytest.raises(UsageError) as raised:
        read_entries(tmp_path)
    assert str(raised.value).startswith(f"{path}: entry 'bad': ")
    assert reason in str(raised.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is no JSON"),
        ("3", "no object of entries"),
        ("{}", "there is no entry"),
        ('{"1": 3}', "entry '1': it is no object"),
        ("[" * 100_000, "it is no JSON"),
        ('{"1": {}, "1": {}}', "'1' is given twice in one object"),
        ('{"1": {"answer_info": NaN}}', "NaN is no number"),
        ('{"a\\u0000": {}}', "its name: 'a.x00' has a NUL"),
        (json.dumps({"增" * 334: {}}), "its name must have at most 1000 bytes of UTF-8"),
    ],
)
def test_a_file_of_another_form_is_named(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "entry_dict.json").write_text(text)
    with pytest.raises(UsageError, match=reason):
        read_entries(tmp_path)


def test_folders_with_entries_of_their_own_are_not_taken_for_one_data_set(tmp_path: Path) -> None:
    for skill in ("delete", "select"):
        write_entries([EXPECTED], tmp_path / skill)
    with pytest.raises(
        UsageError, match=r"2 folders have entries \(delete, select ...\); give one"
    ):
        read_entries(tmp_path)


def test_parquet_with_what_json_does_not_have_is_refused(tmp_path: Path) -> None:
    row = copy.deepcopy(SELECTED)
    row["table_info"]["row_list"] = [["1", "Ann"], ["2", "Bo"]]
    row["answer_info"] = {"direct": [[float("nan")]], "sql": SELECTED["answer_info"]["sql"]}
    parquet.write_table(pa.Table.from_pylist([row]), tmp_path / "train.parquet")
    with pytest.raises(
        UsageError, match=r"entry '0': answer_info.direct\[0\]\[0\]: nan is no number"
    ):
        read_entries(tmp_path)


def test_a_broken_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(UsageError, match=r"a\.parquet: it is no Parquet file"):
        read_entries(tmp_path)


def test_a_folder_without_entries_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no entry_dict\.json"):
        read_entries(tmp_path)
    with pytest.raises(UsageError, match="no such file or folder"):
        read_entries(tmp_path / "none")
