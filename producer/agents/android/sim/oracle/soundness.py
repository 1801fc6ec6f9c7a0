"""Task soundness: the oracle always solves a task, doing nothing never does, chance rarely does.

Runs episodes on the simulated phone. A task without an oracle gets only the other two checks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from producer.agents.android.shell_judge import judge
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.navigator import SWIPES
from producer.agents.android.sim.oracle.oracles import oracle_action
from producer.agents.android.sim.oracle.strategies import NoOracleError
from producer.agents.android.sim.screens.widget import HEIGHT_PX, WIDTH_PX
from producer.environments.environment import ActionRefusedError
from producer.task import Task
from schemas.actions import Action, Click, SystemButton, Wait

Agent = Callable[[Task, AndroidSim], Action]
NUM_RANDOM_EPISODES: Final = 24
"""Episodes of random actions per task. With MAX_RANDOM_SHARE, a task that chance solves in one of
six episodes is flagged in under 2 % of checks."""
MAX_RANDOM_SHARE: Final = 1 / 3
"""If random actions succeed more often than this, the reward says little about the agent."""


@dataclass(frozen=True, slots=True)
class Soundness:
    """The result of checking one task."""

    task_id: str
    """The task."""
    num_seeds: int
    """Number of episodes run with the oracle, and of episodes without any action."""
    oracle_successes: int | None
    """Episodes that the oracle solved and terminated within `max_steps`; None if the task has no
    oracle."""
    oracle_turns: int | None
    """Turns of the oracle's longest episode, including the terminating one; None without an
    oracle."""
    max_steps: int
    """The task's limit, in turns."""
    idle_successes: int
    """Episodes solved by doing nothing."""
    num_random: int
    """Number of episodes with random actions."""
    random_successes: int
    """Episodes solved by random actions, judged after the last turn."""

    @property
    def is_sound(self) -> bool:
        """Whether the task can be trained on."""
        by_chance = self.random_successes / self.num_random if self.num_random else 0.0
        return (
            self.oracle_successes in {None, self.num_seeds}
            and self.idle_successes == 0
            and by_chance <= MAX_RANDOM_SHARE
        )


def check_tasks(
    tasks: Sequence[Task], *, num_seeds: int, num_random: int = NUM_RANDOM_EPISODES
) -> Iterator[Soundness]:
    """Check each task that a device query judges, with seeds from 0; yields as it goes."""
    for task in tasks:
        if task.validation_type != "shell":
            continue
        oracle = _oracle_episodes(task, num_seeds)
        idle = [run_episode(task, seed, _idle).is_solved for seed in range(num_seeds)]
        by_chance = [
            run_episode(task, seed, random_agent(seed)).is_solved for seed in range(num_random)
        ]
        yield Soundness(
            task_id=task.task_id,
            num_seeds=num_seeds,
            oracle_successes=None
            if oracle is None
            else sum(episode.is_solved and episode.has_terminated for episode in oracle),
            oracle_turns=None
            if oracle is None
            else max((episode.turns for episode in oracle), default=0),
            max_steps=task.max_steps,
            idle_successes=sum(idle),
            num_random=num_random,
            random_successes=sum(by_chance),
        )


@dataclass(frozen=True, slots=True)
class Episode:
    """The outcome of one episode."""

    is_solved: bool
    """The validator's verdict at the end."""
    has_terminated: bool
    """Whether the agent ended the episode itself."""
    turns: int
    """Turns taken."""


def run_episode(task: Task, seed: int, agent: Agent) -> Episode:
    """Run one episode on a new phone. A refused action costs a turn."""
    sim = AndroidSim()
    sim.start(task, seed)
    turns, has_terminated = 0, False
    while turns < task.max_steps and not has_terminated:
        action = agent(task, sim)
        turns += 1
        has_terminated = action.type == "terminate"
        try:
            sim.perform(action)
        except ActionRefusedError:
            continue
    is_solved = judge(task, sim.shell).success
    sim.close()
    return Episode(is_solved, has_terminated, turns)


def _oracle_episodes(task: Task, num_seeds: int) -> list[Episode] | None:
    try:
        return [run_episode(task, seed, _oracle) for seed in range(num_seeds)]
    except NoOracleError:
        return None


def _oracle(task: Task, sim: AndroidSim) -> Action:
    return oracle_action(task, sim)[1]


def _idle(task: Task, sim: AndroidSim) -> Action:  # noqa: ARG001  # an Agent
    return Wait()


def random_agent(seed: int) -> Agent:
    """An agent that acts blindly at random: 70 % taps, 20 % swipes, 10 % system buttons."""
    random = Random(f"blind/{seed}")  # noqa: S311  # not for secrets

    def act(task: Task, sim: AndroidSim) -> Action:  # noqa: ARG001
        kind = random.choices(("tap", "swipe", "button"), (70, 20, 10))[0]
        if kind == "tap":
            return Click(x=random.randrange(WIDTH_PX), y=random.randrange(HEIGHT_PX))
        if kind == "swipe":
            return random.choice(list(SWIPES.values()))
        return SystemButton(button=random.choice(("home", "back", "recents")))

    return act
