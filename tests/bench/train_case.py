"""What one step of the training bench samples: prompts with screenshots of the simulated phone.

Knows neither trainer. Reads a case's sizes, writes the policy that both load, and draws screens.
"""

from dataclasses import dataclass
from pathlib import Path

from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.policy.build import PolicySize, build_policy
from producer.agents.android.sim.device.sim import AndroidSim
from producer.environments.environment import Screenshot
from producer.seeds import derived_seed
from producer.task import Task


@dataclass(frozen=True, slots=True)
class Case:
    """Sizes of one step."""

    num_prompts: int = 4
    group_size: int = 8
    """Completions of each prompt."""
    num_turns: int = 1
    """Screenshots, and answers to them, of each completion's dialogue."""
    num_tokens: int = 24
    """Of each answer."""
    lora_rank: int = 16
    lora_alpha: float = 32.0
    learning_rate: float = 1e-5

    @property
    def num_rollouts(self) -> int:
        """Completions of one step."""
        return self.num_prompts * self.group_size


@dataclass(frozen=True, slots=True)
class PromptGroup:
    """A task and the screens of its group's dialogues."""

    task: Task
    first: Screenshot
    """Of the prompt: the same for the whole group."""
    later: tuple[tuple[Screenshot, ...], ...]
    """Of each rollout the screens of its turns after the first."""

    def screens(self, rollout: int) -> tuple[Screenshot, ...]:
        """Of all turns of one rollout."""
        return (self.first, *self.later[rollout])


def write_policy(folder: Path, size: PolicySize | None = None) -> None:
    """The phone's policy with random weights, in transformers' layout."""
    build_policy(folder, [task.description for task in demo_tasks()], seed=0, size=size)


def draw_step(case: Case, step: int) -> list[PromptGroup]:
    """The step's prompts; every screen is another phone's, so that no two are equal."""
    tasks = demo_tasks()
    return [
        PromptGroup(
            task := tasks[(step * case.num_prompts + prompt) % len(tasks)],
            _screen(task, step, prompt, 0, 0),
            tuple(
                tuple(
                    _screen(task, step, prompt, rollout, turn) for turn in range(1, case.num_turns)
                )
                for rollout in range(case.group_size)
            ),
        )
        for prompt in range(case.num_prompts)
    ]


def _screen(task: Task, *place: int) -> Screenshot:
    """The first screen of a phone of its own."""
    sim = AndroidSim()
    shot = sim.open(task, derived_seed("bench-train", *place))
    sim.close()
    return shot


def reward_of(last_answer: list[int]) -> float:
    """Of a completion, by its last answer's tokens: cheap, and seldom equal within a group."""
    return sum(at * token for at, token in enumerate(last_answer, start=1)) % 1000 / 1000
