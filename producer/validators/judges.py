"""Who judges a task that no device query judges: the agent itself, nobody, or another policy.

Names in configurations and task sources: `agent`, `none`, or the URL of an OpenAI-compatible
endpoint.
"""

from collections.abc import Callable
from typing import Annotated, Final

from pydantic import AfterValidator

from producer.endpoint_url import check_url
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
    return check_url(
        name, "CUA_JUDGE_API_KEY", what="judge", others="agent, none, or ", owner="a judge's"
    )


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
