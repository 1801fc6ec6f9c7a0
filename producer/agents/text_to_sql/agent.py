"""The agent `text_to_sql`: answers a question about a database with one query."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from producer.agents.agent import Agent, AgentSettings, MakeEnvironment
from producer.agents.task_source import TaskSource, by_type
from producer.agents.text_to_sql.codec import SYSTEM_PROMPT, TextToSqlCodec
from producer.agents.text_to_sql.data.layouts import DataSplit
from producer.codecs.codec import Format
from producer.task import Task

if TYPE_CHECKING:
    from producer.agents.text_to_sql.environment import TextToSqlEnvironment
    from producer.policy.learner import Learner


class Questions(TaskSource):
    """The questions of a data set."""

    source_type: Literal["text_to_sql"]
    path: Path
    """Folder of a data set in BIRD's or Spider's layout."""
    split: DataSplit = "train"
    """The split of the data set."""
    skip_invalid: bool = False
    """Skip questions whose database is missing or whose gold fails, instead of refusing the source.
    """

    def load(self, where: str) -> Sequence[Task]:
        """The questions in the order of their file."""
        from producer.agents.text_to_sql.data.sound_questions import load_text_to_sql

        return load_text_to_sql(self.path, self.split, where, skip_invalid=self.skip_invalid)


class TextToSqlAgent(Agent):
    """An agent that answers questions about a database in SQL."""

    name = "text_to_sql"
    description = "questions to answer in SQL"
    box_type = "database"
    answers_in_steps = True
    sql_dialect = "sqlite"
    task_sources = by_type(Questions)

    def text_format(self, settings: AgentSettings) -> Format:  # noqa: ARG002  # required by the interface
        """A codec whose completions are steps that end in a query."""
        return Format(TextToSqlCodec(), SYSTEM_PROMPT)

    def make_environment(self, settings: AgentSettings) -> "TextToSqlEnvironment":
        """An environment over the databases of the data sets that the tasks come from."""
        from producer.agents.text_to_sql.data.databases import data_folders, find_database
        from producer.agents.text_to_sql.environment import TextToSqlEnvironment

        folders = data_folders(settings.tasks, settings.eval_tasks)
        return TextToSqlEnvironment(
            lambda entry: find_database(folders, entry.database or "", entry.database_sha256)
        )

    def check_task(self, settings: AgentSettings, task: Task) -> None:
        """Execute the task's gold SQL, unless its database is large."""
        self.make_environment(settings).check(task)

    def open_oracle(self, settings: AgentSettings) -> "tuple[Learner, MakeEnvironment]":
        """A scripted policy that answers with the gold SQL."""
        from producer.policy.scripted_learner import GoldOracle

        oracle = GoldOracle(
            TextToSqlCodec(), noise=settings.oracle_noise, seed=settings.seed, asks_first=False
        )
        return oracle, lambda _episode: self.make_environment(settings)
