"""Task sources give the tasks they select, or an error that names the wrong field."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from pydantic import JsonValue

from producer.errors import UsageError
from producer.tasks.sources import DefaultJudge, load_tasks
from producer.validators.judges import check_judge

QUIET: dict[str, JsonValue] = {
    "task_id": "quiet",
    "description": "Mute the media.",
    "validation_query": "media_volume",
    "expected": "0",
}


def custom(*tasks: JsonValue, **more: JsonValue) -> dict[str, JsonValue]:
    return {"source_type": "custom", "custom_tasks": [*tasks], **more}


def quiet(**changes: JsonValue) -> dict[str, JsonValue]:
    """A source of one task with changed fields."""
    return custom({**QUIET, **changes})


def ids(source: JsonValue) -> list[str]:
    return [task.task_id for task in load_tasks(source)]


def test_demo_sources_give_the_tasks_that_can_be_judged() -> None:
    assert len(ids({"source_type": "demo_training"})) == 74
    assert len(ids({"source_type": "demo_eval"})) == 19
    assert len(ids({"source_type": "demo_all"})) == 93
    assert len(load_tasks({"source_type": "demo_all"}, judged_only=False)) == 100


def test_a_list_is_its_sources_one_after_the_other() -> None:
    assert ids(
        [
            {"source_type": "ids", "task_ids": ["train_04_open_chrome", "train_01_open_settings"]},
            custom(QUIET),
        ]
    ) == [
        "train_04_open_chrome",
        "train_01_open_settings",
        "quiet",
    ]


def test_filters_come_before_the_limit_and_the_seed_decides_which_are_drawn() -> None:
    easy = ids({"source_type": "demo_training", "difficulty": "easy", "category": "app"})
    assert easy == [
        "train_01_open_settings",
        "train_04_open_chrome",
        "train_22_open_dialer",
        "train_23_open_messages",
        "train_24_open_camera",
        "train_25_open_gallery",
        "train_53_open_contacts",
    ]
    three: dict[str, JsonValue] = {
        "source_type": "demo_training",
        "difficulty": "easy",
        "category": "app",
        "limit": 3,
    }
    drawn = {seed: ids({**three, "seed": seed}) for seed in range(20)}
    assert ids(three) == ids({**three, "seed": 42}), "42 is the seed of a source that names none"
    assert all(
        len(item) == 3 and item == [task_id for task_id in easy if task_id in item]
        for item in drawn.values()
    )
    assert len({tuple(item) for item in drawn.values()}) > 5
    assert ids({**three, "limit": 99}) == easy


@pytest.mark.parametrize(
    "text", [json.dumps([QUIET]), json.dumps(QUIET) + "\n\n"], ids=["json", "json lines"]
)
def test_a_file_holds_tasks_as_a_custom_source_does(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(text)
    (task,) = load_tasks({"source_type": "file", "file_path": str(path)})
    assert (task.task_id, task.name, task.expected_result, task.max_steps, task.source_type) == (
        "quiet",
        "quiet",
        "0",
        20,
        "file",
    )


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            {"source_type": "demo"},
            r"tasks\.source_type: unknown value 'demo'\. Did you mean 'demo_all'\?.*demo_eval",
        ),
        (
            {"source_type": "demo_all", "limits": 3},
            r"tasks\.limits: unknown field\. Did you mean 'limit'\? The fields are source_type,",
        ),
        (
            {"source_type": "demo_all", "limit": 0},
            r"tasks\.limit: 0 is out of range; it must be at least 1",
        ),
        ({"source_type": "demo_all", "difficulty": "tricky"}, r"tasks\.difficulty"),
        (
            {"source_type": "demo_all", "category": "games"},
            r"no task has category 'games'\. .*navigation",
        ),
        ({"source_type": "demo_all", "task_ids": ["x"]}, r"tasks\.task_ids: unknown field"),
        ({"source_type": "ids"}, r"tasks\.task_ids: required by source_type 'ids'$"),
        ({}, r"tasks\.source_type: required\. Use one of demo_training, .*custom"),
        ({"source_type": "ids", "task_ids": "x"}, r"tasks\.task_ids: \"x\" is not a list"),
        ({"source_type": "demo_all", "seed": "x"}, r"tasks\.seed: \"x\" is not an integer"),
        ({"source_type": "demo_all", "limit": True}, r"tasks\.limit: true is not an integer"),
        (quiet(max_steps=True), r"custom_tasks\[0\]\.max_steps: true is not an integer"),
        (
            quiet(max_steps=10**12),
            r"max_steps: 1000000000000 is out of range; it must be at most 1,000,000",
        ),
        (custom(3), r"custom_tasks\[0\]: 3 is not an object"),
        ({"source_type": "ids", "task_ids": ["train_99"]}, r"tasks\.task_ids: .*called 'train_99'"),
        (
            {"source_type": "ids", "task_ids": ["train_02_enable_wfi"]},
            r"Did you mean 'train_02_enable_wifi'\?",
        ),
        ({"source_type": "ids", "task_ids": [" "]}, r"tasks\.task_ids\[0\]: must not be empty"),
        ({"source_type": "ids", "task_ids": ["a\nb"]}, r"task_ids\[0\]: .*control characters"),
        (
            {"source_type": "ids", "task_ids": ["train_68_create_app_folder"]},
            r"have no validator: train_68",
        ),
        (
            [{"source_type": "demo_all"}, {"source_type": "file", "file_path": "/no/such/file"}],
            r"tasks\[1\]\.file_path",
        ),
        (
            quiet(validation_query="mood"),
            r"custom_tasks\[0\]\.validation_query: unknown device query 'mood'.*wifi_enabled",
        ),
        (
            quiet(validation_query="wifi"),
            r"unknown device query 'wifi'\. Did you mean 'wifi_\w+'\?",
        ),
        (
            quiet(turns=3),
            r"custom_tasks\[0\]\.turns: unknown field\. The fields are task_id, .*max_steps",
        ),
        (quiet(expected=None), r"custom_tasks\[0\]\.expected: "),
        (
            quiet(expected="silent"),
            r"custom_tasks\[0\]\.expected: media_volume answers a whole number from 0 to 100 perc",
        ),
        (
            quiet(expected=True),
            r"custom_tasks\[0\]\.expected: media_volume answers .*, never 'True'",
        ),
        (
            quiet(validation_config={"a": "b"}),
            r"custom_tasks\[0\]\.validation_config: no query takes parameters; leave it out",
        ),
        (quiet(max_steps=0), r"custom_tasks\[0\]\.max_steps"),
        (custom({"task_id": "a"}), r"custom_tasks\[0\]\.description"),
        (custom({"task_id": "a", "description": "b"}), r"have no validator: a; .*--judge agent"),
        (custom("Open it", judge="none"), r"never judged \(judge none\)"),
        (custom("  "), r"custom_tasks\[0\]\.\w+: "),
        (custom("a", judge="me"), r"tasks\.judge: 'me' is no judge; use agent, none, or the URL"),
        ({"source_type": "demo_all", "judge": "agent"}, r"tasks\.judge: unknown field"),
        (
            custom("a", judge="agent", judge_model="x"),
            r"tasks\.judge_model: only with a judge that is the URL",
        ),
        ({"source_type": "demo_all", "training_name": "x"}, r"tasks\.training_name: unknown field"),
        (
            [
                custom(QUIET),
                quiet(expected="1"),
            ],
            r"tasks: the task_id 'quiet' has two different definitions; give one of them another",
        ),
        ([], "give at least one"),
        ("demo_all", "a source is an object such as"),
    ],
)
def test_whatever_is_wrong_is_a_usage_error_that_names_the_field(
    source: JsonValue, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        load_tasks(source)


def test_an_instruction_alone_is_a_task_that_the_judge_of_its_source_or_of_the_run_judges() -> None:
    source: dict[str, JsonValue] = {
        "source_type": "custom",
        "custom_tasks": ["Open the Settings app", "\u6253\u5f00\u8bbe\u7f6e", "?!", QUIET],
    }
    tasks = load_tasks(source, default=DefaultJudge("agent"))
    # The last eight hexadecimal digits: `printf %s 'Open the Settings app' | sha256sum`.
    assert [(task.task_id, task.validation_type) for task in tasks] == [
        ("open_the_settings_app_78e7008f", "agent"),
        ("\u6253\u5f00\u8bbe\u7f6e_37aa6ad6", "agent"),
        ("task_" + sha256(b"?!").hexdigest()[:8], "agent"),
        ("quiet", "shell"),
    ]
    assert (tasks[0].name, tasks[0].description) == ("Open the Settings app",) * 2
    own = load_tasks(
        {**source, "judge": "HTTP://host:1/v1/chat/completions/".lower(), "judge_model": "j"},
        default=DefaultJudge("agent"),
    )
    assert [(task.judge, task.judge_model) for task in own] == [
        *[("http://host:1/v1", "j")] * 3,
        (None, None),
    ]


@pytest.mark.parametrize(
    ("url", "recorded"),
    [
        ("http://host", "http://host/v1"),
        ("https://host:8000/v1/", "https://host:8000/v1"),
        ("http://[::1]:8000/api/v3", "http://[::1]:8000/api/v3"),
    ],
)
def test_a_judges_url_has_one_form(url: str, recorded: str) -> None:
    assert check_judge(url) == recorded


@pytest.mark.parametrize(
    "url",
    [
        *("", "Agent", "ftp://host/v1", "http://", "http:///v1", "host:8000/v1", "http://h:99999"),
        *("http://user@host/v1", "http://u:p@host/v1", "http://host/v1?key=1", "http://h/v1#k"),
        "http://host/v 1",
    ],
)
def test_a_judge_is_refused_that_is_none_or_whose_url_could_hold_a_secret(url: str) -> None:
    with pytest.raises(ValueError, match="judge"):
        check_judge(url)


def test_tasks_that_nobody_judges_are_kept_where_they_may_be() -> None:
    source: JsonValue = custom("Open it", judge="none")
    (task,) = load_tasks(source, allow_unjudged=True)
    assert not task.is_judged
    assert len(load_tasks({"source_type": "demo_all"}, allow_unjudged=True)) == 93


def test_a_task_that_is_given_twice_is_kept_once_at_its_first_place() -> None:
    chrome = "train_04_open_chrome"
    assert ids(
        [
            {"source_type": "ids", "task_ids": [chrome, "train_01_open_settings", chrome]},
            {"source_type": "demo_training", "category": "app", "difficulty": "easy", "limit": 99},
        ]
    )[:3] == [chrome, "train_01_open_settings", "train_22_open_dialer"]


def test_a_file_that_cannot_be_read_as_tasks_says_where(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(QUIET) + "\n" + json.dumps({**QUIET, "turns": 3}) + "\n")
    with pytest.raises(UsageError, match=r"tasks\.jsonl\[1\]\.turns"):
        load_tasks({"source_type": "file", "file_path": str(path)})
    path.write_text("{")
    with pytest.raises(UsageError, match="neither a JSON array nor JSON lines"):
        load_tasks({"source_type": "file", "file_path": str(path)})
    path.write_text("")
    with pytest.raises(UsageError, match="at least one task"):
        load_tasks({"source_type": "file", "file_path": str(path)})


def test_names_in_any_script_are_accepted_and_compared_in_one_form(tmp_path: Path) -> None:
    path = tmp_path / "\u4efb\u52a1.jsonl"
    decomposed = {
        **QUIET,
        "task_id": "e\u0301teindre",
        "name": "\u6253\u5f00\u65e0\u7ebf\u7f51\u7edc",
    }
    line = {**QUIET, "task_id": "\u9759\u97f3/1", "description": "a\u2028b\u0085c"}
    rows = "\n".join(json.dumps(row, ensure_ascii=False) for row in (decomposed, line))
    path.write_text("\ufeff" + rows, encoding="utf-8")
    first, second = load_tasks({"source_type": "file", "file_path": str(path)})
    assert (first.task_id, first.name) == ("\u00e9teindre", "\u6253\u5f00\u65e0\u7ebf\u7f51\u7edc")
    assert (second.task_id, second.description) == ("\u9759\u97f3/1", "a\u2028b\u0085c")


@pytest.mark.parametrize("size", [1_000, 1_001])
def test_an_id_has_at_most_as_many_bytes_as_an_index_takes(size: int, tmp_path: Path) -> None:
    """Whatever the source; an instruction alone gets a short id."""
    task_id, long = "a" * size, "字" * 4_000
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps([{"task_id": task_id, "description": long}, long]))
    sources: list[JsonValue] = [
        {"source_type": "file", "file_path": str(file)},
        {"source_type": "custom", "custom_tasks": [{"task_id": task_id, "description": long}]},
    ]
    for source in sources:
        if size > 1_000:
            with pytest.raises(UsageError, match="task_id must have at most 1000 bytes of UTF-8"):
                load_tasks(source, judged_only=False)
        else:
            assert load_tasks(source, judged_only=False)[0].task_id == task_id
