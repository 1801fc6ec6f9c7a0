"""Are the demo tasks sound? An oracle must solve each within its turns.

Doing nothing must never, and chance hardly ever.

Runs episodes on the simulated phone; prints nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from producer.environments.android_sim.device.sim import AndroidSim
from producer.environments.android_sim.oracle.navigator import SWIPES
from producer.environments.android_sim.oracle.oracles import oracle_action
from producer.environments.android_sim.screens.widget import HEIGHT_PX, WIDTH_PX
from producer.environments.environment import ActionRefusedError
from producer.task import Task
from producer.validators.judge import judge
from schemas.actions import Action, Click, SystemButton, Wait

Agent = Callable[[Task, AndroidSim], Action]
NUM_RANDOM_EPISODES: Final = 24
"""Per task: with the limit below, a task that chance solves in one of six episodes is flagged in
under 2 % of all draws."""
MAX_RANDOM_SHARE: Final = 1 / 3
"""Above this, blind actions solve a task so often that its reward says little about the agent."""


@dataclass(frozen=True, slots=True)
class Soundness:
    """What the agents did with one task."""

    task_id: str
    num_seeds: int
    oracle_successes: int
    """Solved and said so, within max_steps."""
    oracle_turns: int
    """Most turns that the oracle took, the closing one included."""
    max_steps: int
    idle_successes: int
    """Solved by doing nothing."""
    num_random: int
    random_successes: int
    """Solved, at the end of all turns, by blind actions."""

    @property
    def is_sound(self) -> bool:
        """Whether the task may be trained on."""
        by_chance = self.random_successes / self.num_random if self.num_random else 0.0
        return (
            self.oracle_successes == self.num_seeds
            and self.idle_successes == 0
            and by_chance <= MAX_RANDOM_SHARE
        )


def check_tasks(
    tasks: Sequence[Task], *, num_seeds: int, num_random: int = NUM_RANDOM_EPISODES
) -> Iterator[Soundness]:
    """Each judged task's soundness, as it is found; seeds are 0 .. num_seeds - 1."""
    for task in tasks:
        if not task.is_judged:
            continue
        oracle = [run_episode(task, seed, _oracle) for seed in range(num_seeds)]
        idle = [run_episode(task, seed, _idle).is_solved for seed in range(num_seeds)]
        blind = [run_episode(task, seed, blind_agent(seed)).is_solved for seed in range(num_random)]
        yield Soundness(
            task_id=task.task_id,
            num_seeds=num_seeds,
            oracle_successes=sum(episode.is_solved and episode.has_ended for episode in oracle),
            oracle_turns=max((episode.turns for episode in oracle), default=0),
            max_steps=task.max_steps,
            idle_successes=sum(idle),
            num_random=num_random,
            random_successes=sum(blind),
        )


@dataclass(frozen=True, slots=True)
class Episode:
    """How one attempt ended."""

    is_solved: bool
    has_ended: bool
    """The agent said that it was done."""
    turns: int


def run_episode(task: Task, seed: int, agent: Agent) -> Episode:
    """One attempt on a fresh phone; what the phone refuses costs a turn."""
    sim = AndroidSim()
    sim.open(task, seed)
    turns, has_ended = 0, False
    while turns < task.max_steps and not has_ended:
        action = agent(task, sim)
        turns += 1
        has_ended = action.type == "terminate"
        try:
            sim.act(action)
        except ActionRefusedError:
            continue
    is_solved = judge(task, sim.shell).success
    sim.close()
    return Episode(is_solved, has_ended, turns)


def _oracle(task: Task, sim: AndroidSim) -> Action:
    return oracle_action(task, sim)[1]


def _idle(task: Task, sim: AndroidSim) -> Action:  # noqa: ARG001  # it looks at nothing
    return Wait()


def blind_agent(seed: int) -> Agent:
    """Actions at random, without a look.

    Mostly taps anywhere, some swipes, now and then a system button.
    """
    random = Random(f"blind/{seed}")  # noqa: S311  # chance, not secrets

    def act(task: Task, sim: AndroidSim) -> Action:  # noqa: ARG001
        kind = random.choices(("tap", "swipe", "button"), (70, 20, 10))[0]
        if kind == "tap":
            return Click(x=random.randrange(WIDTH_PX), y=random.randrange(HEIGHT_PX))
        if kind == "swipe":
            return random.choice(list(SWIPES.values()))
        return SystemButton(button=random.choice(("home", "back", "recents")))

    return act
