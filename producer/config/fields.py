"""Every field of the configuration, without the rules over several of them."""

from typing import Any

from pydantic import model_validator

from producer.agents import AGENTS, Agent
from producer.config.policy import PolicyFields
from producer.config.recipe_names import in_our_names
from producer.config.sql_agents import ContinualFields, ProcessRewardFields
from producer.config.tasks import EpisodeFields, FailureFields, TaskFields
from producer.config.training import (
    CheckpointFields,
    EvaluationFields,
    OptimisationFields,
    ReportingFields,
)
from producer.policy.compute_settings import ComputeSettings


class ConfigFields(
    ReportingFields,  # pydantic orders fields from the last base to the first
    FailureFields,
    EvaluationFields,
    ComputeSettings,
    ProcessRewardFields,
    ContinualFields,
    OptimisationFields,
    EpisodeFields,
    TaskFields,
    PolicyFields,
    CheckpointFields,
):
    """Every setting, each checked for itself alone. The CUA recipe's names are read as ours."""

    @model_validator(mode="before")
    @classmethod
    def _in_our_names(cls, given: Any) -> Any:  # noqa: ANN401  # whatever was passed
        return in_our_names(given) if isinstance(given, dict) else given

    @property
    def agent(self) -> Agent:
        """The agent that is trained."""
        return AGENTS[self.environment]
