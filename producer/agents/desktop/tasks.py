"""The tasks of the desktop: how a seed varies each task, its query, and the steps that solve it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random
from shlex import quote
from typing import Final, Literal, NamedTuple

from producer.agents.desktop.home import BAR_HEIGHT_PX
from producer.agents.task_source import NamedSource
from producer.errors import UsageError
from producer.task import Task
from schemas.actions import Action, Click, KeyPress, Type, Wait
from schemas.advice import did_you_mean

SOURCE: Final = "desktop"
SCREEN_PX: Final = (800, 600)
MAX_STEPS: Final = 40
DESCRIPTION: Final = "On the desktop, do what the text of the first screenshot asks for."
NAMES: Final = ("apples", "birds", "clouds", "garden", "letter", "music", "report", "travel")
WORDS: Final = ("amber", "copper", "harbor", "lantern", "meadow", "pepper", "river", "timber")
PLACES: Final = ("Documents", "Pictures")
TEXT_FILES: Final = 'for f in *.txt; do echo "$f: $(cat "$f")"; done'
"""Prints names and contents of the text files."""
EDITOR_SETTINGS: Final = {"Word Wrap": 5, "Line Numbers": 6, "Auto Indent": 7}
"""Maps an entry of the editor's menu to its line in the editor's settings."""
BUTTONS_X: Final = {"Editor": 24, "Calculator": 80, "Files": 135}
"""Maps a button of the task bar to the x of its middle, px."""
EDITOR_FILE: Final = ".config/l3afpad/l3afpadrc"
CALCULATOR_FILE: Final = ".config/galculator/galculator.conf"
CALCULATOR_MODES: Final = {"scientific": 1, "paper": 2}
"""Maps a mode of the calculator to its number in the calculator's settings."""


class Step(NamedTuple):
    """One action of the oracle."""

    window: str
    """Text that the active window's title must contain; the oracle waits until it does."""
    action: Action


@dataclass(frozen=True, slots=True)
class Goal:
    """A task as varied by a seed."""

    instruction: str
    setup: tuple[str, ...]
    """Shell commands, run in the home folder."""
    query: str
    """Shell command that judges the task, run in the home folder."""
    expected: str
    """Output of the query if the task is solved, stripped."""
    steps: tuple[Step, ...]
    """The oracle's actions."""


def _open(label: str) -> Step:
    """Click an application's button on the task bar."""
    return Step("", Click(x=BUTTONS_X[label], y=SCREEN_PX[1] - BAR_HEIGHT_PX // 2))


def _press(window: str, *keys: str) -> Step:
    return Step(window, KeyPress(keys=keys))


def _pause(window: str) -> Step:
    return Step(window, Wait(duration_s=0.5))


def _choose(window: str, path: str) -> tuple[Step, ...]:
    """Enter a file name in the dialog that opens or saves a file."""
    return Step(window, Type(text=path)), _pause(window), _press(window, "enter")


def _written(path: str, name: str, text: str) -> tuple[Step, ...]:
    """Write a new file with the editor."""
    return (
        _open("Editor"),
        Step("(Untitled)", Type(text=text)),
        _press("(Untitled)", "ctrl", "s"),
        *_choose("Save As", path),
        _pause(name),
    )


def _changed(name: str, *changes: Step) -> tuple[Step, ...]:
    """Open a file in the editor, change it and save it."""
    return (
        _open("Editor"),
        _press("(Untitled)", "ctrl", "o"),
        *_choose("Open", f"~/{name}"),
        *changes,
        _press(f"*{name}", "ctrl", "s"),
        _pause(name),
    )


def _selected(name: str) -> tuple[Step, ...]:
    """Find a file in the file manager by its name."""
    return (
        _open("Files"),
        _pause("home"),  # the file manager lists the folder only after showing its window
        Step("home", Type(text=name)),
        _pause("home"),
        _press("home", "escape"),
    )


def _calculated(keys: str) -> tuple[Step, ...]:
    """Type keys into the calculator, which ignores a key pressed again within 0.25 s."""
    parts = [""]
    for key in keys:
        if key in parts[-1]:
            parts.append("")
        parts[-1] += key
    typed = [(Step("galculator", Type(text=part)), _pause("galculator")) for part in parts]
    return (*chain.from_iterable(typed), _press("galculator", "enter"))


def _text(random: Random) -> str:
    return f"{random.choice(WORDS)} {random.randrange(100, 1000)}"


def _write_note(random: Random) -> Goal:
    name, text = f"{random.choice(NAMES)}.txt", _text(random)
    return Goal(
        f'In the editor, write the line "{text}" and save it in your home folder as {name}.',
        (),
        f"cat {name}",
        text,
        _written(f"~/{name}", name, text),
    )


def _write_in_folder(random: Random) -> Goal:
    place, name, text = random.choice(PLACES), f"{random.choice(NAMES)}.txt", _text(random)
    return Goal(
        f'In the editor, write the line "{text}" and save it in the folder {place} as {name}.',
        (),
        f"cat {place}/{name}",
        text,
        _written(f"~/{place}/{name}", name, text),
    )


def _add_line(random: Random) -> Goal:
    name, text, more = f"{random.choice(NAMES)}.txt", _text(random), _text(random)
    return Goal(
        f'In your home folder is the file {name}. Add a second line to it, "{more}", and save it.',
        (f"echo {quote(text)} > {name}",),
        f"cat {name}",
        f"{text}\n{more}",
        _changed(name, _press(name, "ctrl", "end"), Step(name, Type(text=more))),
    )


def _rename_file(random: Random) -> Goal:
    old, new, other = random.sample(NAMES, 3)
    text, kept = _text(random), _text(random)
    return Goal(
        f"In the file manager, rename the file {old}.txt to {new}.txt.",
        (f"echo {quote(text)} > {old}.txt", f"echo {quote(kept)} > {other}.txt"),
        TEXT_FILES,
        "\n".join(sorted((f"{new}.txt: {text}", f"{other}.txt: {kept}"))),
        (
            *_selected(f"{old}.txt"),
            _press("home", "f2"),
            _press("Rename", "ctrl", "a"),
            Step("Rename", Type(text=f"{new}.txt")),
            _press("Rename", "enter"),
            _pause("home"),
        ),
    )


def _make_folder(random: Random) -> Goal:
    name = f"{random.choice(NAMES)}-{random.randrange(10, 100)}"
    return Goal(
        f"In the file manager, make a folder called {name} in your home folder.",
        (),
        'for f in */; do echo "$f"; done',
        "\n".join(sorted((*(f"{place}/" for place in PLACES), f"{name}/"))),
        (
            _open("Files"),
            _press("home", "ctrl", "shift", "n"),
            Step("Creating New Folder", Type(text=name)),
            _press("Creating New Folder", "enter"),
            _pause("home"),
        ),
    )


def _calculate(random: Random) -> Goal:
    name, first, second = random.choice(NAMES), random.randrange(12, 100), random.randrange(12, 100)
    return Goal(
        f"Work out {first} * {second} with the calculator, and save the result with the editor"
        f" in your home folder as {name}.txt.",
        (),
        f"cat {name}.txt",
        str(first * second),
        (
            _open("Calculator"),
            *_calculated(f"{first}*{second}"),
            _press("galculator", "ctrl", "c"),
            _open("Editor"),
            _press("(Untitled)", "ctrl", "v"),
            _press("*(Untitled)", "ctrl", "s"),
            *_choose("Save As", f"~/{name}.txt"),
            _pause(f"{name}.txt"),
        ),
    )


def _set_editor(random: Random) -> Goal:
    entry = random.choice(list(EDITOR_SETTINGS))
    line = EDITOR_SETTINGS[entry]
    # The menu's entries are Font, followed by these three.
    downs = list(EDITOR_SETTINGS).index(entry) + 1
    return Goal(
        f'In the editor, switch the option "{entry}" on, then close the editor.',
        (),
        f"sed -n {line}p {EDITOR_FILE}",
        "1",
        (
            _open("Editor"),
            _press("(Untitled)", "alt", "o"),
            *(_press("(Untitled)", "down") for _ in range(downs)),
            _press("(Untitled)", "enter"),
            _press("(Untitled)", "ctrl", "q"),
            _pause(""),
        ),
    )


def _replace_word(random: Random) -> Goal:
    name = f"{random.choice(NAMES)}.txt"
    first, old, last, new = random.sample(WORDS, 4)
    return Goal(
        f'In your home folder is the file {name}. Replace its second line by "{new}", and save it.',
        (f"printf '%s\\n' {first} {old} {last} > {name}",),
        f"cat {name}",
        f"{first}\n{new}\n{last}",
        _changed(
            name,
            _press(name, "ctrl", "home"),
            _press(name, "down"),
            _press(name, "shift", "end"),
            Step(name, Type(text=new)),
        ),
    )


def _delete_file(random: Random) -> Goal:
    old, *others = random.sample(NAMES, 3)
    kept = {f"{name}.txt": _text(random) for name in others}
    return Goal(
        f"In the file manager, move the file {old}.txt to the trash.",
        (
            f"echo {quote(_text(random))} > {old}.txt",
            *(f"echo {quote(text)} > {name}" for name, text in kept.items()),
        ),
        TEXT_FILES,
        "\n".join(sorted(f"{name}: {text}" for name, text in kept.items())),
        (
            *_selected(f"{old}.txt"),
            _press("home", "delete"),
            _press("Confirm", "enter"),
            _pause("home"),
        ),
    )


def _set_calculator(random: Random) -> Goal:
    mode = random.choice(list(CALCULATOR_MODES))
    return Goal(
        f"Switch the calculator to its {mode} mode, then close it.",
        (),
        f"grep ^mode= {CALCULATOR_FILE}",
        f"mode={CALCULATOR_MODES[mode]}",
        (
            _open("Calculator"),
            _press("galculator", "alt", "v"),
            _press("galculator", mode[0]),
            _press("galculator", "ctrl", "q"),
            _pause(""),
        ),
    )


DRAWS: Final[Mapping[str, Callable[[Random], Goal]]] = {
    "write-note": _write_note,
    "write-in-folder": _write_in_folder,
    "add-line": _add_line,
    "rename-file": _rename_file,
    "make-folder": _make_folder,
    "calculate": _calculate,
    "set-editor": _set_editor,
    "replace-line": _replace_word,
    "delete-file": _delete_file,
    "set-calculator": _set_calculator,
}
"""Maps a task's name to a function that makes its goal, given the seed's random generator."""
HELD_OUT: Final = frozenset({"replace-line", "delete-file", "set-calculator"})


def goal_of(name: str, seed: int) -> Goal:
    """The goal of a task for this seed. Raises KeyError for an unknown name."""
    return DRAWS[name](Random(f"{name}/{seed}"))  # noqa: S311  # names and numbers, not secrets


def desktop_task(name: str) -> Task:
    """The task of this name. Its details are drawn with the episode's seed."""
    return Task(
        task_id=name,
        name=name,
        description=DESCRIPTION,
        difficulty=None,
        category=None,
        max_steps=MAX_STEPS,
        validation_query=None,
        expected_result=None,
        source_type=SOURCE,
        split="eval" if name in HELD_OUT else "train",
        judge="environment",
    )


class DesktopSource(NamedSource):
    """Tasks on the desktop. Without names or a split, all of them."""

    source_type: Literal["desktop"]

    def load(self, where: str) -> Sequence[Task]:
        """The tasks in the order of the names or of `DRAWS`."""
        if self.names is None:
            return [
                desktop_task(name)
                for name in DRAWS
                if self.split in {None, "held_out" if name in HELD_OUT else "train"}
            ]
        if unknown := [name for name in self.names if name not in DRAWS]:
            message = (
                f"{where}.names: no task is called {', '.join(map(repr, unknown))}."
                f"{did_you_mean(unknown[0], DRAWS)} The names: {', '.join(DRAWS)}"
            )
            raise UsageError(message)
        return [desktop_task(name) for name in self.names]
