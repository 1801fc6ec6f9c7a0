"""`cua-train sql data`: synthetic text-to-SQL data, and checks of any data set's golds."""

import json
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
)
from producer.console import print_table, progress_bar
from producer.errors import MismatchError

logger = logging.getLogger(__name__)

DATABASES = click.IntRange(1, 10_000)
"""Of one split; a call keeps them in memory."""

MAX_NAMED = 10
"""Questions that a message names."""


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
@option("--dev-databases", "Databases to evaluate on, different ones.", DATABASES, default=8)
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
    if as_json:
        report = {split: size._asdict() for split, size in written.items()}
        click.echo(json.dumps({**report, "output": str(output)}, indent=2))
        return
    levels = sorted({level for size in written.values() for level in size.by_difficulty})
    print_table(
        ["split", "databases", "questions", *levels],
        [
            [
                *(split, size.num_databases, size.num_questions),
                *(size.by_difficulty.get(level, 0) for level in levels),
            ]
            for split, size in written.items()
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
@option("--split", "Questions to check.", SPLIT, default="train")
@with_json
def check(*, folder: Path, split: str, as_json: bool) -> None:
    """Execute the gold SQL of a data set in BIRD's or Spider's layout.

    Names the questions where it fails, returns no rows, or differs from the gold in CoCTE form.
    Exits with 4 if a gold fails or differs.
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
        logger.warning("and %d more findings", len(found) - MAX_NAMED)
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
        print_table(["", "number"], [[name, value] for name, value in report.items()])
    if problems["fails"] or problems["cocte"]:
        message = f"{problems['fails'] + problems['cocte']} golds of {folder} are not sound"
        raise MismatchError(message)
