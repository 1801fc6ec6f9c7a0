"""The tokens of a turn as the log has them: each turn records only what it adds to the prompt."""

from collections.abc import Iterable, Sequence

from producer.environments.environment import Screenshot
from producer.policy.policy import SampledTokens, SampleRequest
from schemas.arrays import encode_float32, encode_int32
from schemas.turn import Sampling, TokenRecord, TurnTaken


def token_record(request: SampleRequest, tokens: SampledTokens) -> TokenRecord:
    """What `TurnTaken` records of a completion that was sampled for `request`."""
    return TokenRecord(
        prompt_extends=tokens.prompt_extends,
        prompt_tokens=encode_int32(tokens.prompt_tokens),
        prompt_images=tuple(image.ref for image in new_prompt_images(request, tokens)),
        completion_tokens=encode_int32(tokens.completion_tokens),
        completion_logprobs=encode_float32(tokens.completion_logprobs),
        sampling=Sampling(
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            top_p=request.top_p,
            seed=request.seed,
        ),
        stop_reason=tokens.stop_reason,
    )


def new_prompt_images(request: SampleRequest, tokens: SampledTokens) -> Sequence[Screenshot]:
    """The screenshots that the prompt has beyond the one it extends, oldest first."""
    turns = [*(turn.screenshot for turn in request.history), request.screenshot]
    shown = [screenshot for screenshot in turns if screenshot is not None]
    if tokens.prompt_extends is not None:
        return [
            screenshot for screenshot in turns[tokens.prompt_extends :] if screenshot is not None
        ]
    return shown[max(0, len(shown) - tokens.num_prompt_images) :]


def total_prompt_images(turns: Iterable[TurnTaken]) -> dict[int, int]:
    """Turn number -> images of that turn's whole prompt, over the turns that it extends.

    `turns` of one rollout in order; those without tokens are left out. KeyError for a turn that
    extends one which is not among them.
    """
    totals: dict[int, int] = {}
    for turn in turns:
        if turn.tokens is not None:
            extends = turn.tokens.prompt_extends
            num_before = 0 if extends is None else totals[extends]
            totals[turn.turn] = num_before + len(turn.tokens.prompt_images)
    return totals
