"""The distribution's name, and how its extras are installed: from a checkout or a wheel.

The name `cua-train` on the public index is another company's, so no text tells a user to install
anything of ours by its bare name; `tests/test_install_lines.py` reads all of them.
"""

from typing import Final

DISTRIBUTION: Final = "cua-train-rl"
"""`[project] name` in pyproject.toml: what importlib.metadata knows this software by."""


def install_command(*extras: str) -> str:
    """What a message tells the user to run, with the place; `extras` as pyproject.toml names them.

    With "project" and "database": `pip install '.[project,database]'` in the checkout of cua-train,
    or the same with a wheel.
    """
    return (
        f"`pip install '.[{','.join(extras)}]'` in the checkout of cua-train (without a checkout:"
        " the same with the wheel's file instead of the dot)"
    )
