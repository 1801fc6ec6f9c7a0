"""Demonstrations: the first screens of pages' episodes, and the click of the oracle on each.

Imports no torch.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from PIL import Image
from pydantic import TypeAdapter

from producer.agents.android.policy.demonstrations import (
    DemonstratedTurn,
    Demonstration,
    with_element_names,
)
from producer.agents.android.sim.screens.widget import Element
from producer.agents.miniwob.environment import MiniWobEnvironment
from producer.agents.miniwob.episode_page import HEIGHT_PX, WIDTH_PX
from producer.agents.miniwob.oracle_policy import oracle_action
from producer.codecs.compact import CompactCodec
from producer.seeds import derived_seed
from producer.task import Task

MAX_SHIFT_PX: Final = 8
"""Half a patch: a word's place relative to the patches can then be any."""
_ELEMENTS: Final[TypeAdapter[list[tuple[str, tuple[int, int, int, int]]]]] = TypeAdapter(
    list[tuple[str, tuple[int, int, int, int]]]
)


def demonstrate(task: Task, seeds: Sequence[int]) -> Iterator[Demonstration]:
    """One click for each seed; leaves out seeds whose target is outside the screen.

    The seeds become the page's own range, which neither training nor evaluation uses. Raises
    EnvironmentFailedError, ValueError for a page whose oracle does not begin with a click.
    """
    environment = MiniWobEnvironment()
    try:
        environment.open(task, 0)
        for seed in seeds:
            shown = environment.restart(derived_seed("demonstration-page", task.task_id, seed))
            action = oracle_action(environment, task.task_id, [])
            if action is None or action.type != "click":
                message = f"the oracle of {task.task_id} begins with {action}, not with a click"
                raise ValueError(message)
            if 0 <= action.x < WIDTH_PX and 0 <= action.y < HEIGHT_PX:
                elements = visible_elements(environment)
                text = CompactCodec().encode(action, WIDTH_PX, HEIGHT_PX)
                text = with_element_names(text, action, elements)
                # As the prompt of an episode's first turn shows both.
                asked = replace(task, description=f"{task.description}\n\n{shown.text}")
                screen = Image.open(io.BytesIO(shown.png)).convert("RGB")
                turn = DemonstratedTurn(elements, text, is_noise=False)
                yield Demonstration(asked, (screen,), (turn,))
    finally:
        environment.close()


def visible_elements(environment: MiniWobEnvironment) -> tuple[Element, ...]:
    """The page's elements with the words that the policy calls them; after an oracle's action."""
    found = environment.evaluate("() => ELEMENTS().map(({ label, box }) => [label, box])")
    return tuple(Element("", label, box, None) for label, box in _ELEMENTS.validate_python(found))


def shifted(demonstration: Demonstration, random: Random) -> Demonstration:
    """Its screen moved by up to `MAX_SHIFT_PX`, without an action to imitate."""
    (screen,), (turn,) = demonstration.screens, demonstration.turns
    dx, dy = (random.randint(-MAX_SHIFT_PX, MAX_SHIFT_PX) for _ in range(2))
    moved = Image.new("RGB", screen.size, "white")
    moved.paste(screen, (dx, dy))
    elements = tuple(
        replace(element, box=(left + dx, top + dy, right + dx, bottom + dy))
        for element in turn.elements
        for left, top, right, bottom in (element.box,)
        if 0 <= left + right + 2 * dx < 2 * WIDTH_PX and 0 <= top + bottom + 2 * dy < 2 * HEIGHT_PX
    )
    turn = DemonstratedTurn(elements, "", is_noise=True)
    return Demonstration(demonstration.task, (moved,), (turn,))
