"""Makes the default policy, or finds the one that is there.

The folder's name hashes the recipe, so another recipe is another policy.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from producer.demo_policy.build import PolicySize, build_policy, image_processor
from producer.demo_policy.demonstrations import demonstrate, label_of, spread
from producer.demo_policy.examples import (
    CHUNK,
    EncodedEpisode,
    encode_demonstrations,
    encode_episodes,
)
from producer.demo_policy.grounding import learn_to_see
from producer.demo_policy.imitation import POINTING_PROMPT, Phase, learn_to_act
from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.policy.torch_policy.network import load_base
from producer.policy.torch_policy.state import sync_files
from producer.task import Task
from producer.tasks.demo import demo_tasks
from producer.tasks.preset import PRESET_TASK_IDS
from schemas.ids import content_hash

OnProgress = Callable[[str, int, int, float | None], None]
"""(name of the policy, optimiser steps done, in all, loss); no loss while demonstrations are drawn.
"""

VERSION = 4
"""Raised when the code below makes another policy of the same recipe."""


@dataclass(frozen=True, slots=True)
class WarmUpRecipe:
    """Everything that decides what comes out."""

    task_ids: tuple[str, ...] = PRESET_TASK_IDS
    num_episodes: int = 1000
    noise: float = 0.3
    """Share of random actions in the episodes; they are lived through and not imitated."""
    max_turns: int = 6
    seeing_steps: int = 250
    seeing_rate: float = 5e-3
    phases: tuple[Phase, ...] = (Phase(140, 0, 24), Phase(120, 16, 6))
    """Pointing first, for it is the hard part; then acting with some pointing."""
    acting_rate: float = 3e-3
    matrix_rate: float = 1e-2
    seed: int = 0


def ensure_demo_policy(
    policies_dir: Path, on_progress: OnProgress, recipe: WarmUpRecipe | None = None
) -> Path:
    """The folder of the warm policy, made when it is not there.

    A second process waits for the first to finish making it.

    A folder appears whole or not at all. Whatever `on_progress` raises ends the making.
    """
    recipe = recipe or WarmUpRecipe()
    folder = policies_dir / f"demo-{content_hash([VERSION, asdict(recipe)])[:12]}"
    if folder.is_dir():
        return folder
    policies_dir.mkdir(parents=True, exist_ok=True)
    with (policies_dir / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder
        for left in policies_dir.glob(
            f".making-{folder.name}-*"
        ):  # by a process that was killed: we hold the lock
            shutil.rmtree(left, ignore_errors=True)
        making = Path(tempfile.mkdtemp(dir=policies_dir, prefix=f".making-{folder.name}-"))
        try:
            _make(
                making,
                recipe,
                lambda done, total, loss: on_progress(folder.name, done, total, loss),
            )
            making.chmod(0o755)
            sync_files(making)
            making.rename(folder)
            _sync(policies_dir)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return folder


def _make(
    folder: Path, recipe: WarmUpRecipe, on_step: Callable[[int, int, float | None], None]
) -> None:
    known = {task.task_id: task for task in demo_tasks()}
    tasks = [known[task_id] for task_id in recipe.task_ids]
    total = recipe.seeing_steps + sum(phase.num_steps for phase in recipe.phases)

    episodes: list[EncodedEpisode] = []
    for seen in _draw(tasks, recipe):
        on_step(0, total, None)
        episodes += seen
    build_policy(folder, _texts(episodes), recipe.seed)
    network, processor = load_base(str(folder))
    examples = encode_episodes(episodes, processor, int(network.config.image_token_id))
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        learn_to_see(
            network,
            processor,
            examples,
            num_steps=recipe.seeing_steps,
            learning_rate=recipe.seeing_rate,
            seed=recipe.seed,
            on_step=lambda done, loss: on_step(done, total, loss),
        )
        learn_to_act(
            network,
            processor,
            examples,
            recipe.phases,
            learning_rate=recipe.acting_rate,
            matrix_rate=recipe.matrix_rate,
            seed=recipe.seed,
            on_step=lambda done, loss: on_step(recipe.seeing_steps + done, total, loss),
        )
    network.eval().requires_grad_(requires_grad=True)
    network.save_pretrained(folder)


def _draw(tasks: Sequence[Task], recipe: WarmUpRecipe) -> Iterator[list[EncodedEpisode]]:
    """All demonstrations in order, in chunks that are drawn side by side."""
    processor = image_processor(PolicySize())
    pairs = spread(tasks, recipe.num_episodes)

    def chunk(start: int) -> list[EncodedEpisode]:
        drawn = (
            demonstrate(task, seed, noise=recipe.noise, max_turns=recipe.max_turns)
            for task, seed in pairs[start : start + CHUNK]
        )
        return encode_demonstrations(drawn, processor)

    return parallel_map(chunk, range(0, len(pairs), CHUNK), torch.device("cpu"))


def _texts(episodes: list[EncodedEpisode]) -> set[str]:
    """Everything whose words must be tokens.

    All demo instructions (other tasks may be tried), what was said, what stands on screens.
    """
    texts = {task.description for task in demo_tasks()} | {POINTING_PROMPT}
    for turn in (turn for episode in episodes for turn in episode.turns):
        texts.add(turn.text)
        for element in turn.elements:
            texts |= {label_of(element), element.state or ""}
    return texts


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
