"""Oracles: the next good action for a task, and a random one, from the phone's true state.

Used for warm-up demonstrations, for checking that tasks can be solved, and in tests.
"""

from random import Random

from producer.agents.android.shell_judge import judge
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.navigator import SWIPES, Navigator, tap_at
from producer.agents.android.sim.oracle.strategies import STRATEGIES, NoOracleError
from producer.agents.android.sim.screens.widget import HEIGHT_PX, WIDTH_PX
from producer.codecs.codec import Codec
from producer.codecs.compact import CompactCodec
from producer.task import Task
from schemas.actions import Action, Click, SystemButton, Terminate, Wait


def oracle_action(task: Task, sim: AndroidSim, codec: Codec | None = None) -> tuple[str, Action]:
    """The next action towards solving the task, as text and parsed back from it.

    The action has the codec's resolution (None: CompactCodec). Stateless, so it can be called in
    any state of the phone. NoOracleError.
    """
    codec = codec or CompactCodec()
    action: Action = (
        Terminate(status="success")
        if judge(task, sim.shell).success
        else _next_action(task, Navigator(sim))
    )
    text = codec.encode(action, WIDTH_PX, HEIGHT_PX)
    parsed = codec.parse(text, WIDTH_PX, HEIGHT_PX)[0].action
    assert parsed is not None  # noqa: S101  # a codec parses what it encoded
    return text, parsed


def random_action(random: Random, sim: AndroidSim) -> Action:
    """A mistake: half of the time a tap on a visible element, else a tap, swipe, button or wait."""
    elements = sim.visible_elements()
    kind = random.choices(("element", "point", "swipe", "button", "wait"), (50, 15, 20, 12, 3))[0]
    match kind:
        case "element" if elements:
            return tap_at(random.choice(elements))
        case "swipe":
            return random.choice(list(SWIPES.values()))
        case "button":
            return SystemButton(button=random.choice(("home", "back", "recents")))
        case "wait":
            return Wait()
        case _:
            return Click(x=random.randrange(WIDTH_PX), y=random.randrange(HEIGHT_PX))


def _next_action(task: Task, navigator: Navigator) -> Action:
    query = task.validation_query or ""
    strategy = STRATEGIES.get(query)
    if strategy is None:
        message = f"no oracle for task {task.task_id}: its query {query!r} has no strategy"
        raise NoOracleError(message)
    return strategy(navigator, task)
