"""Tests of real servers, in environments of their own: `make test-servers`, and not `make test`."""

import os

from tests.servers.skyrl import pinned_sdk, skyrl_python
from tests.servers.vllm import vllm_python
from tests.whole.conftest import policy_folder

__all__ = ["pinned_sdk", "policy_folder", "skyrl_python", "vllm_python"]

collect_ignore_glob = [] if os.environ.get("CUA_TEST_SERVERS") else ["test_*.py"]
