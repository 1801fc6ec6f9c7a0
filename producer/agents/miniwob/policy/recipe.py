"""The recipe of the small policy: its pages, its name and the steps of its warm-up.

Imports no torch.
"""

from dataclasses import replace
from typing import Final

from producer.agents.android.policy.recipe import ImitationPhase, WarmUpRecipe
from producer.agents.android.policy.recipe import warm_up_plan as plan_of
from producer.agents.built_policy import WarmUpPlan
from schemas.ids import content_hash

TRAINED_PAGES: Final = (
    "click-button",
    "click-color",
    "click-dialog",
    "click-shape",
    "click-tab",
    "click-test",
    "click-test-2",
    "click-widget",
    "count-sides",
    "focus-text",
    "grid-coordinate",
    "identify-shape",
)
"""Pages of the split `train` that one click solves, and whose words and shapes are few."""
HELD_OUT_PAGES: Final = ("click-dialog-2", "click-test-transfer", "focus-text-2", "unicode-test")
"""Pages that the warm-up demonstrates and that reinforcement learning leaves out."""
SCREEN_PIXELS: Final = 34_000
"""Screens keep their size but for two rows: 160 x 208 px in patches of 16 are 130 image tokens. A
smaller screen's text is too small to be read."""
VERSION: Final = 1
"""Increment when a change of the code makes a different policy from the same recipe."""
RECIPE: Final = WarmUpRecipe(
    task_ids=TRAINED_PAGES + HELD_OUT_PAGES,
    num_episodes=100 * len(TRAINED_PAGES + HELD_OUT_PAGES),
    noise=0.0,
    max_turns=1,
    alignment_steps=300,
    imitation_phases=(
        ImitationPhase(num_steps=100, episodes_per_batch=0, grounding_per_batch=24),
        ImitationPhase(num_steps=500, episodes_per_batch=24, grounding_per_batch=6),
    ),
)


def policy_name(recipe: WarmUpRecipe) -> str:
    """`pages-<hash of the recipe>`: the policy's folder below CUA_HOME/policies."""
    return f"pages-{content_hash([VERSION, SCREEN_PIXELS, recipe.policy_name])[:12]}"


def warm_up_plan(recipe: WarmUpRecipe = RECIPE) -> WarmUpPlan:
    """The plan that is recorded with the warm-up's training."""
    return replace(plan_of(recipe), box_type="linux")
