"""`cua-train tasks sheet` draws how tasks begin, into one file."""

import json
import re
from base64 import b64decode
from functools import partial
from pathlib import Path

import pytest

from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.sim.device.sim import AndroidSim
from tests.support.cua_train import CuaTrain


@pytest.fixture
def sheet(cua_train: CuaTrain) -> CuaTrain:
    return partial(cua_train, "tasks", "sheet")


def pictures(text: str) -> dict[str, bytes]:
    """Task -> PNG."""
    found = re.findall(r'<figure id="([^"]+)"><img [^>]*base64,([^"]+)">', text)
    return {name: b64decode(content) for name, content in found}


def test_it_has_the_first_screen_of_every_demo_task(sheet: CuaTrain, tmp_path: Path) -> None:
    file = tmp_path / "tasks.html"
    facts = json.loads(sheet("--seed", "3", "--output", str(file), "--json").stdout)
    text = file.read_text()
    assert facts == {
        "output": str(file),
        "num_tasks": 100,
        "size_bytes": len(text.encode()),
    }
    drawn = pictures(text)
    assert list(drawn) == [task.task_id for task in demo_tasks()]
    task = demo_tasks()[6]
    assert drawn[task.task_id] == AndroidSim().open(task, 3).png
    assert "Leave the app and go to the home screen." in text
    assert "easy · navigation · 3 turns · is_home_screen = True" in text


def test_instructions_stay_text_and_nothing_is_fetched(sheet: CuaTrain, tmp_path: Path) -> None:
    tasks = [{"task_id": "a", "description": "<script>alert(1)</script>"}]
    (tmp_path / "mine.json").write_text(json.dumps(tasks))
    file = tmp_path / "mine.html"
    sheet("--tasks", str(tmp_path / "mine.json"), "--output", str(file))
    text = file.read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script" not in text
    assert set(re.findall(r' (?:src|href)="(.{22})', text)) == {"data:image/png;base64,"}


def test_a_file_that_exists_is_replaced_only_on_request(sheet: CuaTrain, tmp_path: Path) -> None:
    file = tmp_path / "tasks.html"
    file.write_text("mine")
    source = '{"source_type": "ids", "task_ids": ["train_07_go_home"]}'
    words = ("--tasks", source, "--output", str(file))
    assert "exists; name another file" in sheet(*words, expected=2).stderr
    assert file.read_text() == "mine"
    sheet(*words, "--overwrite")
    assert list(pictures(file.read_text())) == ["train_07_go_home"]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ('{"source_type": "text_to_sql"}', "text_to_sql"),
        ('{"source_type": "ids", "task_ids": ["nothing"]}', "no demo task is called 'nothing'"),
        ("{", "is neither an existing file nor valid JSON"),
    ],
)
def test_tasks_that_no_phone_can_begin_are_refused(
    sheet: CuaTrain, tmp_path: Path, source: str, says: str
) -> None:
    file = tmp_path / "tasks.html"
    assert says in sheet("--tasks", source, "--output", str(file), expected=2).stderr
    assert not file.exists()


def test_a_file_that_would_not_be_named_for_what_it_holds_is_refused(
    sheet: CuaTrain, tmp_path: Path
) -> None:
    file = tmp_path / "tasks.png"
    assert "name a file that ends in .html" in sheet("--output", str(file), expected=2).stderr
    assert not file.exists()
