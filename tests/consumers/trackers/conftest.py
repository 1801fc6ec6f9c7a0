"""A home of its own, and what its log says."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from schemas.installation import Installation, read_installation
from tests.support.reading import read_all


@pytest.fixture
def installation() -> Installation:
    return read_installation(os.environ)


@pytest.fixture
def read_log(installation: Installation) -> Callable[[], list[dict[str, Any]]]:
    return lambda: [json.loads(record.value) for record in read_all(installation)]
