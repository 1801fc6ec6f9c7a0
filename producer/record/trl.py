"""Records TRL's GRPOTrainer.

    with RecordingCallback(trainer, training="mine"):
        trainer.train()

A callback records steps and metrics. TRL shows samples to no callback, so two methods of the
trainer are wrapped: `_generate_and_score_completions`, which returns tokens, advantages and, if
available, log-probs; and `_calculate_rewards`, which has texts and rewards. Their results are
returned unchanged. Tested with TRL 1.16; a trainer without these methods is refused.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Self

from transformers import TrainerCallback

from producer.errors import UsageError
from producer.record.evaluation import Evaluation
from producer.record.opening import HeldOpen, open_training
from producer.record.step import Step, recordable
from producer.record.values import is_logprob, number_or_none, rate_or_none

GENERATE, SCORE = "_generate_and_score_completions", "_calculate_rewards"
KL_TO_REFERENCE = "kl_policy_base"
"""Our name for TRL's `kl`."""


class Scored(NamedTuple):
    """Arguments and result of this process's call of TRL's `_calculate_rewards`."""

    prompts: Sequence[Any]
    """Texts or conversations."""
    completions: Sequence[Any]
    completion_ids: Sequence[Sequence[int]]
    rewards: Any
    """Tensor (rows of every process, reward functions); NaN means not scored."""
    images: Sequence[tuple[bytes, ...]]


class Row(NamedTuple):
    """A completion."""

    task: str
    """The prompt, or the user's last message in it."""
    text: str
    """The whole prompt."""
    images: tuple[bytes, ...]
    prompt_tokens: list[int]
    completion: str
    completion_tokens: list[int]
    logprobs: list[float | None] | None
    """None if TRL has none, as when transformers generated on-policy."""
    is_cut: bool
    """Whether the token limit ended the completion."""
    reward: float | None
    """Weighted sum of the reward functions; None if none of them scored it."""
    rewards: dict[str, float | None]
    """Rewards by reward function."""
    advantage: float


def rows_of(trainer: Any, scored: Scored, output: Mapping[str, Any]) -> list[Row]:  # noqa: ANN401
    """The rows of all processes in TRL's order, with those of one prompt adjacent.

    `output`: the result of `_generate_and_score_completions`. Gathers, so every process must call
    it.
    """
    from accelerate.utils import gather_object

    logprobs = output.get("sampling_per_token_logps")
    if logprobs is None:
        logprobs = output.get("old_per_token_logps")
    ends = {*trainer.eos_token_ids}
    own = [
        {
            "task": _instruction(prompt),
            "text": _text_of(prompt),
            "images": images,
            "prompt_tokens": tokens[mask.bool()].tolist(),
            "completion": _completion(completion),
            "completion_tokens": [*ids],
            "logprobs": None if logprobs is None else _logprobs(logprobs[place][: len(ids)]),
            "is_cut": not ids or ids[-1] not in ends,
            "advantage": float(output["advantages"][place]),
        }
        for place, (prompt, completion, ids, images, tokens, mask) in enumerate(
            zip(
                scored.prompts,
                scored.completions,
                scored.completion_ids,
                scored.images,
                output["prompt_ids"],
                output["prompt_mask"],
                strict=True,
            )
        )
    ]
    weights = [float(weight) for weight in trainer.reward_weights]
    names = list(trainer.reward_func_names)
    return [
        Row(
            **row,
            reward=_total(found, weights),
            rewards=dict(zip(names, _known(found), strict=True)),
        )
        for row, found in zip(gather_object(own), scored.rewards.tolist(), strict=True)
    ]


def png_images(rows: Sequence[Mapping[str, Any]]) -> list[tuple[bytes, ...]]:
    """The images of each dataset row: PIL images in its column `images` or `image`.

    Rows of one prompt are adjacent and have equal images, which are encoded once.
    """
    encoded: list[tuple[bytes, ...]] = []
    before: list[Any] = []
    for row in rows:
        found = row.get("images")
        if not found:
            found = [row["image"]] if row.get("image") is not None else []
        images = [image for image in found if hasattr(image, "save")]
        is_same = bool(encoded) and images == before
        encoded.append(encoded[-1] if is_same else tuple(_png(image) for image in images))
        before = images
    return encoded


def _png(image: Any) -> bytes:  # noqa: ANN401  # of PIL
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _known(values: Sequence[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


def _logprobs(values: Any) -> list[float | None]:  # noqa: ANN401  # a tensor
    return [value if is_logprob(value) else None for value in values.tolist()]


def _total(rewards: Sequence[float], weights: Sequence[float]) -> float | None:
    """As in TRL, a function that returned None counts as 0, unless all did."""
    if all(math.isnan(reward) for reward in rewards):
        return None
    pairs = zip(rewards, weights, strict=True)
    return sum(reward * weight for reward, weight in pairs if not math.isnan(reward))


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    parts = (part.get("text") or f"[{part.get('type')}]" for part in content)
    return "\n".join(parts)


def _instruction(prompt: Any) -> str:  # noqa: ANN401  # text or a conversation
    found = prompt
    if not isinstance(prompt, str):
        users = [_content(message) for message in prompt if message.get("role") == "user"]
        found = users[-1] if users else _text_of(prompt)
    # A task has no NUL; tables show this character in its place.
    return found.replace("\0", "\ufffd").strip() or "(an empty prompt)"


def _text_of(prompt: Any) -> str:  # noqa: ANN401  # text or a conversation
    if isinstance(prompt, str):
        return prompt
    return "\n\n".join(f"{message.get('role')}: {_content(message)}" for message in prompt)


def _completion(completion: Any) -> str:  # noqa: ANN401  # text or a conversation
    if isinstance(completion, str):
        return completion
    if len(completion) == 1:
        return _content(completion[0])
    return _text_of(completion)


class RecordingCallback(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
    """Records every optimiser step of a GRPOTrainer; a `with` block around `trainer.train()`.

    With several processes create one in each; the first process records the rows of all.
    """

    def __init__(
        self,
        trainer: Any,  # noqa: ANN401  # TRL's is untyped here
        *,
        training: str | None = None,
        policy: str | None = None,
        success: Callable[[float], bool] | None = None,
        config: Mapping[str, object] | None = None,
        home: str | Path | None = None,
        takeover: bool = False,
    ) -> None:
        """`training`, `config`, `home`, `takeover`: as in `record.open`; `config` None: TRL's.

        `policy` None: the name in the network's configuration. `success`: whether a completion with
        this reward counts as solved; None: if it is above 0. Raises UsageError if the trainer is
        not a GRPOTrainer or its TRL lacks the two methods.
        """
        for name in (GENERATE, SCORE):
            if not callable(getattr(trainer, name, None)):
                message = (
                    f"{type(trainer).__name__} has no {name}: recording needs TRL's GRPOTrainer,"
                    " tested with TRL 1.16"
                )
                raise UsageError(message)
        self._trainer = trainer
        self._success = success
        self._held = HeldOpen()
        self._step: Step | None = None
        self._has_stepped = False
        """Whether the open step's optimiser step is done; its metrics may still arrive."""
        self._scored: Scored | None = None
        self._evaluated: list[Row] = []
        network = getattr(trainer.model, "config", None)
        known = getattr(network, "_name_or_path", "") or type(trainer.model).__name__
        self._start = partial(
            open_training,
            training,
            policy=policy or known,
            config=trainer.args.to_dict() if config is None else config,
            home=home,
            takeover=takeover,
        )
        setattr(trainer, SCORE, partial(self._score, getattr(trainer, SCORE)))
        setattr(trainer, GENERATE, partial(self._generate, getattr(trainer, GENERATE)))
        trainer.add_callback(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, exc: BaseException | None, _traceback: object) -> None:
        """End the training, with TRL's error if there is one."""
        if exc is None:
            self._end_step()
        self._held.close(exc)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401, ARG002
        """Begin the training, or resume the one with its name after TRL's checkpoint."""
        if not state.is_world_process_zero:
            return
        self._held.close()
        rows = args.per_device_train_batch_size * args.world_size * args.gradient_accumulation_steps
        self._held.open(
            partial(
                self._start,
                num_steps=state.max_steps,
                after_step=state.global_step,
                learning_rate=args.learning_rate,
                group_size=args.num_generations,
                groups_per_step=max(1, rows // args.num_generations),
                environment="trl",
                max_tokens=args.max_completion_length or 0,
                temperature=args.temperature,
                kl_coef=args.beta,
                seed=args.seed,
            )
        )

    def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:  # noqa: ANN401, ARG002
        """Begin an optimiser step."""
        if (training := self._held.training) is None:
            return
        self._end_step()
        scheduler = given.get("lr_scheduler")
        rate = None if scheduler is None else rate_or_none(scheduler.get_last_lr()[0])
        self._step = training.step(state.global_step + 1, learning_rate=rate)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401, ARG002
        """Note that the weights are updated; TRL logs the step's metrics after this."""
        self._has_stepped = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:  # noqa: ANN401, ARG002
        """Record the metrics of the step that has just ended; leaves out what is no number."""
        if self._step is None or not self._has_stepped or not logs:
            return
        named = {KL_TO_REFERENCE if name == "kl" else name: logs[name] for name in logs}
        self._step.metrics(
            recordable(named),
            loss=number_or_none(logs.get("loss")),
            gradient_norm=number_or_none(logs.get("grad_norm")),
        )
        self._end_step()

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401, ARG002
        """Record the completions of an evaluation that has just ended."""
        rows, self._evaluated = self._evaluated, []
        if self._held.training is None or not rows:
            return
        self._end_step()
        with self._held.training.evaluation(
            num_episodes=len(rows),
            temperature=args.temperature,
            num_tasks=len({row.task for row in rows}),
        ) as evaluation:
            self._record(evaluation, rows, self._trainer.num_generations_eval, None)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401, ARG002
        """End the training: all steps are made, or TRL was told to stop."""
        self._end_step()
        self._held.close()

    def _score(
        self,
        original: Callable[..., Any],
        inputs: Sequence[Mapping[str, Any]],
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Sequence[int]],
    ) -> Any:  # noqa: ANN401  # a tensor
        rewards = original(inputs, prompts, completions, completion_ids)
        self._scored = Scored(prompts, completions, completion_ids, rewards, png_images(inputs))
        return rewards

    def _generate(self, original: Callable[..., Any], inputs: Any) -> Any:  # noqa: ANN401  # TRL's
        # Before anything is trained: the trainer samples no more once `with` was left.
        is_training = self._trainer.model.training
        began = datetime.now(UTC)
        output = original(inputs)
        scored, self._scored = self._scored, None
        if scored is None:
            return output
        rows = rows_of(self._trainer, scored, output)
        if self._held.training is None:
            return output
        if is_training and self._step is not None:
            self._record(self._step, rows, self._trainer.num_generations, began)
        elif not is_training:
            self._evaluated += rows
        return output

    def _record(
        self,
        part: Step | Evaluation,
        rows: Sequence[Row],
        group_size: int,
        began: datetime | None,
    ) -> None:
        """Record rows, those of one prompt adjacent; `began`: when TRL began to generate them."""
        for begin in range(0, len(rows), group_size):
            members = rows[begin : begin + group_size]
            with part.group(members[0].task, num_rollouts=len(members)) as group:
                for row in members:
                    with group.rollout(started_at=began) as rollout:
                        rollout.turn(
                            text=row.text,
                            completion=row.completion,
                            screenshot=row.images[-1] if row.images else None,
                            prompt_images=row.images if len(row.images) > 1 else None,
                            prompt_tokens=row.prompt_tokens,
                            completion_tokens=row.completion_tokens,
                            completion_logprobs=row.logprobs,
                            stop_reason="length" if row.is_cut else "stop",
                            done=not row.is_cut,
                        )
                        if row.reward is None:
                            rollout.fail("every reward function returned None", "reward")
                            continue
                        success = None if self._success is None else self._success(row.reward)
                        rollout.finish(
                            reward=row.reward, success=success, metrics={"rewards": row.rewards}
                        )
            if isinstance(part, Step):
                group.advantages([row.advantage for row in members if row.reward is not None])

    def _end_step(self) -> None:
        step, self._step, self._has_stepped = self._step, None, False
        if step is not None and step.end is None:
            step.close()
