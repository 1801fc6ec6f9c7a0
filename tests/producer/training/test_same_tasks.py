"""A training goes on with the tasks it was begun with, or is refused: sources are read again."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from producer.config import RunConfig
from producer.emit import Emitter
from producer.errors import UsageError
from producer.resume.open_training import open_training
from producer.training.run import run, utc_now
from schemas.installation import Installation
from tests.support.reading import ReadLog
from tests.support.small_run import small

SETTINGS = {
    "task_id": "open",
    "description": "Open the Settings app.",
    "validation_query": "current_app",
    "expected": "com.android.settings",
    "max_steps": 4,
}
WIFI = {
    "task_id": "wifi",
    "description": "Enable Wi-Fi.",
    "setup": ["settings put global wifi_on 0"],
    "validation_query": "wifi_enabled",
    "expected": "True",
    "max_steps": 6,
}


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., RunConfig]:
    """A configuration whose file holds the given tasks now."""

    def asked(in_file: list[dict[str, object]], /, **changes: object) -> RunConfig:
        path = tmp_path / "tasks.json"
        path.write_text(json.dumps(in_file))
        source = {"source_type": "file", "file_path": str(path)}
        return small(**{"tasks": source, "skip_baseline": True, "eval_episodes": 1, **changes})

    return asked


@pytest.mark.parametrize(
    ("tasks", "change"),
    [
        ([SETTINGS], "'wifi' is gone"),
        ([WIFI, SETTINGS], "they stand in another order"),
        ([SETTINGS, WIFI, {**WIFI, "task_id": "wi-fi"}], "'wi-fi' is new"),
        ([SETTINGS, {**WIFI, "description": "Switch Wi-Fi on."}], "'wifi' has another description"),
        ([SETTINGS, {**WIFI, "setup": []}], "'wifi' has another definition"),
        (
            [{**SETTINGS, "max_steps": 5, "expected": "com.android.camera"}, WIFI],
            "'open' has another max_steps and expected_result",
        ),
    ],
)
def test_a_training_whose_file_of_tasks_changed_is_refused_and_records_nothing(
    installation: Installation,
    asked: Callable[..., RunConfig],
    read_log: ReadLog,
    tasks: list[dict[str, object]],
    change: str,
) -> None:
    run(asked([SETTINGS, WIFI], num_steps=1), installation=installation)
    before = read_log()
    with pytest.raises(UsageError, match=f"begun with other tasks: .*{change}") as refused:
        run(asked(tasks, num_steps=2), installation=installation)
    assert "--behavior-if-log-dir-exists overwrite" in str(refused.value)
    assert read_log() == before
    assert run(asked([SETTINGS, WIFI], num_steps=2), installation=installation).steps == 2


def test_evaluation_tasks_are_compared_too(
    installation: Installation, asked: Callable[..., RunConfig]
) -> None:
    known = {"source_type": "ids", "task_ids": ["train_01_open_settings"]}
    source = asked([SETTINGS]).tasks
    run(asked([SETTINGS], tasks=known, eval_tasks=source, num_steps=1), installation=installation)
    with pytest.raises(UsageError, match="'open' is gone, 'wifi' is new"):
        run(asked([WIFI], tasks=known, eval_tasks=source, num_steps=2), installation=installation)


def test_overwriting_accepts_other_tasks_and_what_goes_on_from_there_has_them(
    installation: Installation, asked: Callable[..., RunConfig]
) -> None:
    run(asked([SETTINGS], num_steps=1), installation=installation)
    overwriting = asked([WIFI], num_steps=1, behavior_if_log_dir_exists="overwrite")
    assert run(overwriting, installation=installation).generation == 1
    with pytest.raises(UsageError, match="'wifi' is gone, 'open' is new"):
        run(asked([SETTINGS], num_steps=2), installation=installation)
    assert run(asked([WIFI], num_steps=2), installation=installation).generation == 1


def test_tasks_accepted_by_a_process_that_was_killed_at_once_stay_accepted(
    installation: Installation, asked: Callable[..., RunConfig]
) -> None:
    run(asked([SETTINGS], num_steps=1), installation=installation)
    folder = installation.runs_dir / "small"
    with Emitter.open(installation) as emitter:
        open_training(
            emitter, "small", asked([WIFI]), folder, clock=utc_now, overwrite=True, takeover=True
        )
    summary = run(asked([WIFI], num_steps=1), installation=installation, takeover=True)
    assert (summary.status, summary.steps) == ("completed", 1)
