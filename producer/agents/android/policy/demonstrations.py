"""Demonstrations: episodes of the simulated phone's oracle, with random actions mixed in.

Random actions lead to screens off the shortest path, from which the oracle demonstrates the way
back. Imports no torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from PIL import Image

from producer.agents.android.policy.vocabulary import element_name
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.oracles import oracle_action, random_action
from producer.agents.android.sim.screens.widget import HEIGHT_PX, WIDTH_PX, Element
from producer.codecs.compact import CompactCodec
from producer.environments.environment import ActionRefusedError
from producer.seeds import derived_seed
from producer.task import Task
from schemas.actions import Action, Click


@dataclass(frozen=True, slots=True)
class DemonstratedTurn:
    """One turn of a demonstration."""

    elements: tuple[Element, ...]
    """The elements on the screen that can be touched."""
    text: str
    """The completion to imitate."""
    is_noise: bool
    """Whether the action was drawn at random and is therefore not imitated."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One episode to imitate."""

    task: Task
    screens: tuple[Image.Image, ...]
    """The screen before each turn."""
    turns: tuple[DemonstratedTurn, ...]


def demonstrate(task: Task, seed: int, *, noise: float, max_turns: int) -> Demonstration:
    """One episode until the oracle terminates it, or `max_turns`; deterministic.

    `noise` is the probability of a random action, 0 to 1. Demonstrations use their own range of
    phone seeds, which neither training nor evaluation uses.
    """
    random = Random(derived_seed("demonstration", task.task_id, seed))  # noqa: S311  # variety, not secrets
    sim, codec = AndroidSim(), CompactCodec()
    sim.start(task, derived_seed("demonstration-phone", seed, task.task_id))
    screens: list[Image.Image] = []
    turns: list[DemonstratedTurn] = []
    while len(turns) < max_turns:
        screens.append(sim.picture())
        elements = tuple(sim.visible_elements())
        is_noise = random.random() < noise
        action = random_action(random, sim) if is_noise else oracle_action(task, sim, codec)[1]
        text = codec.encode(action, WIDTH_PX, HEIGHT_PX)
        turns.append(
            DemonstratedTurn(elements, with_element_names(text, action, elements), is_noise)
        )
        if action.type == "terminate":
            break
        try:
            sim.perform(codec.parse(text, WIDTH_PX, HEIGHT_PX)[0].action or action)
        except ActionRefusedError:
            continue
    sim.close()
    return Demonstration(task, tuple(screens), tuple(turns))


def task_seed_pairs(tasks: Sequence[Task], num: int) -> list[tuple[Task, int]]:
    """`num` distinct (task, seed) pairs, cycling through the tasks."""
    return [(tasks[index % len(tasks)], index // len(tasks)) for index in range(num)]


def with_element_names(text: str, action: Action, elements: Sequence[Element]) -> str:
    """The call with the clicked element's name before each coordinate.

    For example `click(chrome 31,chrome 52)`. With the name before x only, y has to recall it from
    further back; then the row of an icon was right half as often as the column.
    """
    if not isinstance(action, Click):
        return text
    clicked = [
        element
        for element in elements
        if element.box[0] <= action.x < element.box[2]
        and element.box[1] <= action.y < element.box[3]
        and element_name(element)
    ]
    if not clicked:
        return text
    name = element_name(min(clicked, key=_area))
    return text.replace("(", f"({name} ", 1).replace(",", f",{name} ", 1)


def _area(element: Element) -> int:
    left, top, right, bottom = element.box
    return (right - left) * (bottom - top)
