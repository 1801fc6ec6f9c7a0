"""Two trainings of SQL agents, written by hand: DB Bench with skills in turn, and text-to-SQL.

What a trainer would log of them, for tests and pages that need such a log. No seed: the figures
below decide who solves what.
"""

from random import Random
from typing import Literal
from uuid import UUID

from schemas import ids
from schemas.completion import CompletionExecuted, CompletionStepsScored, StepScore
from schemas.evaluation import EvaluationCreated, EvaluationFinished, EvaluationStarted
from schemas.session import SessionEnded, SessionStatus
from schemas.skills import SkillsMeasured, SkillSuccess
from schemas.step import (
    StepCollectionStarted,
    StepCreated,
    StepFinished,
    StepRolloutsStarted,
    StepTrainingStarted,
)
from tests.reference_fold.writers import LoggedEvent
from tests.support.sql_entries import COMPLETIONS, DBBENCH, HOSTILE, SKILLS, TEXT_TO_SQL
from tests.support.sql_rollouts import Done, Said, SourceType, SqlRun, answered, executed

RATES: tuple[tuple[int, int, int], ...] = ((1, 0, 0), (4, 1, 0), (3, 4, 1), (2, 3, 4))
"""Solved sessions of four for each of SKILLS, before the first stage and after each."""
SESSIONS_PER_SKILL = 4


class DbBenchRun(SqlRun):
    """Three skills in turn: an evaluation before and after each, one step of a stage."""

    def run(self) -> list[LoggedEvent]:
        """All of it."""
        self.begin("dbbench", DBBENCH)
        for stage, rates in enumerate(RATES):
            if stage:
                self._step(stage)
            self._evaluation(stage, rates)
        return self.events

    def _evaluation(self, stage: int, rates: tuple[int, int, int]) -> None:
        kind: SourceType = "eval" if stage else "baseline"
        owner = ids.eval_id(self.training, 0, stage)
        if not stage:
            owner = ids.baseline_id(self.training, 0)
        of: Literal["scheduled", "baseline"] = "scheduled" if stage else "baseline"
        writer = self.writer("evaluation", owner)
        writer.emit(
            EvaluationCreated(
                kind=of,
                training_id=self.training,
                generation=0,
                step=stage,
                model_path=f"v{stage}",
                total_tasks=len(SKILLS),
            )
        )
        writer.emit(EvaluationStarted(kind=of, started_at=self.now))
        for number in range(len(SKILLS)):
            group = self.group(writer, kind, owner, number, SESSIONS_PER_SKILL)
            done = [
                self._session(
                    kind, owner, (number, index), index < rates[number], f"{kind}-{stage}"
                )
                for index in range(SESSIONS_PER_SKILL)
            ]
            self.end_group(writer, group, done)
        rate = sum(rates) / (SESSIONS_PER_SKILL * len(SKILLS))
        writer.emit(
            EvaluationFinished(
                kind=of,
                completed_tasks=len(SKILLS),
                eval_time_s=2.0,
                success_rate=rate,
                avg_reward=rate,
                avg_turns=2.0,
                successful_tasks=sum(rates),
                ended_at=self.now,
                progress=self.progress(100.0),
                metrics={"standard_error": 0.1},
            )
        )
        counts = {"all": sum(rates)} | dict(zip(SKILLS, rates, strict=True))
        skills = []
        for skill, correct in sorted(counts.items()):
            sessions = SESSIONS_PER_SKILL * (len(SKILLS) if skill == "all" else 1)
            one = SkillSuccess(
                skill=skill,
                num_sessions=sessions,
                num_correct=correct,
                success_rate=correct / sessions,
            )
            skills.append(one)
        self.trainer.emit(
            SkillsMeasured(
                evaluation_id=owner,
                generation=0,
                step=stage,
                stage=stage,
                trained_skill=SKILLS[stage - 1] if stage else None,
                skills=tuple(skills),
                measured_at=self.now,
            )
        )

    def _step(self, stage: int) -> None:
        self.version += 1
        step = ids.step_id(self.training, 0, stage)
        emit = self.trainer.emit
        emit(
            StepCreated(
                step_id=step,
                generation=0,
                step=stage,
                batch=stage - 1,
                learning_rate=1e-5,
                model_path=f"v{stage}",
            )
        )
        emit(StepCollectionStarted(step_id=step))
        emit(StepRolloutsStarted(step_id=step, rollout_started_at=self.now))
        for number in range(len(SKILLS)):
            group = self.group(self.trainer, "step", step, number, 1)
            solved = number < stage
            done = self._session("step", step, (number, 0), solved, f"step-{stage}")
            self.end_group(self.trainer, group, [done])
        emit(
            StepTrainingStarted(
                step_id=step, rollout_ended_at=self.now, training_started_at=self.now
            )
        )
        emit(
            StepFinished(
                step_id=step,
                training_ended_at=self.now,
                loss=0.5 / stage,
                kl_divergence=0.001,
                policy_gradient_norm=0.4,
                reward_mean=(stage * 1.0 - (3 - stage) * 0.1) / 3,
                reward_std=0.5,
                num_trajectories=3,
                num_tokens=54,
                policy_version=self.version,
                progress=self.progress(100.0),
                metrics={},
            )
        )

    def _session(
        self,
        kind: SourceType,
        source: UUID,
        place: tuple[int, int],
        solved: bool,
        label: str,
    ) -> Done:
        """A session that is solved, refused by the database, or ended by what cannot be read."""
        task, index = place
        entry, owner = DBBENCH[task], self.open_rollout(kind, source, task, index, task, label)
        gold = entry.sql or ""
        status: SessionStatus = "completed" if solved else "agent_validation_failed"
        first = Said(
            entry.instruction, f"Action: Operation\n```sql\n{gold}\n```", (executed(gold),)
        )
        turns = [first, Said("[('Ann', 2001)]", "Action: Answer\nFinal Answer: 4", answered("4"))]
        if not solved:
            bad = f"SELECT * FROM wins WHERE who = '{HOSTILE}' -- {index}"
            error = f"no such column: {HOSTILE}"
            turns = [
                Said(
                    entry.instruction,
                    f"Action: Operation\n```sql\n{bad}\n```",
                    (executed(bad, error),),
                ),
                Said(error, "I do not know what to do.", ()),
            ]
        self.say(owner, turns)
        out_of_rounds = solved and index == 1 and kind != "step"
        owner.emit(
            SessionEnded(
                entry_id=self.entries[task],
                session_status="task_limit_reached" if out_of_rounds else status,
                outcome="correct" if solved else "incorrect",
                answer="4" if solved else None,
                table_hash=None if entry.answer_direct else "9b1d7c0e5f",
                num_rounds=2,
                num_operations=1,
                num_sql_errors=0 if solved else 1,
                error_message=None if solved else "the completion is neither of the two actions",
                ended_at=self.now,
            )
        )
        reward = -0.3 if out_of_rounds else 1.0 if solved else -0.1
        return self.finish(owner, 2, reward, solved=solved)


class TextToSqlRun(SqlRun):
    """One step of two questions with completions that two scorers judge."""

    def run(self) -> list[LoggedEvent]:
        """All of it."""
        self.begin("text_to_sql", TEXT_TO_SQL)
        step, emit = ids.step_id(self.training, 0, 1), self.trainer.emit
        created = StepCreated(
            step_id=step, generation=0, step=1, batch=0, learning_rate=1e-6, model_path=None
        )
        emit(created)
        emit(StepCollectionStarted(step_id=step))
        emit(StepRolloutsStarted(step_id=step, rollout_started_at=self.now))
        for number, completions in enumerate(COMPLETIONS):
            group = self.group(self.trainer, "step", step, number, len(completions))
            done = [self._completion(step, number, index) for index in range(len(completions))]
            self.end_group(self.trainer, group, done)
        return self.events

    def _completion(self, step: UUID, number: int, index: int) -> Done:
        completion = COMPLETIONS[number][index]
        writer = self.open_rollout("step", step, number, index, number, "step-1")
        sql = completion.sql
        actions = () if sql is None else answered(sql)
        question = TEXT_TO_SQL[number].instruction
        self.say(writer, [Said(question, "\n\n".join(completion.steps), actions)])
        reward = 1.0 if completion.outcome == "correct" else 0.0
        process = sum(completion.scores) / len(completion.scores) if completion.scores else None
        writer.emit(
            CompletionExecuted(
                entry_id=self.entries[number],
                sql=sql,
                num_steps=len(completion.scores),
                outcome=completion.outcome,
                outcome_reward=reward,
                process_reward=process,
                num_rows=None if completion.error or sql is None else 3,
                execution_time_s=None if sql is None else 0.0042,
                error_message=completion.error,
                executed_at=self.now,
            )
        )
        for scorer in ("policies/prm", "monte_carlo") if completion.scores else ():
            shift = 0.0 if scorer == "policies/prm" else -0.125
            scores = [max(score + shift, 0.0) for score in completion.scores]
            product = 1.0
            for score in scores:
                product *= score
            steps = [
                StepScore(
                    index=place,
                    text=text,
                    first_token=20 * place,
                    last_token=20 * place + 19,
                    score=score,
                    label=None if scorer == "policies/prm" else score,
                )
                for place, (text, score) in enumerate(zip(completion.steps, scores, strict=True))
            ]
            writer.emit(
                CompletionStepsScored(
                    scorer=scorer,
                    steps=tuple(steps),
                    product=product,
                    minimum=min(scores),
                    last=scores[-1],
                    average=sum(scores) / len(scores),
                    scored_at=self.now,
                )
            )
        return self.finish(writer, 1, reward, solved=reward > 0)


def dbbench_run(run_name: str = "dbbench-in-turn") -> list[LoggedEvent]:
    """57 sessions: four evaluations of 12, three steps of 3."""
    return DbBenchRun(run_name, Random(0)).run()


def text_to_sql_run(run_name: str = "text-to-sql") -> list[LoggedEvent]:
    """Completions of two questions in one step that still trains."""
    return TextToSqlRun(run_name, Random(0)).run()
