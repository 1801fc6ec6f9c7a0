"""A model behind an OpenAI-compatible endpoint as the judge of an episode.

The model gets the task, the agent's actions and the last screenshots. Only an answer that is one
JSON object is a verdict: the agent wrote parts of the prompt, and text around the object may quote
it.
"""

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import Final

from pydantic import BaseModel, ConfigDict, JsonValue, StrictBool

from producer.bounded_text import cut, cut_json
from producer.chat_answer import ChatAnswer, ChatFailedError, UnreadableAnswerError, listed_names
from producer.chat_endpoint import ChatEndpoint
from producer.errors import UsageError
from producer.json_text import unique_fields
from producer.task import Task
from producer.thoughts import JSON_LITERAL, hide_thoughts
from producer.validators.judges import INSTRUCTIONS, MODEL_QUERY, SUCCESS, JudgeFailedError
from producer.validators.verdict import Evidence, Verdict
from schemas.ids import content_hash
from schemas.turn import TakenAction

KEY_VARIABLES: Final = ("CUA_JUDGE_API_KEY", "OPENAI_API_KEY")
"""Environment variables of the judge's key; the first one that is set is used."""
JUDGE_SHARE: Final = 0.8
"""A judge's timeout as a share of the time after which an environment's thread counts as hung, so
that the judge gives up first."""
MAX_JUDGE_S: Final = 120.0
UNNAMED_MODEL: Final = "default"
"""Model name that is requested if neither the user nor the endpoint names one; most servers accept
any name."""
MAX_ACTIONS, MAX_ACTION_CHARS = 200, 500
MAX_REASON_CHARS = 2000
FENCED = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    success: StrictBool
    reason: str = ""


class ModelJudge:
    """Requests verdicts from endpoints.

    Thread-safe. A call takes at most `timeout_s`, retries included. Verdicts and errors do not
    contain the key.
    """

    def __init__(self, key: str | None, timeout_s: float) -> None:
        """`key` is sent as the bearer token, if given."""
        self._timeout_s = timeout_s
        self._endpoint_at = cache(lambda url: ChatEndpoint(url, key))

    def find_model(self, url: str, wanted: str | None) -> str:
        """The model name to request: `wanted`, or the only one that the endpoint lists.

        Raises UnreachableError if the endpoint does not answer, and UsageError if it refuses the
        key or lists several models.
        """
        listed = self._endpoint_at(url).list_models(
            f"the judge at {url}",
            "CUA_JUDGE_API_KEY",
            ways=("start it", "choose another --judge"),
        )
        if wanted is not None:
            return wanted
        if len(listed) > 1:
            message = (
                f"judge_model: required because {url} serves {len(listed)} models:"
                f" {listed_names(listed)}"
            )
            raise UsageError(message)
        return listed[0].id if listed else UNNAMED_MODEL

    def __call__(self, task: Task, evidence: Evidence) -> Verdict:
        """The verdict on an episode. Raises JudgeFailedError if the endpoint gives none in time."""
        url, model = task.judge or "", task.judge_model or UNNAMED_MODEL
        messages = judge_messages(task, evidence)
        body: dict[str, JsonValue] = {"model": model, "messages": messages, "temperature": 0}
        (result,) = self._endpoint_at(url).complete([body], _parse, self._timeout_s)
        if isinstance(result, ChatFailedError):
            message = f"the judge {model} at {url} gave no verdict: {result}"
            raise JudgeFailedError(message)
        answer, answered_by = result
        return Verdict(
            answer.success,
            MODEL_QUERY,
            SUCCESS,
            SUCCESS if answer.success else "failure",
            {
                "judge": url,
                "model": answered_by or model,
                "prompt_sha256": content_hash(messages),
                "reason": cut(answer.reason, MAX_REASON_CHARS),
                "num_screens": len(evidence.screens),
            },
        )


def open_judge(
    environ: Mapping[str, str], max_turn_time_s: float = MAX_JUDGE_S / JUDGE_SHARE
) -> ModelJudge:
    """Create the client of judge endpoints with the key from the environment variables.

    `max_turn_time_s` is the time after which the environment's thread counts as hung.
    """
    key = next((environ[name] for name in KEY_VARIABLES if environ.get(name)), None)
    return ModelJudge(key, min(MAX_JUDGE_S, JUDGE_SHARE * max_turn_time_s))


def judge_messages(task: Task, evidence: Evidence) -> list[JsonValue]:
    """Build the prompt. What the agent wrote is quoted as JSON."""
    episode: dict[str, JsonValue] = {
        "task": task.description,
        "num_actions": len(evidence.actions),
        "last_actions": [_describe_action(call) for call in evidence.actions[-MAX_ACTIONS:]],
    }
    images: list[JsonValue] = [
        {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{b64encode(png).decode()}"},
        }
        for png in evidence.screens
    ]
    text = json.dumps(episode, ensure_ascii=False)
    return [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": [{"type": "text", "text": text}, *images]},
    ]


def _describe_action(call: TakenAction) -> JsonValue:
    action: JsonValue = None if call.action is None else call.action.model_dump(mode="json")
    described: dict[str, JsonValue] = {"action": action}
    if call.error_type is not None:
        described["error"] = call.error_type
    return cut_json(described, MAX_ACTION_CHARS)


def _parse(answer: ChatAnswer) -> tuple[_Answer, str | None]:
    """The answer's JSON object, which may be fenced or follow thoughts, and the model's name."""
    text = hide_thoughts(answer.text, JSON_LITERAL).strip()
    fenced = FENCED.fullmatch(text)
    try:
        content = json.loads(fenced[1] if fenced else text, object_pairs_hook=unique_fields)
        return _Answer.model_validate(content), answer.model
    except (ValueError, RecursionError):
        start = cut(answer.text, 200)
        message = f'its answer is not {{"success": ..., "reason": ...}} alone: {start!r}'
        raise UnreadableAnswerError(message) from None
