"""Later scores are shown beside what the training recorded, and found by the queries."""

from uuid import uuid4

import pytest
from sqlalchemy.orm import Session

import consumers.queries as q
from consumers.tables import Score, Scoring
from tests.consumers.monitor.conftest import HOSTILE, Monitor
from tests.support.sample_rows import at, named

pytestmark = pytest.mark.services


def scoring(name: str, second: float, **columns: object) -> Scoring:
    return Scoring(
        id=named(name),
        training_id=named("demo"),
        config_json={},
        total_rollouts=2,
        created_at=at(second),
        updated_at=at(second),
        **columns,
    )


def test_scorings_stand_beside_the_training_and_its_rollout(monitor: Monitor) -> None:
    training, rollout = f"/training/{named('demo')}", f"/rollout/{named('rollout-1')}"
    assert "Scored again" not in monitor.get(training).text + monitor.get(rollout).text
    with Session(monitor.engine) as session:
        finished = {"scored_rollouts": 1, "failed_rollouts": 1, "reward_mean": 0.625}
        later = scoring("later", 2, reward_name=HOSTILE, judge="http://judge/v1")
        session.add_all([later, scoring("first", 1, reward_name="efficiency", **finished)])
        session.flush()
        for name, reward, success in (("first", 0.625, True), ("later", None, None)):
            session.add(
                Score(
                    id=uuid4(),
                    scoring_id=named(name),
                    rollout_id=named("rollout-1"),
                    reward=reward,
                    success=success,
                    error_message=None if reward else "no verdict",
                    details_json={},
                    created_at=at(3),
                )
            )
        session.commit()
        found = q.list_scorings_by_training(session, named("demo"))
        assert [item.id for item in found] == [named("first"), named("later")]
        scores = q.list_scores_by_rollout(session, named("rollout-1"))
        assert [(one.reward, by.reward_name) for one, by in scores] == [
            (0.625, "efficiency"),
            (None, HOSTILE),
        ]
    try:
        for path in (training, rollout):
            text = monitor.get(path).text
            again = text[text.index(">Scored again<") : text.index(">Status history<")]
            assert again.index("efficiency") < again.index("http://judge/v1")
            assert "0.625" in again
            assert "<script" not in again
        assert "no verdict" in monitor.get(rollout).text
    finally:
        with Session(monitor.engine) as session:
            session.query(Score).delete()
            session.query(Scoring).delete()
            session.commit()
