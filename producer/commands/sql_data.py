"""`cua-train sql data`: synthetic text-to-SQL data, and checks of any data set's golds."""

import json
import logging
from collections import Counter
from pathlib import Path

import rich_click as click

from producer.commands.options import check_new_folder, chosen_names, examples, with_json
from producer.console import print_table, progress_bar
from producer.errors import MismatchError

logger = logging.getLogger(__name__)

MAX_DATABASES = 10_000
"""Of a split of one call, which are in memory."""

MAX_NAMED = 10
"""Questions that a message names."""


@click.group("data")
def data() -> None:
    """Generate text-to-SQL data sets, and check the golds of any."""


@data.command(
    "generate",
    epilog=examples(
        "$ cua-train sql data generate --seed 0 --output questions",
        "$ cua-train sql data generate --templates count,filter --output easy",
    ),
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="The same seed gives the same data. [default: 0]",
)
@click.option(
    "--train-databases",
    type=click.IntRange(1, MAX_DATABASES),
    default=24,
    metavar="N",
    help="Databases to train on. [default: 24]",
)
@click.option(
    "--dev-databases",
    type=click.IntRange(1, MAX_DATABASES),
    default=8,
    metavar="N",
    help="Further databases, to evaluate on. [default: 8]",
)
@click.option(
    "--questions-per-template",
    type=click.IntRange(min=1, max=20),
    default=2,
    metavar="N",
    help="Questions of each template about one database, if its rows have so many. [default: 2]",
)
@click.option(
    "--templates",
    metavar="A,B",
    help="Kinds of questions, separated by commas. [default: all 16]",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FOLDER",
    help="Folder to write train.json, dev.json and databases into; it must not exist or be empty.",
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

    Each question has its gold as plain SQL and in steps (CoCTE), and is kept only where common
    wrong answers have other rows. No database is in both splits.
    """
    from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
    from producer.agents.text_to_sql.data.templates import TEMPLATES

    chosen: tuple[str, ...] = ()
    if templates is not None:
        known = [template.name for template in TEMPLATES]
        chosen = chosen_names(templates, known, option="--templates", noun="template")
    check_new_folder(output)
    size = SyntheticSize(train_databases, dev_databases, questions_per_template, chosen)
    written = write_synthetic(output, seed, size)
    if as_json:
        report = {split: one._asdict() for split, one in written.items()}
        click.echo(json.dumps({**report, "output": str(output)}, indent=2))
        return
    levels = sorted({level for item in written.values() for level in item.by_difficulty})
    print_table(
        ["split", "databases", "questions", *levels],
        [
            [
                *(split, one.num_databases, one.num_questions),
                *(one.by_difficulty.get(level, 0) for level in levels),
            ]
            for split, one in written.items()
        ],
    )
    logger.info("written to %s", output)


@data.command(
    "check",
    epilog=examples(
        "$ cua-train sql data check bird/dev_20240627 --split dev",
        "$ cua-train sql data check spider --json",
    ),
)
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option(
    "--split",
    type=click.Choice(["train", "dev", "test"]),
    default="train",
    help="Which questions. [default: train]",
)
@with_json
def check(*, folder: Path, split: str, as_json: bool) -> None:
    """Read a data set in BIRD's or Spider's layout and execute its golds.

    Names those that fail, have no rows, or differ from their gold in CoCTE form. Exits with 4 if a
    gold fails or differs.
    """
    from producer.agents.text_to_sql.data.layouts import DATA_SPLITS, read_questions
    from producer.agents.text_to_sql.data.soundness import Finding, findings
    from producer.agents.text_to_sql.data.tasks import database_statements

    chosen = next(data_split for data_split in DATA_SPLITS if data_split == split)
    questions = read_questions(folder, chosen)
    databases = {question.database for question in questions}
    for database in sorted(databases):
        database_statements(database)
    found: list[Finding] = []
    with progress_bar("running the golds", len(questions)) as bar:
        for question in questions:
            found += findings(question)
            bar.advance()
    for finding in found[:MAX_NAMED]:
        logger.warning(
            "question %d about %s: %s",
            *(finding.question.question_id, finding.question.db_id, finding.message),
        )
    if len(found) > MAX_NAMED:
        logger.warning("and %d findings more", len(found) - MAX_NAMED)
    problems = Counter(finding.problem for finding in found)
    report = {
        "questions": len(questions),
        "databases": len(databases),
        "sound": len(questions) - len({finding.question.question_id for finding in found}),
        "fails": problems["fails"],
        "no_rows": problems["no_rows"],
        "cocte": problems["cocte"],
    }
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        print_table(["what", "number"], [[name, value] for name, value in report.items()])
    if problems["fails"] or problems["cocte"]:
        message = f"{problems['fails'] + problems['cocte']} golds of {folder} are not sound"
        raise MismatchError(message)
