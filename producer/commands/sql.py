"""`cua-train sql`: the text-to-SQL system; a module for each of its commands."""

import rich_click as click

from producer.commands.sql_data import data
from producer.commands.sql_demo import demo
from producer.commands.sql_evaluation import best_of_n, evaluate_sql
from producer.commands.sql_labels import label_steps
from producer.commands.sql_rl import rl
from producer.commands.sql_training import reward_model, sft


@click.group()
def command() -> None:
    """Text-to-SQL with process rewards: supervised trainings and reward models."""


command.add_command(data)
command.add_command(sft)
command.add_command(label_steps)
command.add_command(reward_model)
command.add_command(rl)
command.add_command(evaluate_sql)
command.add_command(best_of_n)
command.add_command(demo)
