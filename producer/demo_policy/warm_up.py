"""Makes the default policy, or finds the one that was made before.

Its folder's name hashes the recipe, so another recipe makes another policy.
"""

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

from producer.demo_policy.alignment import train_alignment
from producer.demo_policy.build import PolicySize, build_policy, image_processor
from producer.demo_policy.demonstrations import demonstrate, task_seed_pairs
from producer.demo_policy.examples import (
    EPISODES_PER_CHUNK,
    EncodedEpisode,
    build_examples,
    encode_demonstrations,
)
from producer.demo_policy.grounding import GROUNDING_PROMPT
from producer.demo_policy.imitation import train_imitation
from producer.demo_policy.making_progress import MakingProgress
from producer.demo_policy.making_turn import making_turn
from producer.demo_policy.recipe import OnProgress, OnWait, WarmUpRecipe
from producer.demo_policy.vocabulary import element_label
from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.policy.torch_policy.loading import load_base
from producer.policy.torch_policy.state import sync_files
from producer.task import Task
from producer.tasks.demo import demo_tasks

logger = logging.getLogger(__name__)


def ensure_demo_policy(
    policies_dir: Path,
    on_progress: OnProgress,
    recipe: WarmUpRecipe | None = None,
    *,
    on_wait: OnWait = lambda *_: None,
) -> Path:
    """The folder of the warmed-up policy, which is made if it does not exist.

    The folder appears complete or not at all. Another process that needs it meanwhile waits, unless
    the one that makes it shows no progress (it is stopped): then it makes a copy of its own. An
    exception from `on_progress` aborts the making, one from `on_wait` the waiting.
    """
    recipe = recipe or WarmUpRecipe()
    folder = policies_dir / recipe.policy_name
    if folder.is_dir():
        return folder
    policies_dir.mkdir(parents=True, exist_ok=True)
    shared = MakingProgress(policies_dir / f".{folder.name}.progress")

    def wait(holder: str) -> None:
        if (seen := shared.read()) is not None:
            on_wait(holder, *seen)

    lock_file = policies_dir / f".{folder.name}.lock"
    with making_turn(lock_file, folder.is_dir, on_wait=wait) as turn:
        if folder.is_dir():
            return folder
        # A stopped process's folder is left to it: it may go on.
        if turn.is_alone:
            for abandoned in policies_dir.glob(f".making-{folder.name}-*"):
                logger.debug("removing %s, left by a process that was killed", abandoned)
                shutil.rmtree(abandoned, ignore_errors=True)
        kind = "making" if turn.is_alone else "copying"
        making = Path(tempfile.mkdtemp(dir=policies_dir, prefix=f".{kind}-{folder.name}-"))

        def on_step(done: int, loss: float | None) -> None:
            turn.beat()
            if turn.is_alone:
                shared.write(done, recipe.num_steps, loss)
            on_progress(folder.name, done, recipe.num_steps, loss)

        try:
            _make(making, recipe, on_step)
            making.chmod(0o755)
            sync_files(making)
            _give_name(making, folder)
            sync_files(policies_dir)
        finally:
            shutil.rmtree(making, ignore_errors=True)
            if turn.is_alone:
                shared.clear()
    return folder


def _give_name(making: Path, folder: Path) -> None:
    try:
        making.rename(folder)
    except OSError:
        # Two made it, each thinking that the other had stopped: they made the same.
        if not folder.is_dir():
            raise


def _make(folder: Path, recipe: WarmUpRecipe, on_step: Callable[[int, float | None], None]) -> None:
    tasks_by_id = {task.task_id: task for task in demo_tasks()}
    tasks = [tasks_by_id[task_id] for task_id in recipe.task_ids]
    episodes: list[EncodedEpisode] = []
    for chunk in _demonstrations(tasks, recipe):
        on_step(0, None)
        episodes += chunk
    build_policy(folder, _texts(episodes), recipe.seed)
    network, processor = load_base(str(folder))
    examples = build_examples(episodes, processor, int(network.config.image_token_id))
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        train_alignment(
            network,
            processor,
            examples,
            num_steps=recipe.alignment_steps,
            learning_rate=recipe.alignment_learning_rate,
            seed=recipe.seed,
            on_step=on_step,
        )
        train_imitation(
            network,
            processor,
            examples,
            recipe.imitation_phases,
            learning_rate=recipe.imitation_learning_rate,
            muon_learning_rate=recipe.muon_learning_rate,
            seed=recipe.seed,
            on_step=lambda done, loss: on_step(recipe.alignment_steps + done, loss),
        )
    network.eval().requires_grad_(requires_grad=True)
    network.save_pretrained(folder)


def _demonstrations(tasks: Sequence[Task], recipe: WarmUpRecipe) -> Iterator[list[EncodedEpisode]]:
    """All demonstrations in order, in chunks that are made in parallel."""
    processor = image_processor(PolicySize())
    pairs = task_seed_pairs(tasks, recipe.num_episodes)

    def make_chunk(start: int) -> list[EncodedEpisode]:
        demonstrations = (
            demonstrate(task, seed, noise=recipe.noise, max_turns=recipe.max_turns)
            for task, seed in pairs[start : start + EPISODES_PER_CHUNK]
        )
        return encode_demonstrations(demonstrations, processor)

    starts = range(0, len(pairs), EPISODES_PER_CHUNK)
    return parallel_map(make_chunk, starts, torch.device("cpu"))


def _texts(episodes: Sequence[EncodedEpisode]) -> set[str]:
    """Texts that the vocabulary covers: completions, labels on screens, every demo instruction."""
    texts = {task.description for task in demo_tasks()} | {GROUNDING_PROMPT}
    for turn in (turn for episode in episodes for turn in episode.turns):
        texts.add(turn.text)
        for element in turn.elements:
            texts |= {element_label(element), element.state or ""}
    return texts
