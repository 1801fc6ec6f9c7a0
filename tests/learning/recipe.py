"""The warm-up of a policy for tasks of two goals, of which it has seen a part."""

from producer.agents.android.goals import goal_tasks
from producer.agents.android.policy.recipe import ImitationPhase, WarmUpRecipe


def goals_recipe(seed: int) -> WarmUpRecipe:
    """Imitation of every single goal and of half of the training pairs; of no held-out pair."""
    tasks = (*goal_tasks("single"), *goal_tasks("train")[::2])
    return WarmUpRecipe(
        task_ids=tuple(task.task_id for task in tasks),
        max_turns=16,
        imitation_phases=(
            ImitationPhase(num_steps=140, episodes_per_batch=0, grounding_per_batch=24),
            ImitationPhase(num_steps=350, episodes_per_batch=16, grounding_per_batch=6),
        ),
        seed=seed,
    )
