"""Existing trainings of this home, and the choice of what to do about them."""

import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Literal

import click

from producer.config import RunConfig
from producer.errors import NotFoundError
from producer.resume import resume_state
from producer.resume.run_folder import find_run_folder, training_in
from producer.training_name import check_training_name
from schemas.advice import did_you_mean
from schemas.installation import Installation

ANSWERS: dict[str, Literal["resume", "overwrite", "skip"]] = {
    **dict.fromkeys(("r", "resume"), "resume"),
    **dict.fromkeys(("o", "overwrite"), "overwrite"),
    **dict.fromkeys(("q", "quit"), "skip"),
}


def resolve_existing(config: RunConfig, installation: Installation) -> RunConfig:
    """Replace `ask` in the configuration by the user's answer, or by resume without a terminal."""
    name = _name_of(config)
    if config.behavior_if_log_dir_exists != "ask" or name is None:
        return config
    folder = find_run_folder(installation, name, config.named(name).run_folder)
    states = resume_state.find_states(folder)
    if not states or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return config.resolved("resume")
    total = resume_state.read_run_config(folder).get("num_steps")
    answer = _ask(
        f"Training {name!r} exists (step {states[0].manifest.step} of {total})."
        " [r]esume, [o]verwrite, [q]uit?"
    )
    return config.resolved(ANSWERS[answer])


def has_states(config: RunConfig, installation: Installation) -> bool:
    """Whether the training has a saved state here. Raises as `find_run_folder` does."""
    name = _name_of(config)
    if name is None:
        return False
    folder = find_run_folder(installation, name, config.named(name).run_folder)
    return bool(resume_state.find_states(folder))


def _name_of(config: RunConfig) -> str | None:
    if config.training_name is None and config.log_path is not None:
        return training_in(config.log_path)
    return config.training_name


def _ask(question: str) -> str:
    """Ask for a key of `ANSWERS`. Raises Abort after Ctrl-C, even if readline swallows it."""
    interrupted = threading.Event()

    def on_interrupt(_number: int, _frame: FrameType | None) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        answer: str = click.prompt(
            question,
            type=click.Choice(list(ANSWERS), case_sensitive=False),
            default="r",
            show_choices=False,
            prompt_suffix=" ",
            err=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted.is_set():
        raise click.Abort
    return answer


def training_names(installation: Installation) -> list[str]:
    """Names of the trainings in this home. A link to a missing --log-path counts too."""
    runs = installation.runs_dir
    if not runs.is_dir():
        return []
    return sorted(path.name for path in runs.iterdir() if path.is_dir() or path.is_symlink())


def existing_training(
    installation: Installation, name: str, *, noun: str = "training", otherwise: str = ""
) -> str:
    """Normalise the name. Raises NotFoundError if this home has no such training."""
    known = training_names(installation)
    with suppress(ValueError):
        if check_training_name(name) in known:
            return check_training_name(name)
    hint = did_you_mean(name, known) or otherwise
    message = f"there is no {noun} {name!r} in {installation.runs_dir}.{hint}"
    raise NotFoundError(message)
