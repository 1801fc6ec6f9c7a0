"""The built-in policies of any recipe: made once per folder, as `demo` is in CUA_HOME/policies."""

from functools import partial
from pathlib import Path

from producer.agents.android.policy import warm_up as phone
from producer.agents.android.policy.recipe import WarmUpRecipe
from producer.agents.built_policy import OnProgress
from producer.agents.dbbench.policy import warm_up as text
from producer.agents.dbbench.policy.recipe import TextRecipe
from producer.agents.miniwob.policy import warm_up as pages
from producer.agents.miniwob.policy.recipe import policy_name
from producer.warm_up.ensure import ensure_made


def phone_policy(
    policies_dir: Path, recipe: WarmUpRecipe, on_progress: OnProgress = lambda *_: None
) -> Path:
    """The folder of the simulated phone's policy."""
    make = partial(phone.make_policy, recipe=recipe)
    return ensure_made(policies_dir / recipe.policy_name, recipe.num_steps, make, on_progress)


def text_policy(
    policies_dir: Path, recipe: TextRecipe, on_progress: OnProgress = lambda *_: None
) -> Path:
    """The folder of DB Bench's policy."""
    make = partial(text.make_policy, recipe=recipe)
    return ensure_made(policies_dir / recipe.policy_name, recipe.num_steps, make, on_progress)


def pages_policy(
    policies_dir: Path, recipe: WarmUpRecipe, on_progress: OnProgress = lambda *_: None
) -> Path:
    """The folder of the web pages' policy."""
    make = partial(pages.make_policy, recipe=recipe)
    return ensure_made(policies_dir / policy_name(recipe), recipe.num_steps, make, on_progress)
