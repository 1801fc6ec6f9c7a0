"""Builds and warms up the small text policy of DB Bench."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from producer.agents.built_policy import OnStep
from producer.agents.dbbench.data.generate import generate
from producer.agents.dbbench.data.scene import ALIASES, NAMES, OPERATORS, TABLE_ALIASES, THEMES
from producer.agents.dbbench.data.splits import split_of
from producer.agents.dbbench.policy.demonstrations import Demonstration, build_examples, demonstrate
from producer.agents.dbbench.policy.recipe import TextRecipe
from producer.codecs.compact import COMPACT_MARK
from producer.policy.torch_policy.loading import load_base
from producer.seeds import derived_seed
from producer.supervised.fit import Fit, FitSettings, FitStep
from producer.supervised.objective import CrossEntropy
from producer.text_policy.build import build_text_policy
from producer.text_policy.initial_attention import lay_out_copying
from schemas.entry import EntryContent

NOUNS = {theme.table: theme.noun for theme in THEMES}


def renamed(entry: EntryContent, words: Sequence[str], random: Random) -> EntryContent:
    """Rename the entry's table, and the noun for its rows, to two of `words`.

    The chosen words occur nowhere else in the entry's columns, instruction and SQL.
    """
    table = entry.table_info
    if table is None or entry.sql is None:
        return entry
    columns = {column.name for column in table.columns}
    used = columns | {*re.findall(r"\w+", f"{entry.instruction} {entry.sql}")}
    name, noun = random.sample([word for word in words if word not in used], 2)
    new = {table.name: name, NOUNS.get(table.name, table.name): noun}

    def replaced(text: str) -> str:
        return re.sub(r"\w+", lambda word: new.get(word[0], word[0]), text)

    return entry.model_copy(
        update={
            "instruction": replaced(entry.instruction),
            "sql": replaced(entry.sql),
            "table_info": table.model_copy(update={"name": name}),
        }
    )


MAX_TOKENS = 1000
"""Maximum tokens per pass. A batch takes two passes or more, which run on as many cores."""
ENTRIES_PER_BEAT = 100
"""Entries generated between two progress reports."""


def build_unwarmed(folder: Path, recipe: TextRecipe, sessions: list[Demonstration]) -> None:
    """Write the policy with random weights.

    Its vocabulary covers the sessions and all word pools.
    """
    texts = [text for session in sessions for text in session.texts]
    build_text_policy(folder, texts, recipe.seed, words=pool_words())
    (folder / COMPACT_MARK).write_text(json.dumps({"codec": "dbbench", "seed": recipe.seed}))


def pool_words() -> list[str]:
    """Every word that generated entries can contain, including names of held-out tables."""
    of_themes = [
        word
        for theme in THEMES
        for word in (
            *(theme.table, theme.noun),
            *(word for group in theme.groups for word in (group.name, *group.values)),
            *(number.name for number in theme.numbers),
        )
    ]
    return [*of_themes, *NAMES, *ALIASES, *TABLE_ALIASES, *OPERATORS.values()]


def new_names() -> list[str]:
    """Words from the pools that a table can be renamed to.

    They include the names of held-out tables, so that the policy sees these words, on tables with
    other columns. With tied embeddings, a word that is never a target learns never to be one.
    """
    return sorted({*pool_words()} - {*TABLE_ALIASES, *OPERATORS.values()})


def warm_up_sessions(recipe: TextRecipe, on_step: OnStep = lambda *_: None) -> list[Demonstration]:
    """Generate demonstrations about tables that are not held out, with the tables renamed.

    `on_step` is called now and then.
    """
    sessions = []
    random = Random(recipe.seed)  # noqa: S311  # variety, not secrets
    for number, entry in enumerate(generate(recipe.num_entries, recipe.entries_seed)):
        if number % ENTRIES_PER_BEAT == 0:
            on_step(0, None)
        if split_of(entry) == "train":
            sessions.append(
                demonstrate(
                    renamed(entry, new_names(), random),
                    noise=recipe.noise,
                    seed=derived_seed(recipe.seed, "demonstration", number),
                )
            )
    return sessions


def make_policy(folder: Path, on_step: OnStep, recipe: TextRecipe) -> None:
    """Write the warmed-up policy into an empty folder."""
    sessions = warm_up_sessions(recipe, on_step)
    build_unwarmed(folder, recipe, sessions)
    network, tokenizer = load_base(str(folder))
    train(network, tokenizer, sessions, recipe, on_step)
    network.save_pretrained(folder)


def train(
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    sessions: list[Demonstration],
    recipe: TextRecipe,
    on_step: OnStep,
) -> None:
    """Imitate the sessions, training in place.

    `on_step` gets (steps done, loss per target token).
    """
    lay_out_copying(network, recipe.seed)
    network.requires_grad_(requires_grad=True)
    examples = build_examples(sessions, tokenizer, None)
    fit = Fit(
        network,
        examples,
        CrossEntropy(),
        FitSettings(
            num_steps=recipe.num_steps,
            batch_size=recipe.batch_size,
            learning_rate=recipe.learning_rate,
            muon_learning_rate=recipe.muon_learning_rate,
            warmup_steps=recipe.warmup_steps,
            final_factor=recipe.final_factor,
            weight_decay=0.01,
            betas=(0.9, 0.98),
            max_tokens=MAX_TOKENS,
            seed=recipe.seed,
        ),
    )

    def beat(step: FitStep) -> None:
        on_step(step.number, step.loss)

    fit.run(beat)
