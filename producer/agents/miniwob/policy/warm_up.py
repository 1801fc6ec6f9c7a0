"""Builds and warms up the small policy of the pages."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import torch

from producer.agents.android.policy.build import PolicySize, build_policy, image_processor
from producer.agents.android.policy.examples import EncodedEpisode, encode_demonstrations
from producer.agents.android.policy.imitation import GROUNDING_PROMPT
from producer.agents.android.policy.recipe import WarmUpRecipe
from producer.agents.android.policy.vocabulary import element_label
from producer.agents.android.policy.warm_up import train
from producer.agents.built_policy import OnStep
from producer.agents.miniwob.pages import web_pages
from producer.agents.miniwob.policy.demonstrations import demonstrate, shifted
from producer.agents.miniwob.policy.recipe import SCREEN_PIXELS
from producer.agents.miniwob.tasks import page_task
from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.task import Task

SIZE: Final = PolicySize(screen_pixels=SCREEN_PIXELS)
SHIFTS_PER_SCREEN: Final = 2
"""Moved copies of each demonstration's screen, for the alignment."""
EPISODES_PER_CHUNK: Final = 20
"""Demonstrations of one page that are made between two progress reports."""


class Encoded(NamedTuple):
    """Demonstrations of one page."""

    episodes: list[EncodedEpisode]
    moved: list[EncodedEpisode]
    """Their screens, moved."""


def build_unwarmed(folder: Path, texts: Iterable[str], seed: int) -> None:
    """Write the policy with random weights; its vocabulary covers the texts."""
    build_policy(folder, texts, seed, SIZE)


def make_policy(folder: Path, on_step: OnStep, recipe: WarmUpRecipe) -> None:
    """Write the warmed-up policy into an empty folder."""
    episodes: list[EncodedEpisode] = []
    moved: list[EncodedEpisode] = []
    for chunk in _demonstrations(recipe):
        on_step(0, None)
        episodes += chunk.episodes
        moved += chunk.moved
    build_unwarmed(folder, _texts(episodes), recipe.seed)
    train(folder, episodes, recipe, on_step, seen=moved)


def _demonstrations(recipe: WarmUpRecipe) -> Iterator[Encoded]:
    """All demonstrations in order, each chunk on one page, chunks in parallel."""
    processor = image_processor(SIZE)
    tasks = [page_task(web_pages()[name]) for name in recipe.task_ids]
    seeds = range(recipe.num_episodes // len(tasks))
    chunks = [
        (task, seeds[start : start + EPISODES_PER_CHUNK])
        for task in tasks
        for start in range(0, len(seeds), EPISODES_PER_CHUNK)
    ]

    def make_chunk(chunk: tuple[Task, Sequence[int]]) -> Encoded:
        task, own_seeds = chunk
        random = Random(f"{task.task_id}/{own_seeds[0]}")  # noqa: S311  # variety, not secrets
        shown = list(demonstrate(task, own_seeds))
        moved = [shifted(one, random) for one in shown for _ in range(SHIFTS_PER_SCREEN)]
        return Encoded(
            encode_demonstrations(shown, processor), encode_demonstrations(moved, processor)
        )

    return parallel_map(make_chunk, chunks, torch.device("cpu"))


def _texts(episodes: Sequence[EncodedEpisode]) -> set[str]:
    """Texts that the vocabulary covers: instructions, completions and words of elements."""
    texts = {GROUNDING_PROMPT}
    for episode in episodes:
        texts.add(episode.instruction)
        for turn in episode.turns:
            texts |= {turn.text, *(element_label(element) for element in turn.elements)}
    return texts
