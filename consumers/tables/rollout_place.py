"""What several views say of a rollout: its training, and the step or evaluation that it is of."""

from consumers.tables.view import Column

PLACE = """rollout.source_type, coalesce(step.generation, eval.generation, baseline.generation),
    coalesce(step.step, eval.step, baseline.step)"""
"""What PLACE_COLUMNS show, of PLACE_JOINS."""
PLACE_JOINS = """
LEFT JOIN "{schema}".training ON training.id = rollout.training_id
LEFT JOIN "{schema}".step ON step.id = rollout.step_id
LEFT JOIN "{schema}".eval ON eval.id = rollout.eval_id
LEFT JOIN "{schema}".baseline ON baseline.id = rollout.baseline_id
LEFT JOIN "{schema}".task ON task.id = rollout.task_id"""
"""After a FROM that has `rollout`: each row of it once, whatever is not projected yet."""
PLACE_COLUMNS = (
    Column("source_type", "text", "step, eval or baseline."),
    Column("generation", "integer", "Of its step or evaluation."),
    Column("step", "integer", "Steps that the policy was, or then is, trained for."),
)
