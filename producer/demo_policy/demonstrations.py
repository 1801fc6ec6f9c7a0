"""Episodes of the simulated phone's oracle for a policy to imitate, with deliberate noise, and what every screen shows at which place.

In part of the steps something random is done instead, so that the policy sees states off the path and how to get back. It knows no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from PIL import Image

from producer.codecs.compact import CompactCodec
from producer.demo_policy.words import pieces
from producer.environments.android_sim import AndroidSim, Element
from producer.environments.android_sim.oracle.oracles import oracle_action, random_action
from producer.environments.android_sim.screens.widget import HEIGHT_PX, WIDTH_PX
from producer.environments.android_sim.state.apps import APPS
from producer.environments.environment import ActionRefusedError
from producer.seeds import derived_seed
from producer.task import Task
from schemas.actions import Action, Click

MAX_NAME_WORDS = 3
APP_LABELS = {f"{app.key}_icon": app.label for app in APPS}
KINDS = frozenset({"icon", "switch", "row", "tile", "slider", "button", "field", "tab", "use"})


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """What is to be said about one screen."""

    elements: tuple[Element, ...]
    """What can be touched on it."""
    text: str
    """What was said."""
    is_noise: bool
    """Said at random."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One episode to imitate."""

    task: Task
    screens: tuple[Image.Image, ...]
    """Before each turn."""
    turns: tuple[SpokenTurn, ...]


def demonstrate(task: Task, seed: int, *, noise: float, max_turns: int) -> Demonstration:
    """One episode, to the oracle's last word or `max_turns`.

    The same arguments give the same episode.

    `noise` is the share of random actions, 0 to 1. Phones come from a seed space of their own,
    which no training or evaluation draws from.
    """
    random = Random(derived_seed("demonstration", task.task_id, seed))  # noqa: S311  # variety, not secrets
    sim, codec = AndroidSim(), CompactCodec()
    sim.start(task, derived_seed("demonstration-phone", seed, task.task_id))
    screens: list[Image.Image] = []
    turns: list[SpokenTurn] = []
    while len(turns) < max_turns:
        screens.append(sim.picture())
        elements = tuple(sim.visible_elements())
        is_noise = random.random() < noise
        action = random_action(random, sim) if is_noise else oracle_action(task, sim, codec)[1]
        text = codec.encode(action, WIDTH_PX, HEIGHT_PX)
        turns.append(SpokenTurn(elements, _naming(text, action, elements), is_noise))
        if action.type == "terminate":
            break
        try:
            sim.perform(codec.parse(text, WIDTH_PX, HEIGHT_PX)[0].action or action)
        except ActionRefusedError:
            continue
    sim.close()
    return Demonstration(task, tuple(screens), tuple(turns))


def label_of(element: Element) -> str:
    """What is written on an element, or what it is called where nothing is written.

    Icons of the dock bear no label.
    """
    return element.label or APP_LABELS.get(element.name) or element.name.replace("_", " ")


def spoken_name(element: Element) -> str:
    """An element's name as the policy says it.

    The words of its label, without numbers (they would run into the coordinates) and kinds.

    A kind says nothing of which: with `settings icon` the last word, which the place is found by,
    was the same for every icon.
    """
    words = [
        piece for piece in pieces(label_of(element)) if piece[0].isalpha() and piece not in KINDS
    ]
    return " ".join(words[:MAX_NAME_WORDS])


def _naming(text: str, action: Action, elements: Sequence[Element]) -> str:
    """The call with the name of what it touches before each coordinate.

    `click(chrome 31,chrome 52)`.

    Said once, before x only, y would have to remember it: the row of an icon was right in half of
    the cases where the column was in all.
    """
    if not isinstance(action, Click):
        return text
    touched = [
        one
        for one in elements
        if one.box[0] <= action.x < one.box[2]
        and one.box[1] <= action.y < one.box[3]
        and spoken_name(one)
    ]
    if not touched:
        return text
    smallest = min(touched, key=lambda one: (one.box[2] - one.box[0]) * (one.box[3] - one.box[1]))
    return text.replace("(", f"({spoken_name(smallest)} ", 1).replace(
        ",", f",{spoken_name(smallest)} ", 1
    )


def spread(tasks: Sequence[Task], num: int) -> list[tuple[Task, int]]:
    """`num` (task, seed) pairs, tasks in turn."""
    return [(tasks[index % len(tasks)], index // len(tasks)) for index in range(num)]
