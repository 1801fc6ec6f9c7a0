"""Tasks of one or two goals on the phone: turn Wi-Fi off, then open Chrome.

A goal switches a setting, opens a page of Settings or opens an app. Tasks of two goals switch a
setting first. `train` and `held_out` share no pair of goals, in either order, but every goal occurs
in both. Only the final state is judged, not the order. Airplane mode switches radios off, so in two
pairs (Wi-Fi or Bluetooth on, then airplane mode on) the second goal has to be reached first; both
pairs are held out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

from producer.agents.android.sim.state.apps import APPS, CORE, SETTINGS
from producer.agents.android.sim.state.settings_tree import ACTIVITY_PAGES, PAGE_OF, PAGES, SWITCHES
from producer.task import Task
from schemas.ids import content_hash

GOAL_SPLITS: Final = ("single", "train", "held_out")
"""`single`: tasks of one goal. `train`: pairs for training. `held_out`: pairs that training never
uses."""
HELD_OUT_THRESHOLD: Final = 0.78
"""A pair is held out if its hash, as a number from 0 to 1, is below this threshold: 264 of 344
pairs."""
SOURCE_TYPE: Final = "phone_goals"


@dataclass(frozen=True, slots=True)
class Goal:
    """One state of the phone to reach."""

    name: str
    """Identifier, such as `wifi-off`."""
    words: str
    """Wording in an instruction: `turn Wi-Fi off`."""
    query: str
    expected: str
    setup: str = ""
    """Shell command that undoes the goal before the episode; empty if a new phone never satisfies
    it."""
    page: str = ""
    """Page of the settings app where the goal is reached; empty for an app."""


SWITCHED: Final = (
    ("wifi", "Wi-Fi", "wifi_enabled"),
    ("bluetooth", "Bluetooth", "bluetooth_enabled"),
    ("airplane", "Airplane mode", "airplane_mode"),
    ("location", "Location", "location_enabled"),
    ("battery_saver", "Battery saver", "battery_saver_enabled"),
    ("auto_rotate", "Auto-rotate", "auto_rotate_enabled"),
    ("dark_theme", "Dark theme", "dark_theme_enabled"),
    ("dnd", "Do Not Disturb", "dnd_enabled"),
    ("call_vibration", "Vibrate for calls", "call_vibration_enabled"),
)
"""(switch of the settings app, its name in instructions, device query) tuples."""
OPENED_PAGES: Final = ("wifi", "bluetooth", "display", "sound", "battery", "location")
"""Pages of the settings app that are goals."""


def _switch_goals() -> Iterator[Goal]:
    for name, label, query in SWITCHED:
        row = SWITCHES[name]
        for is_on, word in ((False, "off"), (True, "on")):
            yield Goal(
                name=f"{name}-{word}".replace("_", "-"),
                words=f"turn {label} {word}",
                query=query,
                expected=str(is_on),
                setup=f"settings put {row.namespace} {row.key} {row.off if is_on else row.on}",
                page=PAGE_OF[name],
            )


def _place_goals() -> Iterator[Goal]:
    activities = {page: activity for activity, page in ACTIVITY_PAGES.items()}
    for page in OPENED_PAGES:
        title = PAGES[page].title
        words = f"open the {title} page"
        name = f"{title.lower()}-page"
        yield Goal(name, words, "current_activity", activities[page], page=page)
    for app in APPS:
        if app.package in CORE and app.package != SETTINGS:
            yield Goal(app.key, f"open {app.label}", "current_app", app.package)


def _pairs() -> Iterator[tuple[Goal, Goal]]:
    """Pairs of a switch and a page (not its own) or an app, and pairs of two switches."""
    switches, places = tuple(_switch_goals()), tuple(_place_goals())
    for switch in switches:
        yield from ((switch, place) for place in places if switch.page != place.page)
    for first, second in combinations(switches, 2):
        if first.query != second.query:
            yield first, second


def _task(goals: tuple[Goal, ...], split: str) -> Task:
    words = ", then ".join(goal.words for goal in goals)
    return Task(
        task_id="+".join(goal.name for goal in goals),
        name=words[0].upper() + words[1:],
        description=f"{words[0].upper()}{words[1:]}.",
        difficulty="easy" if len(goals) == 1 else "medium",
        category="settings",
        max_steps=6 if len(goals) == 1 else 10,
        validation_query=" & ".join(goal.query for goal in goals),
        expected_result=" & ".join(goal.expected for goal in goals),
        setup=tuple(goal.setup for goal in goals if goal.setup),
        source_type=SOURCE_TYPE,
        split="eval" if split == "held_out" else "train",
    )


@lru_cache(maxsize=len(GOAL_SPLITS))
def goal_tasks(split: str) -> tuple[Task, ...]:
    """The tasks of one split, in a fixed order."""
    if split == "single":
        return tuple(_task((goal,), split) for goal in (*_switch_goals(), *_place_goals()))
    tasks = []
    for pair in _pairs():
        place = int(content_hash([goal.name for goal in pair])[:8], 16) / 16**8
        if (place < HELD_OUT_THRESHOLD) == (split == "held_out"):
            tasks.append(_task(pair, split))
    return tuple(tasks)


def every_goal_task() -> tuple[Task, ...]:
    """The tasks of all splits."""
    return tuple(task for split in GOAL_SPLITS for task in goal_tasks(split))
