"""`cua-train sql`: the text-to-SQL system."""

import rich_click as click

from producer.commands.sql_data import data
from producer.commands.sql_demo import demo
from producer.commands.sql_evaluation import best_of_n, evaluate_sql
from producer.commands.sql_rl import rl
from producer.commands.sql_training import label_steps, reward_model, sft


@click.group()
def command() -> None:
    """Text-to-SQL with process rewards: data, reward models, trainings, evaluation."""


for _command in (data, sft, label_steps, reward_model, rl, evaluate_sql, best_of_n, demo):
    command.add_command(_command)
