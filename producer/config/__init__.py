"""The configuration of a run: one frozen model, and the rules over its fields."""

from producer.config.checks import check_effects, check_served, fields_without_network
from producer.config.continuing import CHANGEABLE, OF_ONE_PROCESS, differences
from producer.config.preset import DEMO_POLICY, DEMO_PRESET, ORACLE_POLICY
from producer.config.run_config import (
    NONE_IS_A_VALUE,
    TOPICS,
    RunConfig,
    read_config,
    read_continued,
    read_fields,
    recorded_fields,
    without_unset,
)

__all__ = [
    "CHANGEABLE",
    "DEMO_POLICY",
    "DEMO_PRESET",
    "NONE_IS_A_VALUE",
    "OF_ONE_PROCESS",
    "ORACLE_POLICY",
    "TOPICS",
    "RunConfig",
    "check_effects",
    "check_served",
    "differences",
    "fields_without_network",
    "read_config",
    "read_continued",
    "read_fields",
    "recorded_fields",
    "without_unset",
]
