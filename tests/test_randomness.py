"""No test draws unseeded: tests/conftest.py seeds the global generators, this checks the others."""

import ast
import random
from pathlib import Path

import numpy as np
import pytest
import torch

TESTS = Path(__file__).parent
GENERATORS = {"Random", "SystemRandom", "RandomState", "default_rng", "SeedSequence"}
RESEEDING = {("torch", "seed"), ("random", "seed"), ("os", "urandom")}


def unseeded_calls(source: str) -> list[int]:
    """Lines that make a generator without a seed, or seed a global one with entropy."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if not (call.args or call.keywords) and _draws(call.func)]


def _draws(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in GENERATORS
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    return function.attr in GENERATORS or (owner, function.attr) in RESEEDING


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("np.random.default_rng()", [1]),
        ("np.random.default_rng(0)", []),
        ("x = 1\nrandom.Random()", [2]),
        ("Random(seed)", []),
        ("Random()", [1]),
        ("torch.seed()", [1]),
        ("torch.Generator().manual_seed(7)", []),
        ("random.random()", []),
    ],
)
def test_a_generator_without_a_seed_is_recognised(source: str, lines: list[int]) -> None:
    assert unseeded_calls(source) == lines


def test_no_test_makes_a_generator_without_a_seed() -> None:
    unseeded = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in unseeded_calls(path.read_text(encoding="utf-8"))
    ]
    assert unseeded == [], "give these generators a seed"


def test_every_test_begins_with_the_first_numbers_of_seed_0() -> None:
    drawn = (random.random(), np.random.random(), torch.rand(()).item())  # noqa: NPY002
    assert drawn == pytest.approx((0.8444219, 0.5488135, 0.4962566), abs=1e-6)
