"""Synthetic text-to-SQL data: by seed, solvable, not trivial, split by database."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from producer.agents.text_to_sql.data.domains import POOLS
from producer.agents.text_to_sql.data.generate import (
    BirdSplit,
    SyntheticDatabase,
    SyntheticSize,
    synthetic_databases,
    write_synthetic,
)
from producer.agents.text_to_sql.data.layouts import read_questions
from producer.agents.text_to_sql.data.sound_questions import load_text_to_sql
from producer.agents.text_to_sql.data.templates import TEMPLATES
from producer.agents.text_to_sql.data.wrong_answers import is_telling, row_set, wrong_answers
from producer.process_rewards.cocte import read_cocte
from producer.sql_data.gold_form import gold_form

SIZE = SyntheticSize(num_train_databases=6, num_dev_databases=4, questions_per_template=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synthetic")
    write_synthetic(folder, 3, SIZE)
    return folder


@pytest.fixture(scope="module")
def databases() -> list[SyntheticDatabase]:
    """Those of the folder."""
    return [*synthetic_databases(3, "train", SIZE), *synthetic_databases(3, "dev", SIZE)]


def contents(folder: Path) -> dict[str, str]:
    """Every file; of a database the statements that make it, which no SQLite version changes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".sqlite":
            with closing(sqlite3.connect(path)) as connection:
                found[path.relative_to(folder).as_posix()] = "\n".join(connection.iterdump())
        elif path.is_file():
            found[path.relative_to(folder).as_posix()] = path.read_text()
    return found


def test_the_same_seed_gives_the_same_data_and_another_seed_other_data(tmp_path: Path) -> None:
    small = SyntheticSize(1, 1, 1)
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        write_synthetic(tmp_path / name, seed, small)
    first, again, other = (contents(tmp_path / name) for name in "abc")
    assert first == again
    assert all(first[name] != other[name] for name in first if name in other)


def test_written_again_nothing_of_before_is_left_in_it(tmp_path: Path) -> None:
    for seed in (1, 2):
        write_synthetic(tmp_path / "both", seed, SyntheticSize(1, 1, 1, ("filter", "count")))
    write_synthetic(tmp_path / "one", 2, SyntheticSize(1, 1, 1, ("filter", "count")))
    assert contents(tmp_path / "both") == contents(tmp_path / "one")


def test_every_gold_is_solved_and_tells_common_wrong_answers_apart(folder: Path) -> None:
    for split in ("train", "dev"):
        for question in read_questions(folder, split):
            with closing(sqlite3.connect(question.database)) as connection:
                assert question.cocte is not None
                gold = row_set(connection, question.sql)
                assert gold == row_set(connection, question.cocte)
                assert is_telling(connection, question.sql)


def test_golds_are_cocte_of_two_to_four_steps(folder: Path) -> None:
    numbers = {
        len(read_cocte(str(question.cocte)).steps) for question in read_questions(folder, "train")
    }
    assert numbers == {2, 3, 4}


def test_every_template_and_every_size_of_schema_occurs(
    folder: Path, databases: list[SyntheticDatabase]
) -> None:
    assert {len(database.schema.tables) for database in databases} == {2, 3, 4}
    assert len({database.schema.domain for database in databases}) == 6
    questions = read_questions(folder, "train") + read_questions(folder, "dev")
    assert {question.difficulty for question in questions} == {"simple", "moderate", "challenging"}
    # `most` rarely has an answer that forgets nothing; every other template is in most databases.
    assert len(questions) > 10 * len(databases)
    assert len({template.name for template in TEMPLATES}) == 16


def test_rows_are_few_and_some_parents_have_no_children(
    databases: list[SyntheticDatabase],
) -> None:
    for database in databases:
        assert all(10 <= len(rows) <= 60 for rows in database.rows.values())
        schema = database.schema
        makers = {row[0] for row in database.rows[schema.maker.table]}
        assert {row[-1] for row in database.rows[schema.thing.table]} < makers


def test_no_database_is_in_both_splits(folder: Path) -> None:
    dumps = {
        split: {
            text for name, text in contents(folder).items() if name.startswith(f"{split}_databases")
        }
        for split in ("train", "dev")
    }
    assert len(dumps["train"]) == 6
    assert len(dumps["dev"]) == 4
    assert not dumps["train"] & dumps["dev"]


def test_no_held_out_question_or_gold_up_to_values_is_trained_on_whatever_the_seeds() -> None:
    size = SyntheticSize(8, 8, 2)
    seeds: dict[BirdSplit, int] = {"train": 1, "dev": 2}
    drafts = {
        split: [
            draft
            for database in synthetic_databases(seed, split, size)
            for draft, _ in database.drafts
        ]
        for split, seed in seeds.items()
    }
    golds = {name: {gold_form(item.sql, "sqlite") for item in own} for name, own in drafts.items()}
    assert len(golds["dev"]) > 70
    assert not golds["train"] & golds["dev"]
    questions = {name: {item.question for item in own} for name, own in drafts.items()}
    assert not questions["train"] & questions["dev"]


@pytest.mark.parametrize("split", ["train", "dev"])
@pytest.mark.parametrize("template", [template.name for template in TEMPLATES])
def test_each_split_asks_questions_of_every_template(template: str, split: BirdSplit) -> None:
    """`most` and `people` have few schemas that they can be asked of."""
    (database,) = synthetic_databases(5, split, SyntheticSize(1, 1, 1, (template,)))
    assert len(database.drafts) == 1


TABLE_NAMES = (
    "author book reader loan maker product client purchase teacher course student enrolment farmer"
    " field buyer harvest director film guest ticket doctor clinic patient visit publisher novel"
    " brand item trainer lesson owner crop studio movie nurse ward"
)
COLUMN_NAMES = (
    "id name title label country home genre topic colour tint material kind level grade city place"
    " price cost age years rating score pages length hours duration weight amount quantity days fee"
)
"""A foreign key is a table's name with `_id`."""
STEP_NAMES = "chosen joined counted ranked measured linked records value"
"""Of CTEs and their columns."""
QUESTION_WORDS = (
    "List the of every with and above below How many records have What is average highest lowest"
    " total Which has Give for are there whose more than without a an means"
)
SQL_WORDS = (
    "CREATE TABLE INTEGER TEXT PRIMARY KEY FOREIGN REFERENCES NOT WITH AS SELECT DISTINCT FROM JOIN"
    " ON WHERE AND IN GROUP BY HAVING ORDER ASC DESC LIMIT COUNT AVG MIN MAX SUM T1 T2 T3"
)
FRAME_WORDS = "Evidence Question"
"""Of the prompt."""


def closed_vocabulary() -> set[str]:
    """Every word of every synthetic prompt, gold and row; numbers apart."""
    words = {word for pool in POOLS.values() for word in pool}
    for names in (TABLE_NAMES, COLUMN_NAMES, STEP_NAMES, QUESTION_WORDS, SQL_WORDS, FRAME_WORDS):
        words.update(names.split())
    return words | {f"{name}_id" for name in TABLE_NAMES.split()}


def test_every_word_of_prompts_golds_and_rows_is_in_the_closed_vocabulary(folder: Path) -> None:
    texts = []
    for split in ("train", "dev"):
        texts += [task.description for task in load_text_to_sql(folder, split, "tasks")]
        for question in read_questions(folder, split):
            texts += [question.sql, str(question.cocte)]
    texts += [text for name, text in contents(folder).items() if name.endswith(".sqlite")]
    words = {word for text in texts for word in re.findall(r"[A-Za-z_][A-Za-z_0-9]*", text)}
    dump = {"BEGIN", "TRANSACTION", "COMMIT", "INSERT", "INTO", "VALUES"}
    assert words - dump <= closed_vocabulary()


def test_a_tie_does_not_decide_a_gold() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE t (a TEXT, n INT, m INT);"
            "INSERT INTO t VALUES ('x', 1, 1), ('y', 1, 2), ('z', 0, 0)"
        )
        assert not is_telling(connection, "SELECT a FROM t ORDER BY n DESC LIMIT 1")
        assert is_telling(connection, "SELECT a FROM t ORDER BY m DESC LIMIT 1")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t WHERE n > 5",  # no rows
        "SELECT MAX(n) FROM t WHERE n > 5",  # NULL alone
        "SELECT a FROM t WHERE n > -1",  # the filter changes nothing
        "SELECT * FROM t",
        "SELECT COUNT(*) FROM t",
        "SELECT a FROM t WHERE n = 0 AND m = 0",  # half of it is enough
        "SELECT AVG(n) FROM t WHERE m = 0",  # the sum of one row is its mean
        "SELECT a FROM t ORDER BY n ASC LIMIT 3",
    ],
)
def test_a_trivial_gold_is_not_telling(sql: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE t (a TEXT, n INT, m INT);"
            "INSERT INTO t VALUES ('x', 1, 1), ('y', 2, 2), ('z', 0, 0)"
        )
        assert not is_telling(connection, sql)


def test_wrong_answers_forget_or_mistake_one_thing() -> None:
    sql = "SELECT a FROM t WHERE n > 1 AND m = 'x' ORDER BY n DESC LIMIT 1"
    assert {
        "SELECT * FROM t",
        "SELECT a FROM t ORDER BY n DESC LIMIT 1",
        "SELECT a FROM t WHERE n > 1 ORDER BY n DESC LIMIT 1",
        "SELECT a FROM t WHERE n < 1 AND m = 'x' ORDER BY n DESC LIMIT 1",
        "SELECT a FROM t WHERE n > 1 AND m <> 'x' ORDER BY n DESC LIMIT 1",
        "SELECT a FROM t WHERE n > 1 AND m = 'x' ORDER BY n DESC",
    } <= set(wrong_answers(sql))
    assert "SELECT SUM(n) FROM t" in set(wrong_answers("SELECT AVG(n) FROM t"))


def test_templates_can_be_chosen() -> None:
    size = SyntheticSize(1, 0, 1, templates=("count",))
    (database,) = synthetic_databases(0, "train", size)
    assert [draft.sql.split()[1] for draft, _ in database.drafts] == ["COUNT(*)"]


def test_the_file_has_bird_s_fields(folder: Path) -> None:
    record = json.loads((folder / "dev.json").read_text())[0]
    bird = {"question_id", "db_id", "question", "evidence", "SQL", "difficulty"}
    assert set(record) == bird | {"cocte"}
    path = folder / "dev_databases" / record["db_id"] / f"{record['db_id']}.sqlite"
    assert path.is_file()


@pytest.mark.parametrize("most_tables", [2, 3, 4])
def test_no_database_has_more_tables_than_asked_for(most_tables: int) -> None:
    size = SyntheticSize(24, 0, 1, templates=("count",), most_tables=most_tables)
    found = [
        len(synthetic_database.schema.tables)
        for synthetic_database in synthetic_databases(0, "train", size)
    ]
    assert max(found) == most_tables
    assert min(found) == 2
    assert all(
        len(one.rows) == num
        for one, num in zip(synthetic_databases(0, "train", size), found, strict=True)
    )
