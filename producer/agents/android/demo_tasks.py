"""The demo tasks: 80 for training and 20 for evaluation, read from `demo_tasks.tsv`.

Tasks whose device query is not in `queries.py` have no validator; they are listed but cannot be
judged (`Task.is_judged`).
"""

import csv
from functools import lru_cache
from importlib.resources import files
from typing import Final, Literal

from producer.agents.android.queries import find_query
from producer.task import Split, Task

FILE: Final = "demo_tasks.tsv"
SETUP_SEPARATOR: Final = "; "
DIFFICULTIES: Final[dict[str, Literal["easy", "medium", "hard"]]] = {
    "easy": "easy",
    "medium": "medium",
    "hard": "hard",
}


@lru_cache(maxsize=1)
def demo_tasks() -> tuple[Task, ...]:
    """All demo tasks, in the order of the file."""
    text = files("producer.agents.android").joinpath(FILE).read_text(encoding="utf-8")
    return tuple(
        _task(row)
        for row in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    )


def _task(row: dict[str, str]) -> Task:
    split: Split = "eval" if row["task_id"].startswith("eval_") else "train"
    is_known = find_query(row["query"]) is not None
    return Task(
        task_id=row["task_id"],
        name=row["name"],
        description=row["description"],
        difficulty=DIFFICULTIES[row["difficulty"]],
        category=row["category"],
        max_steps=int(row["max_steps"]),
        validation_query=row["query"] if is_known else None,
        expected_result=row["expected"] if is_known else None,
        setup=tuple(row["setup"].split(SETUP_SEPARATOR)) if row["setup"] else (),
        tags=(row["tags"],) if row["tags"] else (),
        source_type="demo_eval" if split == "eval" else "demo_training",
        split=split,
    )


SHORT_TASK_IDS: tuple[str, ...] = (
    "train_01_open_settings",
    "train_02_enable_wifi",
    "train_03_max_brightness",
    "train_04_open_chrome",
    "train_05_airplane_mode",
    "train_06_check_battery",
    "train_08_enable_bluetooth",
    "train_09_disable_wifi",
    "train_10_disable_bluetooth",
    "train_12_open_wifi_settings",
    "train_13_open_bluetooth_settings",
    "train_14_open_display_settings",
    "train_15_open_sound_settings",
    "train_22_open_dialer",
    "train_23_open_messages",
    "train_24_open_camera",
    "train_25_open_gallery",
    "train_53_open_contacts",
)
"""Tasks of two or three taps: open an app, open or change a setting. The default of real phones.
Excluded are sliders, text fields and long scrolling, and tasks that can be solved without looking
at the screen (home, recents, shade)."""
