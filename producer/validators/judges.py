"""Who judges a task that no device query judges: the agent itself, nobody, or another policy.

Names in configurations and task sources: `agent`, `none`, or the URL of an OpenAI-compatible
endpoint.
"""

from collections.abc import Callable
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator

from producer.task import Task
from producer.validators.verdict import Evidence, Verdict
from schemas.actions import Terminate

AGENT: Final = "agent"
"""The agent's own report, `terminate(success)`, is the verdict."""
NOBODY: Final = "none"
"""The task is never judged."""
REPORT_QUERY: Final = "agent_report"
"""What stands for a device query in the verdict of the judge `agent`."""
SUCCESS: Final = "success"


def check_judge(name: str) -> str:
    """The name in its normal form; ValueError when it is no judge."""
    if name in {AGENT, NOBODY}:
        return name
    try:
        parts = urlsplit(name)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or any(character.isspace() for character in name):
        message = (
            f"{name!r} is no judge; use agent, none, or the URL of an OpenAI-compatible endpoint"
            " such as http://localhost:8000/v1"
        )
        raise ValueError(message)
    if parts.username is not None or parts.query or parts.fragment:
        message = (
            "a judge's URL must not hold a user, a password, a query or a fragment, because it is"
            " recorded; give the key in the environment variable CUA_JUDGE_API_KEY"
        )
        raise ValueError(message)
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


Judge = Annotated[str, AfterValidator(check_judge)]
"""`agent`, `none`, or the URL of an endpoint without a trailing slash."""


AskModel = Callable[[Task, Evidence], Verdict]
"""Asks the endpoint that the task names. JudgeFailedError."""


class JudgeFailedError(Exception):
    """There is no verdict, through no fault of the agent."""


def agent_report(evidence: Evidence) -> Verdict:
    """Success if the agent ended the episode and reported success."""
    ends = [call.action for call in evidence.actions if isinstance(call.action, Terminate)]
    report = ends[0].status if ends else ""
    return Verdict(report == SUCCESS, REPORT_QUERY, SUCCESS, report)
