"""The policies that are built on this machine, one for each environment that has one.

Imports no torch until one is made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from producer.config import DEMO_POLICY, RunConfig
from producer.demo_policy import schedule
from producer.demo_policy.recipe import WarmUpRecipe
from producer.errors import UsageError
from producer.text_policy import recipe as text_recipe
from producer.warm_up.plan import OnProgress, OnWait, WarmUpPlan


@dataclass(frozen=True, slots=True)
class BuiltPolicy:
    """`model_name` demo in one environment."""

    name: str
    """Of its folder below CUA_HOME/policies."""
    plan: Callable[[], WarmUpPlan]
    """What its warm-up is recorded with."""
    ensure: Callable[[Path, OnProgress, OnWait], Path]
    """Its folder below this one, made if it does not exist."""
    build_shape: Callable[[Path], None]
    """Writes a policy of its shape with random weights into a folder."""


def built_policy(config: RunConfig) -> BuiltPolicy:
    """The one of the configuration's environment. UsageError if there is none."""
    found = BUILT_POLICIES.get(config.environment)
    if found is None:
        message = (
            f"model_name: there is no policy {DEMO_POLICY!r} for environment"
            f" {config.environment}; give a folder or a Hugging Face id"
        )
        raise UsageError(message)
    return found


def is_unmade(config: RunConfig, policies_dir: Path) -> bool:
    """Whether the configuration names a built-in policy that has to be made first."""
    if config.model_name != DEMO_POLICY:
        return False
    return not (policies_dir / built_policy(config).name).is_dir()


def _ensure_demo(policies_dir: Path, on_progress: OnProgress, on_wait: OnWait) -> Path:
    from producer.demo_policy.warm_up import ensure_demo_policy

    return ensure_demo_policy(policies_dir, on_progress, on_wait=on_wait)


def _build_demo(folder: Path) -> None:
    from producer.demo_policy.build import build_policy
    from producer.tasks.demo import demo_tasks

    # The tokenizer has a token for every word, those unknown to it included.
    build_policy(folder, [task.description for task in demo_tasks()], seed=0)


def _ensure_text(policies_dir: Path, on_progress: OnProgress, on_wait: OnWait) -> Path:
    from producer.text_policy.warm_up import ensure_text_policy

    return ensure_text_policy(policies_dir, on_progress, on_wait=on_wait)


def _build_text(folder: Path) -> None:
    from producer.text_policy.warm_up import build_unwarmed

    build_unwarmed(folder, text_recipe.TextRecipe(), [])


BUILT_POLICIES = {
    "android": BuiltPolicy(
        WarmUpRecipe().policy_name, schedule.warm_up_plan, _ensure_demo, _build_demo
    ),
    "dbbench": BuiltPolicy(
        text_recipe.TextRecipe().policy_name, text_recipe.warm_up_plan, _ensure_text, _build_text
    ),
}
"""`environment` -> its policy."""
