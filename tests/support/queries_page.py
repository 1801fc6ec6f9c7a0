"""Renders docs/queries.md from the device queries: `make docs` writes it."""

import sys

from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.queries import describe_queries
from producer.agents.android.sim.device.answers import ANSWERS
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "queries.md"
HEAD = """# Device queries and set-up commands

A task of your own names a device query as its `validation_query`, and as `expected` the answer that
solves it. Answers are compared as text, without case and surrounding spaces. What a query can never
answer, and what the simulated phone does not have, is refused when the task is loaded. Several
queries are joined by `&`, and so are their answers ([tasks](tasks.md)). `cua-train tasks queries`
prints this table. Written by `make docs`.

| query | answers | asks the device |
|---|---|---|"""
PHONE = """
The simulated phone answers only these values of:

| query | on the simulated phone |
|---|---|"""
SETUP = """
## Set-up commands

`setup` is a list of shell commands that run before the agent's first turn, so that the task is not
solved yet. A task with a command that fails is refused. The demo tasks use these; the phone
understands more of them: `producer/agents/android/sim/device/shell.py`.

| command | example |
|---|---|"""


def render() -> str:
    """The whole page."""
    lines = [HEAD]
    for describe_query in describe_queries():
        commands = "; ".join(f"`{command}`" for command in describe_query.commands)
        lines.append(f"| `{describe_query.query}` | {describe_query.answers} | {commands} |")
    lines += [PHONE, *(f"| `{name}` | {', '.join(found)} |" for name, found in ANSWERS.items())]
    lines += [SETUP, *(f"| `{name}` | `{example}` |" for name, example in setup_commands().items())]
    return "\n".join([*lines, ""])


def setup_commands() -> dict[str, str]:
    """Program and verb -> the first command of a demo task that uses them."""
    found: dict[str, str] = {}
    for command in (command for task in demo_tasks() for command in task.setup):
        words = command.split()
        plain = [word for word in words[:2] if not word.startswith("-")]
        found.setdefault(" ".join(plain), command)
    return dict(sorted(found.items()))


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stderr.write(f"wrote {PAGE.relative_to(ROOT)}\n")
