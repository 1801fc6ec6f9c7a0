"""The docstrings under a class's fields, which Python itself throws away."""

import ast
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path


@lru_cache(maxsize=256)
def _classes(module: str) -> dict[str, ast.ClassDef]:
    source = import_module(module).__file__
    assert source is not None
    tree = ast.parse(Path(source).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def attribute_docs(cls: type, package: str) -> dict[str, str]:
    """Field -> the docstring under it on one line, base classes of the package included."""
    docs: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        if each.__module__.split(".")[0] != package:
            continue
        body = _classes(each.__module__)[each.__name__].body
        for field, doc in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr):
                assert isinstance(field.target, ast.Name)
                docs[field.target.id] = " ".join(str(ast.literal_eval(doc.value)).split())
    return docs
