"""A completion with its tokens and their log-probs, read from what vLLM or SGLang answers."""

from dataclasses import dataclass
from typing import Literal

from pydantic import AliasChoices, BaseModel, Field, ValidationError

from producer.chat_answer import ChatAnswer, UnreadableAnswerError


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """What a server sampled."""

    text: str
    prompt_tokens: tuple[int, ...]
    """Tokens of the whole prompt, as the server rendered it."""
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop_reason: Literal["stop", "length"]
    model: str | None
    """The name of the model that, according to the server, answered."""


MISSING = (
    "its answer lacks what training needs ({field}); it must support return_token_ids and logprobs,"
    " as vLLM, SGLang (0.5.20 or newer) and `cua-train serve` do"
)


class _TokenLogprob(BaseModel):
    logprob: float


class _Logprobs(BaseModel):
    content: list[_TokenLogprob] | None = None
    """Set for a chat completion."""
    token_logprobs: list[float] | None = None
    """Set for a plain completion."""


class _Choice(BaseModel):
    token_ids: list[int] = Field(
        validation_alias=AliasChoices("token_ids", "response_token_ids")  # SGLang's in chat
    )
    prompt_token_ids: list[int] | None = None
    logprobs: _Logprobs
    finish_reason: Literal["stop", "length"]


class _Answer(BaseModel):
    choices: list[_Choice]
    prompt_token_ids: list[int] | None = None


def read_tokens(answer: ChatAnswer) -> TokenAnswer:
    """Read either kind of completion. Raises UnreadableAnswerError naming what is missing."""
    try:
        content = _Answer.model_validate(answer.content)
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise UnreadableAnswerError(MISSING.format(field=field)) from None
    choice = content.choices[0]
    prompt = content.prompt_token_ids or choice.prompt_token_ids
    logprobs = (
        choice.logprobs.token_logprobs
        if choice.logprobs.content is None
        else [item.logprob for item in choice.logprobs.content]
    )
    if not prompt:
        raise UnreadableAnswerError(MISSING.format(field="prompt_token_ids"))
    if not choice.token_ids or logprobs is None or len(logprobs) != len(choice.token_ids):
        message = (
            f"its answer has {len(choice.token_ids)} token ids and {len(logprobs or ())} log-probs;"
            " training needs one for each"
        )
        raise UnreadableAnswerError(message)
    return TokenAnswer(
        text=answer.text,
        prompt_tokens=tuple(prompt),
        tokens=tuple(choice.token_ids),
        logprobs=tuple(logprobs),
        stop_reason=choice.finish_reason,
        model=answer.model,
    )
