"""CoCTE, a chain of common table expressions: SQL whose steps can be read and scored one by one.

    WITH cheap AS (SELECT id FROM book WHERE price < 9),

    lent AS (SELECT book_id FROM loan WHERE book_id IN (SELECT id FROM cheap))

    SELECT count(*) FROM lent

Each step is one CTE, a blank line separates the steps, and the query comes last. Steps are split at
blank lines outside strings, names, comments and parentheses. Whether they form a CoCTE is checked
afterwards, so that the steps of any completion can be scored.

Together, the steps' tokens cover the whole completion: text between two steps belongs to the first
of them, text before the first or after the last step belongs to that step. So a score for each step
gives a score for each token.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from producer.process_rewards.sql_text import COMMENTED, Span, find_sql, skeleton

if TYPE_CHECKING:
    from sqlglot import exp

STEP_SEPARATOR: Final = "\n\n"
MAX_PARSED_CHARS: Final = 20_000
"""Maximum characters of SQL that is parsed; longer SQL is not CoCTE. Ten times the longest gold of
BIRD."""
MAX_DEPTH: Final = 20
"""Maximum nesting of parentheses in SQL that is parsed, because the parser recurses, with twenty
calls for each level."""
BLANK_LINE: Final = re.compile(r"\n[ \t\r\f\v]*+\n\s*+")
_NAME: Final = r'[^\W\d][\w$]*|"[^"]*"|`[^`]*`|\[[^\]]*\]'
_CTE: Final = re.compile(
    rf"(?P<with>WITH\s+(?:RECURSIVE\s+)?)?(?P<name>{_NAME})\s*(?:\(\s*\)\s*)?"
    r"AS\s*(?:(?:NOT\s+)?MATERIALIZED\s*)?\(\s*\)\s*(?P<comma>,?)\s*",
    re.IGNORECASE,
)


class NotCocteError(ValueError):
    """The completion has another form. The message says what was expected and where."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a completion, as written."""

    text: str
    """Text of the step without surrounding whitespace."""
    start: int
    """Index of its first character in the completion."""
    end: int
    """Index after its last character."""


@dataclass(frozen=True, slots=True)
class Cocte:
    """A completion in CoCTE form."""

    sql: str
    """The whole SQL, which is executed unchanged."""
    names: tuple[str, ...]
    """Names of the CTEs, in order and without quotes."""
    steps: tuple[Step, ...]
    """One step per CTE, and the final query."""


def split_steps(completion: str) -> tuple[Step, ...]:
    """Split a completion's SQL into steps, whatever its form; empty without SQL.

    A paragraph that contains only comments belongs to the following step, or else to the last.
    """
    span = find_sql(completion)
    if span is None:
        return ()
    sql = completion[span.start : span.end]
    cuts = _cuts(skeleton(sql).text)
    return tuple(
        Step(sql[start:end], span.start + start, span.start + end)
        for start, end in zip(
            [0, *(cut.end for cut in cuts)], [*(cut.start for cut in cuts), len(sql)], strict=True
        )
    )


def read_cocte(completion: str) -> Cocte:
    """Parse a completion in CoCTE form. Raises NotCocteError.

    Every CTE must have a unique name and be read by a later step, the last step must be the query,
    and the whole must be one SQLite query.
    """
    span = find_sql(completion)
    if span is None:
        message = "expected SQL; found none"
        raise NotCocteError(message)
    sql = completion[span.start : span.end]
    steps = split_steps(completion)
    if len(steps) < 2:  # noqa: PLR2004  # a CTE and the query
        message = "expected a CTE and a query with a blank line between them; found one step"
        raise NotCocteError(message)
    names = tuple(_cte_name(step, at, len(steps) - 2) for at, step in enumerate(steps[:-1]))
    _refuse_repeats(names)
    tree = _parse(sql)
    found = tuple(cte.alias for cte in tree.ctes)
    if found != names:
        message = f"expected one CTE per step ({', '.join(names)}); found {', '.join(found)}"
        raise NotCocteError(message)
    _refuse_unread(tree, names)
    return Cocte(sql, names, steps)


def render_cocte(ctes: Iterable[tuple[str, str]], query: str) -> str:
    """Write a completion from CTEs (name, query) and the final query, each as its own step.

    A step is on one line if its query is.
    """
    heads = [f"{name} AS ({text})" for name, text in ctes]
    if not heads:
        return query
    return join_steps(["WITH " + f",{STEP_SEPARATOR}".join(heads), query])


def join_steps(steps: Sequence[str]) -> str:
    """Join steps, as written, to a completion."""
    return STEP_SEPARATOR.join(steps)


class TokenSpan(NamedTuple):
    """A range of tokens; empty for a step that lies inside a token of the previous step."""

    first: int
    """Index of the first token."""
    last: int
    """Index after the last token."""


def token_spans(steps: Sequence[Step], starts_T: Sequence[int]) -> tuple[TokenSpan, ...]:
    """The tokens of every step. Raises ValueError without a step.

    `starts_T` holds, for every token, the index of its first character in the completion, as in a
    tokenizer's offsets. A token belongs to the step of its first character. Special tokens, which
    tokenizers place at 0, belong to the same step as the token before them.
    """
    if not steps:
        message = "expected at least one step"
        raise ValueError(message)
    starts_T = list(accumulate(starts_T, max))
    bounds = [0, *(bisect_left(starts_T, step.start) for step in steps[1:]), len(starts_T)]
    return tuple(TokenSpan(*bound) for bound in pairwise(bounds))


def starts_of(texts_T: Sequence[str]) -> list[int]:
    """For every token, the index of its first character, given the tokens' texts in order."""
    return [0, *accumulate(len(text) for text in texts_T)][: len(texts_T)]


def _cuts(code: str) -> list[Span]:
    """The blank lines between steps, which have code before and after them."""
    cuts: list[Span] = []
    last, has_code = 0, False
    for blank in BLANK_LINE.finditer(code):
        has_code = has_code or _has_code(code[last : blank.start()])
        last = blank.end()
        if has_code:
            cuts.append(Span(*blank.span()))
            has_code = False
    if cuts and not (has_code or _has_code(code[last:])):
        cuts.pop()
    return cuts


def _has_code(code: str) -> bool:
    return bool(code.replace(COMMENTED, " ").strip())


def _cte_name(step: Step, at: int, last: int) -> str:
    """The name of the CTE in this step. `last` is the index of the last CTE."""
    code = skeleton(step.text).text.replace(COMMENTED, " ")
    start = len(code) - len(code.lstrip())
    found = _CTE.fullmatch(code, start)
    if found is None:
        message = f"step {at + 1}: expected `name AS (...)` alone; found {step.text[:80]!r}"
        raise NotCocteError(message)
    if (found["with"] is not None) != (at == 0):
        message = f"step {at + 1}: WITH must begin the first step and no other"
        raise NotCocteError(message)
    if bool(found["comma"]) != (at < last):
        message = f"step {at + 1}: expected a comma after every CTE but the last"
        raise NotCocteError(message)
    name = step.text[found.start("name") : found.end("name")]
    return name[1:-1] if name[0] in '"`[' else name


def _refuse_repeats(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if _folded(name) in seen:
            message = f"two CTEs are named {name}"
            raise NotCocteError(message)
        seen.add(_folded(name))


def _folded(name: str) -> str:
    """Fold case as SQLite does when comparing names: only ASCII letters."""
    return re.sub("[A-Z]+", lambda capitals: capitals[0].lower(), name)


def _parse(sql: str) -> "exp.Query":
    # Imported here, because the environment exists without the extra `sql` too.
    import sqlglot
    from sqlglot import exp

    if len(sql) > MAX_PARSED_CHARS or skeleton(sql).max_depth > MAX_DEPTH:
        message = (
            f"expected at most {MAX_PARSED_CHARS:,} characters and {MAX_DEPTH} nested parentheses"
        )
        raise NotCocteError(message)
    try:
        trees = sqlglot.parse(sql, read="sqlite")
    except Exception as error:  # a parser's bug on a policy's text counts as the text's mistake
        message = f"expected a query of SQLite: {str(error).splitlines()[0][:200]}"
        raise NotCocteError(message) from error
    statements = [
        tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)
    ]
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        message = f"expected one query; found {len(statements)} statements or another kind"
        raise NotCocteError(message)
    return statements[0]


def _refuse_unread(tree: "exp.Query", names: Sequence[str]) -> None:
    """Raise unless a later step reads every CTE. Reading itself (WITH RECURSIVE) does not count."""
    from sqlglot import exp

    unread = {_folded(name): name for name in names}
    for table in tree.find_all(exp.Table):
        if not table.db:
            _mark_read(table, tree, unread)
    if unread:
        message = f"no later step reads the CTE {next(iter(unread.values()))}"
        raise NotCocteError(message)


def _mark_read(table: "exp.Table", tree: "exp.Query", unread: dict[str, str]) -> None:
    """Remove from `unread` the CTE that the table refers to, in the innermost matching WITH."""
    from sqlglot import exp

    name = _folded(table.name)
    inside: exp.Expr | None = table
    while inside is not None:
        if isinstance(inside, exp.CTE) and _folded(inside.alias) == name:
            return
        if isinstance(inside, exp.Query) and name in {_folded(cte.alias) for cte in inside.ctes}:
            if inside is tree:
                unread.pop(name, None)
            return
        inside = inside.parent
