"""Makes the default policy, or finds the one that is there; the folder's name hashes the recipe, so another recipe is another policy."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from producer.policy.build import build_policy
from producer.policy.network import load_base
from producer.policy.state import sync_files
from producer.tasks.demo import demo_tasks
from producer.training.demonstrations import Demonstration, demonstrate, spread
from producer.training.warm_up.acting import learn_to_act
from producer.training.warm_up.examples import encode_demonstrations
from producer.training.warm_up.seeing import learn_to_see
from schemas.ids import content_hash

OnProgress = Callable[[int, int, float], None]
"""(optimiser steps done, in all, loss)."""

VERSION = 1
"""Raised when the code below makes another policy of the same recipe."""

TASK_IDS: tuple[str, ...] = (
    "train_01_open_settings",
    "train_02_enable_wifi",
    "train_03_max_brightness",
    "train_04_open_chrome",
    "train_05_airplane_mode",
    "train_06_check_battery",
    "train_08_enable_bluetooth",
    "train_09_disable_wifi",
    "train_10_disable_bluetooth",
    "train_12_open_wifi_settings",
    "train_13_open_bluetooth_settings",
    "train_14_open_display_settings",
    "train_15_open_sound_settings",
    "train_22_open_dialer",
    "train_23_open_messages",
    "train_24_open_camera",
    "train_25_open_gallery",
    "train_53_open_contacts",
)
"""What the small policy is shown and then trained on: its apps and settings within two or three touches."""


@dataclass(frozen=True, slots=True)
class WarmUpRecipe:
    """Everything that decides what comes out."""

    task_ids: tuple[str, ...] = TASK_IDS
    num_episodes: int = 1000
    noise: float = 0.3
    """Share of random actions in the episodes; they are lived through and not imitated."""
    max_turns: int = 6
    seeing_steps: int = 350
    seeing_rate: float = 5e-3
    acting_steps: int = 260
    acting_rate: float = 4e-3
    episodes_per_batch: int = 24
    pointings_per_batch: int = 12
    seed: int = 0


def ensure_demo_policy(policies_dir: Path, on_progress: OnProgress, recipe: WarmUpRecipe | None = None) -> Path:
    """The folder of the warm policy, made when it is not there; a second process waits for the first to finish making it.

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
        making = Path(tempfile.mkdtemp(dir=policies_dir, prefix=".making-"))
        try:
            _make(making, recipe, on_progress)
            making.chmod(0o755)
            sync_files(making)
            making.rename(folder)
            _sync(policies_dir)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return folder


def _make(folder: Path, recipe: WarmUpRecipe, on_progress: OnProgress) -> None:
    known = {task.task_id: task for task in demo_tasks()}
    tasks = [known[task_id] for task_id in recipe.task_ids]
    demonstrations = [
        demonstrate(task, seed, noise=recipe.noise, max_turns=recipe.max_turns) for task, seed in spread(tasks, recipe.num_episodes)
    ]
    build_policy(folder, _texts(demonstrations), recipe.seed)
    network, processor = load_base(str(folder))
    examples = encode_demonstrations(demonstrations, processor, int(network.config.image_token_id))
    total = recipe.seeing_steps + recipe.acting_steps
    with torch.random.fork_rng():
        torch.manual_seed(recipe.seed)
        learn_to_see(
            network,
            processor,
            examples,
            num_steps=recipe.seeing_steps,
            learning_rate=recipe.seeing_rate,
            seed=recipe.seed,
            on_step=lambda done, loss: on_progress(done, total, loss),
        )
        learn_to_act(
            network,
            processor,
            examples,
            num_steps=recipe.acting_steps,
            learning_rate=recipe.acting_rate,
            episodes_per_batch=recipe.episodes_per_batch,
            pointings_per_batch=recipe.pointings_per_batch,
            seed=recipe.seed,
            on_step=lambda done, loss: on_progress(recipe.seeing_steps + done, total, loss),
        )
    network.eval().requires_grad_(requires_grad=True)
    network.save_pretrained(folder)


def _texts(demonstrations: list[Demonstration]) -> set[str]:
    """Everything whose words must be tokens: all demo instructions (other tasks may be tried), what was said, what stands on screens."""
    texts = {task.description for task in demo_tasks()} | {"find"}
    for demonstration in demonstrations:
        for turn in demonstration.turns:
            texts.add(turn.text)
            for element in turn.elements:
                texts |= {element.label or element.name.replace("_", " "), element.state or ""}
    return texts


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
