"""The reward of a completion's tokens, from the scores of its steps and from its outcome.

R = rm_coef * score of the token's step + verifier_coef * outcome. As published, if steps are
scored, the outcome is added to every token, so that r > 1 identifies steps of a right answer.
Without scores (rm_coef 0) only the last token gets it.

A reward manager gets a batch of responses in the shape of verl's DataProto (`RewardBatch`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from producer.process_rewards.cocte import TokenSpan, split_steps, token_spans
from producer.process_rewards.row_sets import sql_reward_function

ScoreSteps = Callable[[str, Sequence[str]], list[float]]
"""A process reward model: maps (prompt, steps) to the probability, for each step, that it is
right."""
ComputeScore = Callable[..., float]
END_OF_TURN: Final = "<|im_end|>"


@dataclass(frozen=True, slots=True)
class RewardWeights:
    """Weights of step scores and of the outcome."""

    rm_coef: float = 0.0
    """Weight of a step's score; with 0, steps are not scored."""
    verifier_coef: float = 1.0
    """Weight of the outcome."""


class ScoredSteps(NamedTuple):
    """A completion's steps, their token spans and their scores, all of equal length."""

    texts: tuple[str, ...]
    spans: tuple[TokenSpan, ...]
    scores: tuple[float, ...]


def score_completion(
    prompt: str, completion: str, starts_T: Sequence[int], score_steps: ScoreSteps
) -> ScoredSteps:
    """Score the steps with `score_steps`. Without SQL, the whole completion is one step.

    `starts_T` is as in `token_spans`. Raises ValueError for a wrong number of scores, or one
    outside 0 to 1.
    """
    steps = split_steps(completion)
    texts = tuple(step.text for step in steps) or (completion,)
    scores = tuple(map(float, score_steps(prompt, texts)))
    if len(scores) != len(texts) or not all(0 <= score <= 1 for score in scores):
        message = f"expected a score from 0 to 1 for each of {len(texts)} steps; found {scores}"
        raise ValueError(message)
    spans = token_spans(steps, starts_T) if steps else (TokenSpan(0, len(starts_T)),)
    return ScoredSteps(texts, spans, scores)


def token_rewards(
    num_tokens: int, outcome: float, steps: ScoredSteps | None, weights: RewardWeights
) -> list[float]:
    """R of each token.

    With `steps` None, nothing was scored, and only the last token is rewarded.
    """
    if not num_tokens:
        return []
    if steps is None or not weights.rm_coef:
        return [0.0] * (num_tokens - 1) + [weights.verifier_coef * outcome]
    rewards = [weights.verifier_coef * outcome] * num_tokens
    for span, score in zip(steps.spans, steps.scores, strict=True):
        for at in range(span.first, span.last):
            rewards[at] += weights.rm_coef * score
    return rewards


class RewardItem(NamedTuple):
    """One response of a batch."""

    batch: dict[str, Any]
    """The response's rows of the tensors."""
    non_tensor_batch: dict[str, Any]
    """The response's values of everything else."""


class RewardBatch:
    """A batch of responses to reward.

    Keys of `batch`: `prompts` and `responses` (token ids, [B, P] and [B, T]), `attention_mask` ([B,
    P + T]) and, with a process reward model, `rm_scores` ([B, T]: a step's score on its last
    token). Keys of `non_tensor_batch`: `db_id`, `index` (the question's id), `data_source`,
    `reward_model` ({"ground_truth": SQL}) and `extra_info`.
    """

    def __init__(
        self, batch: Mapping[str, Any], non_tensor_batch: Mapping[str, Sequence[Any]] | None = None
    ) -> None:
        """The first axis of the tensors in `batch` is that of the responses."""
        self.batch: dict[str, Any] = dict(batch)
        self.non_tensor_batch: dict[str, Any] = dict(non_tensor_batch or {})
        self.meta_info: dict[str, Any] = {}

    def __len__(self) -> int:
        """Number of responses."""
        return len(next(iter(self.batch.values())))

    def __getitem__(self, at: int) -> RewardItem:
        """One response. Raises IndexError."""
        return RewardItem(
            {name: value[at] for name, value in self.batch.items()},
            {name: value[at] for name, value in self.non_tensor_batch.items()},
        )


class StepAndOutcomeManager:
    """The published reward manager. `__call__(batch)` returns rewards [B, T]."""

    def __init__(
        self,
        tokenizer: Any,  # noqa: ANN401  # transformers ships no types
        num_examine: int,
        config: Any,  # noqa: ANN401  # a mapping, or an object with attributes
        compute_score: ComputeScore | None = None,
    ) -> None:
        """Read the weights from `config`, a mapping or an object with attributes.

        Its settings are `reward_model.rm_coef` (0), `verifier.reward_coef` (1) and `verifier.port`.
        `num_examine` exists for compatibility with the original: nothing is printed here.
        """
        self.tokenizer = tokenizer
        self.num_examine = num_examine
        self.config = config
        self.compute_score = compute_score or sql_reward_function
        self._weights = RewardWeights(
            rm_coef=float(_setting(config, "reward_model", "rm_coef", 0.0)),
            verifier_coef=float(_setting(config, "verifier", "reward_coef", 1.0)),
        )

    def __call__(self, data: RewardBatch) -> Any:  # noqa: ANN401  # a tensor, whose library is not imported here
        """Rewards of the responses' tokens, 0 in the padding after them."""
        rewards_BT = (data.batch["responses"] * 0).float()
        for at in range(len(data)):
            item = data[at]
            num_tokens = _num_tokens(item)
            steps = None
            if "rm_scores" in item.batch:
                steps = _steps_of_marks(item.batch["rm_scores"].tolist()[:num_tokens])
            own = token_rewards(num_tokens, self._outcome(item, num_tokens), steps, self._weights)
            for place, reward in enumerate(own):
                rewards_BT[at, place] = reward
        return rewards_BT

    def _outcome(self, item: RewardItem, num_tokens: int) -> float:
        if not self._weights.verifier_coef:
            return 0.0
        text = self.tokenizer.decode(item.batch["responses"][:num_tokens])
        others = item.non_tensor_batch
        return float(
            self.compute_score(
                port=_setting(self.config, "verifier", "port", None),
                db_id=others["db_id"],
                question_id=others["index"],
                solution_str=text.replace(END_OF_TURN, ""),
                ground_truth=others["reward_model"]["ground_truth"],
                extra_info=others.get("extra_info"),
            )
        )


def _num_tokens(item: RewardItem) -> int:
    """Number of tokens in the response without padding."""
    return int(item.batch["attention_mask"][len(item.batch["prompts"]) :].sum())


def _steps_of_marks(scores_T: Sequence[float]) -> ScoredSteps:
    """Split the tokens into steps: each nonzero score ends a step."""
    marks = [at for at, score in enumerate(scores_T) if score]
    firsts = [0, *(at + 1 for at in marks)]
    spans = tuple(TokenSpan(first, at + 1) for first, at in zip(firsts, marks, strict=False))
    return ScoredSteps(("",) * len(marks), spans, tuple(scores_T[at] for at in marks))


def _setting(config: Any, section: str, name: str, default: Any) -> Any:  # noqa: ANN401  # see __init__
    for key in (section, name):
        config = config.get(key) if isinstance(config, Mapping) else getattr(config, key, None)
    return default if config is None else config
