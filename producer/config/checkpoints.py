"""Fields of the configuration: a training's name and folder, how it continues, and reports."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from producer.numbers import NonNegativeInt
from producer.training_name import check_training_name

Name = Annotated[str, Field(min_length=1, max_length=128)]


class CheckpointFields(BaseModel):
    """The training's name, its folder and what continues it."""

    training_name: Annotated[str, AfterValidator(check_training_name)] | None = Field(
        None, description="Name of the training. The same name continues the same training."
    )
    log_path: Path | None = Field(
        None,
        description=(
            "Folder of this training's resume states and checkpoints. Without training_name it"
            " continues the training in it."
        ),
    )
    log_dir: Path | None = Field(
        None, description="Parent folder: a training's log_path is log_dir/NAME."
    )
    save_every: NonNegativeInt = Field(
        10, description="Steps between checkpoints. 0: only after the last step."
    )
    behavior_if_log_dir_exists: Literal["ask", "resume", "overwrite", "skip", "raise"] = Field(
        "ask",
        description=(
            "If the training exists: resume, overwrite (start a new generation, keeping the old"
            " one), skip, raise, or ask (resume without a terminal)."
        ),
    )


class ReportingFields(BaseModel):
    """What is written in addition to the log."""

    num_groups_to_log: NonNegativeInt = Field(
        1,
        description="Groups per step whose rollouts are also written as text to the run's folder.",
    )
    wandb_project: Name | None = Field(
        None, description="Mirror the training to this Weights & Biases project."
    )
    wandb_name: Name | None = Field(
        None, description="Name of the run at Weights & Biases; needs wandb_project."
    )
