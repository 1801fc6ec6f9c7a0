"""Builds and warms up the default policy."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.goals import SOURCE_TYPE, every_goal_task
from producer.agents.android.policy.alignment import train_alignment
from producer.agents.android.policy.build import PolicySize, build_policy, image_processor
from producer.agents.android.policy.demonstrations import demonstrate, task_seed_pairs
from producer.agents.android.policy.examples import (
    EPISODES_PER_CHUNK,
    EncodedEpisode,
    build_examples,
    encode_demonstrations,
)
from producer.agents.android.policy.imitation import GROUNDING_PROMPT, train_imitation
from producer.agents.android.policy.recipe import WarmUpRecipe
from producer.agents.android.policy.vocabulary import element_label
from producer.agents.built_policy import OnStep
from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.policy.torch_policy.loading import load_base
from producer.task import Task


def make_policy(folder: Path, on_step: OnStep, recipe: WarmUpRecipe) -> None:
    """Write the warmed-up policy into an empty folder."""
    known = {task.task_id: task for task in (*demo_tasks(), *every_goal_task())}
    tasks = [known[task_id] for task_id in recipe.task_ids]
    episodes: list[EncodedEpisode] = []
    for chunk in _demonstrations(tasks, recipe):
        on_step(0, None)
        episodes += chunk
    build_policy(folder, _texts(episodes, tasks), recipe.seed)
    train(folder, episodes, recipe, on_step)


def train(
    folder: Path,
    episodes: Sequence[EncodedEpisode],
    recipe: WarmUpRecipe,
    on_step: OnStep,
    *,
    seen: Sequence[EncodedEpisode] = (),
) -> None:
    """Train the policy that was built in the folder on the demonstrations.

    `seen` are more of them, for the alignment alone. `on_step` gets (steps done, loss).
    """
    network, processor = load_base(str(folder))
    image_token = int(network.config.image_token_id)
    examples = build_examples(episodes, processor, image_token)
    screens = [*examples, *build_examples(seen, processor, image_token)]
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        train_alignment(network, processor, screens, recipe, on_step)
        num_aligned = recipe.alignment_steps
        train_imitation(
            network,
            processor,
            examples,
            recipe,
            lambda done, loss: on_step(num_aligned + done, loss),
        )
    network.eval().requires_grad_(requires_grad=True)
    network.save_pretrained(folder)


def _demonstrations(tasks: Sequence[Task], recipe: WarmUpRecipe) -> Iterator[list[EncodedEpisode]]:
    """Generate all demonstrations in order, in chunks that are computed in parallel."""
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


def _texts(episodes: Sequence[EncodedEpisode], tasks: Sequence[Task]) -> set[str]:
    """Texts that the vocabulary covers: completions, labels on screens and all demo instructions.

    Instructions of two goals are included only if such a task is demonstrated, so that the
    vocabularies of other policies do not change.
    """
    texts = {task.description for task in demo_tasks()} | {GROUNDING_PROMPT}
    if any(task.source_type == SOURCE_TYPE for task in tasks):
        texts |= {task.description for task in every_goal_task()}
    for turn in (turn for episode in episodes for turn in episode.turns):
        texts.add(turn.text)
        for element in turn.elements:
            texts |= {element_label(element), element.state or ""}
    return texts
