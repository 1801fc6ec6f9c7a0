"""`cua-train sql`: the text-to-SQL system; here its data sets."""

import logging
from collections import Counter
from pathlib import Path

import rich_click as click

from producer.commands.options import (
    FOLDER,
    SEED,
    SPLIT,
    check_new_output,
    chosen_names,
    examples,
    option,
    with_json,
    with_skip_invalid,
)
from producer.commands.sql_demo import demo
from producer.commands.sql_evaluation import best_of_n, evaluate_sql
from producer.commands.sql_rl import rl
from producer.commands.sql_training import label_steps, reward_model, sft
from producer.console import print_report, progress_bar, warn_of_some
from producer.errors import MismatchError

logger = logging.getLogger(__name__)

DATABASES = click.IntRange(1, 10_000)
"""Number of databases per split; a call holds them in memory."""


@click.group()
def command() -> None:
    """Text-to-SQL with process rewards: data, reward models, trainings, evaluation."""


@click.group("data")
def data() -> None:
    """Generate text-to-SQL data sets, and check the gold SQL of any data set."""


@data.command(
    "generate",
    epilog=examples(
        "$ cua-train sql data generate --seed 0 --output questions",
        "$ cua-train sql data generate --templates count,filter --output easy",
    ),
)
@option("--seed", "The same seed generates the same data.", SEED, default=0)
@option("--train-databases", "Databases to train on.", DATABASES, default=24)
@option("--dev-databases", "Other databases, to evaluate on.", DATABASES, default=8)
@option(
    "--questions-per-template",
    "Questions per template and database, fewer if the rows do not yield as many.",
    click.IntRange(1, 20),
    default=2,
)
@option("--templates", "Kinds of questions.", metavar="A,B", shown="all 16")
@option(
    "--output",
    "Folder to write train.json, dev.json and databases into; must be new or empty.",
    FOLDER,
    required=True,
)
@with_json
def generate(
    *,
    seed: int,
    train_databases: int,
    dev_databases: int,
    questions_per_template: int,
    templates: str | None,
    output: Path,
    as_json: bool,
) -> None:
    """Generate databases and questions about them, in BIRD's layout.

    Each question has its gold as plain SQL and in steps (CoCTE). Questions that a common mistake
    would still answer are left out. No database is in both splits.
    """
    from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
    from producer.agents.text_to_sql.data.templates import TEMPLATES

    chosen: tuple[str, ...] = ()
    if templates is not None:
        known = [template.name for template in TEMPLATES]
        chosen = chosen_names(templates, known, flag="--templates", noun="template")
    check_new_output(output)
    wanted = SyntheticSize(train_databases, dev_databases, questions_per_template, chosen)
    written = write_synthetic(output, seed, wanted)
    levels = sorted({level for size in written.values() for level in size.by_difficulty})
    report: dict[str, object] = {split: size._asdict() for split, size in written.items()}
    print_report(
        report | {"output": str(output)},
        ["split", "databases", "questions", *levels],
        [
            [
                *(split, size.num_databases, size.num_questions),
                *(size.by_difficulty.get(level, 0) for level in levels),
            ]
            for split, size in written.items()
        ],
        as_json=as_json,
    )
    if not as_json:
        logger.info("written to %s", output)


@data.command(
    "check",
    epilog=examples(
        "$ cua-train sql data check bird/dev_20240627 --split dev",
        "$ cua-train sql data check spider --json",
        "$ cua-train sql data check bird/train --skip-invalid",
    ),
)
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@option("--split", "Questions to check.", SPLIT, default="train")
@with_skip_invalid
@with_json
def check(*, folder: Path, split: str, skip_invalid: bool, as_json: bool) -> None:
    """Execute the gold SQL of a data set in BIRD's or Spider's layout.

    Names the questions where it fails, returns no rows, or differs from the gold in CoCTE form.
    Exits with 4 if a gold fails or differs, with --skip-invalid only if all do.
    """
    from producer.agents.text_to_sql.data.layouts import DATA_SPLITS
    from producer.agents.text_to_sql.data.sound_questions import sound_questions
    from producer.agents.text_to_sql.data.tasks import Finding, findings

    chosen = next(data_split for data_split in DATA_SPLITS if data_split == split)
    questions, databases, without = sound_questions(
        folder, chosen, skip_invalid=skip_invalid, is_checked=True
    )
    found: list[Finding] = []
    with progress_bar("running the golds", len(questions)) as bar:
        for question in questions:
            found += findings(question)
            bar.advance()
    named = [(finding.question, finding.message) for finding in found]
    warn_of_some(
        [f"question {asked.question_id} about {asked.db_id}: {text}" for asked, text in named],
        "findings",
    )
    problems = Counter(finding.problem for finding in found)
    report = {
        "questions": len(questions) + len(without),
        "databases": len(databases),
        "sound": len(questions) - len({finding.question.question_id for finding in found}),
        "fails": problems["fails"],
        "no_rows": problems["no_rows"],
        "cocte": problems["cocte"],
    }
    unsound = problems["fails"] + problems["cocte"]
    if skip_invalid:
        report["left_out"] = len(without) + unsound
    print_report(report, ["", "number"], list(report.items()), as_json=as_json)
    if unsound and not (skip_invalid and unsound < len(questions)):
        message = f"{unsound} golds of {folder} are not sound"
        raise MismatchError(
            message, ways=("leave them out with --skip-invalid",) * (not skip_invalid)
        )


for _command in (data, sft, label_steps, reward_model, rl, evaluate_sql, best_of_n, demo):
    command.add_command(_command)
