"""Oracles: the next good action for a task, and a random one, from the phone's true state.

Used for warm-up demonstrations, for checking that tasks can be solved, in tests, and as a scripted
policy that exercises the whole system without torch: it has no weights, so it learns nothing.
"""

from collections.abc import Sequence
from random import Random
from typing import Literal
from uuid import UUID

from producer.agents.android.queries import find_query
from producer.agents.android.shell_judge import judge, single_query_tasks
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.navigator import SWIPES, Navigator, tap_at
from producer.agents.android.sim.oracle.strategies import STRATEGIES, NoOracleError
from producer.agents.android.sim.screens.widget import HEIGHT_PX, WIDTH_PX
from producer.codecs.codec import Codec
from producer.codecs.compact import CompactCodec
from producer.policy.policy import Completion, SampleRequest
from producer.policy.scripted_learner import ScriptedLearner
from producer.task import Task
from schemas.actions import Action, Click, SystemButton, Terminate, Wait


def oracle_action(task: Task, sim: AndroidSim, codec: Codec | None = None) -> tuple[str, Action]:
    """The next action towards solving the task, as text and parsed back from it.

    The action has the resolution of `codec`, by default CompactCodec. Stateless, so it can be
    called in any state of the phone. Raises NoOracleError.
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
    """The next action towards the first goal not yet reached; goals about the screen come last."""
    goals = sorted(
        single_query_tasks(task), key=lambda goal: _is_on_screen(goal.validation_query or "")
    )
    left = [goal for goal in goals if not judge(goal, navigator.sim.shell).success]
    task = (left or goals[-1:] or [task])[0]
    query = task.validation_query or ""
    strategy = STRATEGIES.get(query)
    if strategy is None:
        message = f"no oracle for task {task.task_id}: its query {query!r} has no strategy"
        raise NoOracleError(message)
    return strategy(navigator, task)


def _is_on_screen(query: str) -> bool:
    known = find_query(query)
    commands = ("dumpsys window", "dumpsys activity", "uiautomator dump")
    return known is not None and known.command.startswith(commands)


NUM_LOST_TURNS = 2
"""Number of random actions on a task whose goal is unknown before the policy gives up."""


class NoisyOracle(ScriptedLearner):
    """A `Learner` that takes the oracle's action, or with probability `noise` a random one.

    It cannot solve a task whose goal it does not know (one without a device query, or whose query
    has no strategy): it acts at random for two turns, then ends with a random report. A completion
    depends only on (`seed`, request.seed) and the phone's state. Never blocks.
    """

    def __init__(self, *, noise: float, seed: int) -> None:
        """`noise` is the probability of a random action; raises ValueError if it is invalid."""
        super().__init__(noise=noise, seed=seed)
        self._devices: dict[UUID, AndroidSim] = {}
        self._codec = CompactCodec()

    def attach(self, episode: UUID, device: AndroidSim) -> None:
        """Let the oracle read this episode's phone until `forget`."""
        self._devices[episode] = device

    def sample(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """One action per request."""
        return [self._sample(request) for request in requests]

    def forget(self, episode: UUID) -> None:
        """Detach the episode's phone."""
        self._devices.pop(episode, None)

    def _sample(self, request: SampleRequest) -> Completion:
        sim = self._devices[request.episode]
        random = Random(f"{self._seed}/{request.seed}")  # noqa: S311  # noise, not secrets
        width, height = request.screen.width_px, request.screen.height_px
        if random.random() < self._noise:
            text = self._codec.encode(random_action(random, sim), width, height)
        else:
            text = self._best(request, sim, random)
        return Completion(text=text, actions=self._codec.parse(text, width, height), tokens=None)

    def _best(self, request: SampleRequest, sim: AndroidSim, random: Random) -> str:
        try:
            if request.task.validation_query is not None:
                return oracle_action(request.task, sim, self._codec)[0]
        except NoOracleError:
            pass
        width, height = request.screen.width_px, request.screen.height_px
        if len(request.history) < NUM_LOST_TURNS:
            return self._codec.encode(random_action(random, sim), width, height)
        status: Literal["success", "failure"] = random.choice(("success", "failure"))
        return self._codec.encode(Terminate(status=status), width, height)
