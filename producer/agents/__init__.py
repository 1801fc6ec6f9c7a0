"""Agents: each folder holds one agent and everything that belongs to it.

To add an agent, create a folder with a subclass of `Agent` and add a line to `AGENTS`.
"""

from producer.agents.adb.agent import AdbAgent
from producer.agents.agent import Agent, AgentSettings
from producer.agents.android.agent import AndroidAgent
from producer.agents.dbbench.agent import DbBenchAgent
from producer.agents.desktop.agent import DesktopAgent
from producer.agents.gbox.agent import GboxAgent
from producer.agents.miniwob.agent import MiniWobAgent
from producer.agents.openenv.agent import OpenEnvAgent
from producer.agents.text_to_sql.agent import TextToSqlAgent

AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        AndroidAgent(),
        DbBenchAgent(),
        TextToSqlAgent(),
        AdbAgent(),
        GboxAgent(),
        MiniWobAgent(),
        OpenEnvAgent(),
        DesktopAgent(),
    )
}
"""Maps the configuration's `environment` to its agent. The first is the default."""
DEFAULT_AGENT = next(iter(AGENTS))
OTHER_SPELLINGS = {"linux": DesktopAgent.name}
"""Another spelling of an environment -> the name that is recorded."""

__all__ = ["AGENTS", "DEFAULT_AGENT", "OTHER_SPELLINGS", "Agent", "AgentSettings"]
