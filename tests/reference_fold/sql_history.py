"""What SQL agents record: entries, sessions and completions in turns without a screen, skills.

It draws nothing from the history's seed, so that what comes before it stays as it was.
"""

from datetime import timedelta
from uuid import UUID

from schemas import ids
from schemas.actions import Answer, ExecuteSql, Terminate
from schemas.arrays import encode_float32, encode_int32
from schemas.completion import CompletionExecuted, CompletionStepsScored, StepScore
from schemas.entry import Column, EntryContent, EntryStated, TableInfo, entry_hash
from schemas.rollout import (
    RolloutAgentInitialized,
    RolloutCreated,
    RolloutEnvironmentRequested,
    RolloutStarted,
)
from schemas.session import SessionEnded
from schemas.skills import SkillsMeasured, SkillSuccess
from schemas.turn import Sampling, TakenAction, TokenRecord, TurnTaken
from tests.reference_fold.drawn_values import named
from tests.reference_fold.rollout_history import RolloutHistory
from tests.reference_fold.writers import StreamWriter

SCORERS = ("monte_carlo", "policies/prm")
COMPLETION = "WITH wins AS (SELECT 1)\n\nSELECT * FROM wins"


def tell_sql(history: RolloutHistory) -> None:
    """Two entries, a session, a completion that two scorers judged, and success by skill."""
    state = history.random.getstate()
    entries = [_entry(history, number) for number in range(2)]
    session = _rollout(history, 0)
    for number, turn in enumerate(_session_turns(history), start=1):
        session.emit(turn.model_copy(update={"turn": number}))
    session.emit(
        SessionEnded(
            entry_id=entries[0],
            session_status="task_limit_reached",
            outcome="correct",
            answer=None,
            table_hash="5ee6b2ee5efa0ec2a34e0bd5a3c2a2a5",
            num_rounds=2,
            num_operations=1,
            num_sql_errors=1,
            ended_at=history.now,
        )
    )
    _completion(history, entries[1])
    for step in range(2):
        _skills(history, step)
    history.random.setstate(state)


def _entry(history: RolloutHistory, number: int) -> UUID:
    """One of each kind, about the training's tasks."""
    table = TableInfo(
        name="wins",
        columns=(Column(name="year", type="INT"), Column(name="who\x00", type="TEXT")),
        rows=((2001, "Ann"), (None, "Bo, \"Jr\" ('x')"), (-1, "nul\x00 ü€😀\\N\t\n"), (0.5, True)),
    )
    content = EntryContent(
        kind="text_to_sql" if number else "dbbench",
        entry_id=str(number),
        instruction="Who won\tin 2001?",
        table_info=None if number else table,
        database="cups" if number else None,
        database_sha256="c" * 64 if number else None,
        answer_direct=(("Ann",),) if number else None,
        answer_md5=None if number else "5ee6b",
        sql="SELECT who FROM wins WHERE year = 2001",
        skills=("select", "where_single_condition"),
    )
    digest, task = entry_hash(content), history.tasks[number]
    entry = ids.entry_row_id(task, digest)
    history.trainer.emit(EntryStated(id=entry, task_id=task, content_hash=digest, content=content))
    return entry


def _rollout(history: RolloutHistory, index: int) -> StreamWriter:
    """A rollout of an evaluation by hand, running."""
    name = ids.rollout_name(history.run_name, history.generation, "sql", 0, index, 0)
    owner = ids.rollout_id(name)
    source = named("sql", history.run_name)
    writer = history.writer("rollout", owner)
    writer.emit(
        RolloutCreated(
            rollout_id=name,
            source_type="eval",
            source_id=source,
            group_id=ids.group_id(source, 0),
            batch=0,
            group_num=0,
            env_index=index,
            attempt=0,
            task_id=history.tasks[0],
            model_path=None,
            policy_version=0,
            is_eval=True,
            max_turns=3,
            temperature=0.0,
            seed=0,
        )
    )
    writer.emit(RolloutEnvironmentRequested(env_id=ids.environment_id(owner)))
    writer.emit(RolloutAgentInitialized(env_creation_time_s=0.0))
    writer.emit(RolloutStarted(agent_init_time_s=0.0, task_started_at=history.now))
    return writer


def _turn(
    history: RolloutHistory, text: str | None, response: str, *taken: TakenAction
) -> TurnTaken:
    began = history.now
    tokens = TokenRecord(
        prompt_tokens=encode_int32(range(5)),
        prompt_images=(),
        completion_tokens=encode_int32(range(3)),
        completion_logprobs=encode_float32([-0.25] * 3),
        sampling=Sampling(temperature=1.0, max_tokens=64),
        stop_reason="stop",
    )
    return TurnTaken(
        turn=1,
        started_at=began,
        ended_at=began + timedelta(milliseconds=125),
        policy_version=0,
        screenshot_before=None,
        screenshot_after=None,
        text=text,
        model_response=response,
        tokens=tokens,
        actions=taken,
        reward=0.0,
        episode_done=False,
        progress_percent=40.0,
    )


def _session_turns(history: RolloutHistory) -> list[TurnTaken]:
    sql = "SELECT 'a\x00\\' -- </pre><script>\n"
    refused = TakenAction(
        tool_name="Operation",
        tool_args={"sql": sql},
        action=ExecuteSql(sql=sql),
        error_type="runtime",
        error_message="unrecognized token",
    )
    answered = TakenAction(
        tool_name="Answer", tool_args={"text": "[('Ann',)]"}, action=Answer(text="[('Ann',)]")
    )
    return [
        _turn(history, "Who won\tin 2001?", f"Action: Operation\n```sql\n{sql}\n```", refused),
        _turn(
            history,
            None,
            "Action: Answer",
            answered,
            TakenAction(tool_name="Answer", tool_args={}, action=Terminate()),
        ),
    ]


def _completion(history: RolloutHistory, entry: UUID) -> None:
    writer = _rollout(history, 1)
    answered = TakenAction(
        tool_name="sql", tool_args={"sql": COMPLETION}, action=Answer(text=COMPLETION)
    )
    writer.emit(_turn(history, "Who won\tin 2001?", COMPLETION, answered))
    writer.emit(
        CompletionExecuted(
            entry_id=entry,
            sql=COMPLETION,
            num_steps=2,
            outcome="incorrect",
            outcome_reward=0.0,
            process_reward=0.375,
            num_rows=1,
            execution_time_s=0.001,
            executed_at=history.now,
        )
    )
    for scorer in SCORERS:
        steps = [
            StepScore(
                index=index,
                text=text,
                first_token=7 * index,
                last_token=7 * index + 6,
                score=0.5 + 0.25 * index,
                label=None if index else 0.125,
            )
            for index, text in enumerate(COMPLETION.split("\n\n"))
        ]
        writer.emit(
            CompletionStepsScored(
                scorer=scorer,
                steps=tuple(steps),
                product=0.375,
                minimum=0.5,
                last=0.75,
                average=0.625,
                scored_at=history.now,
            )
        )


def _skills(history: RolloutHistory, step: int) -> None:
    """After an evaluation that no other events of this history are about."""
    measured = [
        SkillSuccess(skill=skill, num_sessions=4, num_correct=step + number, success_rate=0.25)
        for number, skill in enumerate(("all", "select", "where_single_condition"))
    ]
    history.trainer.emit(
        SkillsMeasured(
            evaluation_id=ids.eval_id(history.training, history.generation, step),
            generation=history.generation,
            step=step,
            stage=step or None,
            trained_skill="select" if step else None,
            skills=tuple(measured),
            measured_at=history.now,
        )
    )
