"""Sampling and updating a small policy on one core and on all cores, alternately.

    python -m tests.bench.cpu_parallel FOLDER [--rounds 3] [--keep-freed-memory] [--unmerged]

--keep-freed-memory: as the default policy runs (producer.policy.torch_policy.memory). --unmerged:
sample without merging the adapter (producer.policy.torch_policy.adapters).
"""

import argparse
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import torch

from producer.agents.android.demo_tasks import SHORT_TASK_IDS, demo_tasks
from producer.agents.android.sim.device.sim import AndroidSim
from producer.algorithms.settings import UpdateSettings
from producer.environments.environment import ActionRefusedError, Screenshot
from producer.policy.compute_settings import PolicySettings
from producer.policy.learner import Learner, Trajectory
from producer.policy.policy import Completion, SampleRequest, Turn
from producer.policy.torch_policy import adapters
from producer.policy.torch_policy.memory import keep_freed_memory
from producer.policy.torch_policy.open import open_in_process
from producer.task import Task
from tests.support.turns import past_turn, trained_turn
from tests.support.update_settings import NO_OUTCOME

NUM_GROUPS, GROUP_SIZE, MAX_TURNS, MAX_TOKENS = 16, 8, 6, 14
SETTINGS = UpdateSettings(
    loss_fn="importance_sampling",
    learning_rate=1e-3,
    num_substeps=2,
    temperature=1.0,
    kl_penalty_coef=0.0,
    seed=0,
)


@dataclass(slots=True)
class Episode:
    """A phone and the turns taken on it."""

    id: UUID
    task: Task
    phone: AndroidSim
    screenshot: Screenshot
    past: list[Turn] = field(default_factory=list)

    def request(self) -> SampleRequest:
        """For its next turn."""
        seed = self.id.int * MAX_TURNS + len(self.past)
        return SampleRequest(
            episode=self.id,
            task=self.task,
            history=tuple(self.past),
            screenshot=self.screenshot,
            temperature=1.0,
            max_tokens=MAX_TOKENS,
            seed=seed,
        )

    def act(self, completion: Completion) -> bool:
        """Take the turn; True if it ends the episode."""
        self.past.append(past_turn(self.screenshot, completion.text, completion.tokens))
        action = completion.actions[0].action if completion.actions else None
        if action is not None and action.type != "terminate":
            try:
                self.screenshot = self.phone.act(action)
            except ActionRefusedError:
                return False
        return action is not None and action.type == "terminate"

    def trajectory(self) -> Trajectory:
        """With an advantage of 1 or -1, so that there is a gradient."""
        turns = tuple(
            trained_turn(item.screenshot, item.tokens)
            for item in self.past
            if item.tokens is not None
        )
        return Trajectory(self.task, turns, 1.0 if self.id.int % 2 else -1.0, NO_OUTCOME)


@contextmanager
def cores(chosen: set[int]) -> Iterator[None]:
    """Run on these cores; the policy reads the affinity."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, chosen)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def measure(policy: Learner, seed: int) -> dict[str, float]:
    """One step: seconds of sampling per turn and of the update."""
    known = {task.task_id: task for task in demo_tasks()}
    episodes = []
    for number in range(NUM_GROUPS * GROUP_SIZE):
        task, phone = known[SHORT_TASK_IDS[number // GROUP_SIZE]], AndroidSim()
        episodes.append(
            Episode(
                UUID(int=seed * 1000 + number),
                task,
                phone,
                phone.open(task, seed * 1000 + number // GROUP_SIZE),
            )
        )
    running, sampling_s, num_turns = episodes, 0.0, 0
    for _ in range(MAX_TURNS):
        began_s = time.perf_counter()
        completions = policy.sample([episode.request() for episode in running])
        sampling_s += time.perf_counter() - began_s
        num_turns += len(running)
        running = [
            episode
            for episode, completion in zip(running, completions, strict=True)
            if not episode.act(completion)
        ]
        if not running:
            break
    updated = policy.update([episode.trajectory() for episode in episodes], SETTINGS)
    return {"sampling_ms_per_turn": sampling_s * 1000 / num_turns, "update_s": updated.seconds}


def main() -> int:
    """Print one JSON object per number of cores, then one of the process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a policy, such as CUA_HOME/policies/demo-...")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep-freed-memory", action="store_true")
    parser.add_argument("--unmerged", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.keep_freed_memory and not keep_freed_memory():
        parser.error("--keep-freed-memory needs glibc")
    if arguments.unmerged:
        adapters.MAX_MERGED_WEIGHTS = 0
    available = sorted(os.sched_getaffinity(0))
    rows: dict[int, list[dict[str, float]]] = {}
    for seed in range(arguments.rounds + 1):
        for num_cores in (1, len(available)):
            policy = open_in_process(PolicySettings(str(arguments.folder), lora_rank=16))
            with cores(set(available[:num_cores])):
                measured = measure(policy, seed)
            if seed:  # the first round warms caches
                rows.setdefault(num_cores, []).append(measured)
    for num_cores, row in rows.items():
        medians = {name: round(statistics.median(item[name] for item in row), 2) for name in row[0]}
        sys.stdout.write(json.dumps({"cores": num_cores, **medians}) + "\n")
    used = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.write(
        json.dumps(
            {"user_s": used.ru_utime, "system_s": used.ru_stime, "peak_mib": used.ru_maxrss // 1024}
        )
        + "\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
