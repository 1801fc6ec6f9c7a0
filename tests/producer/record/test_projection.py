"""A recorded training in a real PostgreSQL: the tables verify, and the export opens."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from consumers.export.export import export
from consumers.log.local import LocalLogReader
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.verify import verify
from consumers.status import read_status
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.reference import fold
from tests.support.postgres import one
from tests.support.reading import read_all
from tests.support.recorded import installation, png, start_small

pytestmark = pytest.mark.services


def record_one() -> None:
    """Steps with pictures, a failed attempt, an evaluation, a superseded step."""
    with start_small() as training:
        with (
            training.evaluation(num_episodes=1) as evaluation,
            evaluation.group("a", num_rollouts=1) as group,
            group.rollout() as rollout,
        ):
            rollout.finish(reward=0)
        for _ in range(2):
            with training.step(learning_rate=1e-4) as step:
                with step.group("Open the settings") as group:
                    with group.rollout() as failed:
                        failed.fail("the device died")
                    for retry_of, reward in ((failed, 1.0), (None, 0.0)):
                        with group.rollout(retry_of=retry_of) as rollout:
                            rollout.turn(
                                completion="click",
                                screenshot=png(7),
                                prompt_tokens=[1, 2],
                                completion_tokens=[3],
                                completion_logprobs=[-0.5],
                                actions=[{"type": "click", "x": 1, "y": 2}],
                            )
                            rollout.turn(
                                completion="done",
                                prompt_tokens=[1, 2, 3, 4],
                                completion_tokens=[5],
                                done=True,
                            )
                            rollout.finish(reward=reward)
                group.advantages([0.5, -0.5])
                step.metrics(loss=0.5, kl=0.01, gradient_norm=1.0)
    with start_small(after_step=1) as training:
        for _ in range(2):
            with training.step() as step:
                step.metrics({"actor/x": float("nan")}, reward_mean=0.25)


def test_a_recorded_training_is_projected_verified_and_exported(
    migrated_url: str, tmp_path: Path
) -> None:
    record_one()
    at = installation()

    def reader() -> LocalLogReader:
        return LocalLogReader(at.local_log_path, topic_prefix=at.topic_prefix)

    applied = ProjectionLoop(reader(), migrated_url).run_once()
    records = read_all(at)
    assert applied.events == len(records)
    status = read_status(reader(), migrated_url)
    assert status.lag_events == 0
    assert one(migrated_url, "SELECT count(*) FROM cua.unapplied_record") == 0
    assert verify(reader(), migrated_url).equal
    reference = fold((record.key, record.value) for record in records)
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []
    training = "SELECT run_name, status, current_step, total_steps, model_name FROM cua.training"
    assert one(migrated_url, training) == ("mine", "completed", 3, 3, "org/policy")
    steps = "SELECT array_agg(reward_mean ORDER BY created_at) FROM cua.step"
    assert one(migrated_url, steps) == [0.5, 0.5, 0.25, 0.25]
    assert one(migrated_url, "SELECT count(*) FROM cua.turn") == 8

    report = export(reader(), at, tmp_path / "out")
    assert (report.rollouts, report.turns, report.missing_images) == (7, 8, 0)
    rollouts = pq.read_table(tmp_path / "out" / "rollouts").to_pylist()
    used = sorted(row["advantage"] for row in rollouts if row["used"])
    assert used == [-0.5, -0.5, 0.5, 0.5]
    turns = pq.read_table(tmp_path / "out" / "turns").to_pylist()
    second = next(row for row in turns if row["turn"] == 2)
    assert second["prompt_token_ids"] == [1, 2, 3, 4]
    assert second["text"] is None
    first = next(row for row in turns if row["turn"] == 1)
    assert first["screenshot"]["bytes"] == png(7)
    assert first["completion_logprobs"] == [-0.5]
