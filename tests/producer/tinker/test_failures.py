"""What the service fails to do is told by kind, and costs an attempt or the process."""

import base64
from pathlib import Path

import httpx
import pytest
import tinker
from tinker.types import RequestErrorCategory

pytest.importorskip("torch")

from producer.errors import CuaTrainError, NotFoundError, UnreachableError, UsageError
from producer.policy.tinker_policy.failures import error_of
from tests.producer.policy.conftest import (
    SETTINGS,
    make_request,
    make_screen,
    trajectory,
)
from tests.producer.tinker.opened import through_sdk
from tests.support.tinker_key import KEY
from tests.support.tinker_server import TinkerServer
from tests.support.turns import past_turn

REQUEST = httpx.Request("POST", "http://host/api/v1/x")


def status(kind: type[tinker.APIStatusError], code: int) -> tinker.APIStatusError:
    return kind("no", httpx.Response(code, request=REQUEST), {"detail": f"because of {KEY}"})


@pytest.mark.parametrize(
    ("failure", "kind", "message"),
    [
        (status(tinker.AuthenticationError, 401), UsageError, "TINKER_API_KEY: Tinker refuses the"),
        (status(tinker.PermissionDeniedError, 403), UsageError, "TINKER_API_KEY: Tinker refuses"),
        (status(tinker.NotFoundError, 404), NotFoundError, "Tinker cannot sample: it does not"),
        (status(tinker.BillingError, 402), CuaTrainError, "settle the account's billing"),
        (
            status(tinker.UnprocessableEntityError, 422),
            UsageError,
            "Tinker refuses to sample: HTTP",
        ),
        (status(tinker.InternalServerError, 503), UnreachableError, "could not sample: HTTP 503"),
        (status(tinker.RateLimitError, 429), CuaTrainError, "could not sample: HTTP 429: because"),
        (tinker.APIConnectionError(REQUEST), UnreachableError, "check the network and TINKER_BASE"),
        (TimeoutError(), UnreachableError, "Tinker could not sample: TimeoutError; check the"),
        (
            tinker.RequestFailedError(KEY, "1", RequestErrorCategory.User),
            UsageError,
            "Tinker refuses to sample: …",
        ),
        (
            tinker.RequestFailedError(KEY, "1", RequestErrorCategory.Server),
            CuaTrainError,
            "Tinker could not sample: …",
        ),
        (ValueError(f"of {KEY}"), CuaTrainError, "Tinker could not sample: of …"),
    ],
)
def test_a_failure_is_told_by_its_kind_and_never_with_the_key(
    failure: Exception, kind: type[CuaTrainError], message: str
) -> None:
    error = error_of(failure, "sample", KEY)
    assert type(error) is kind
    assert message in str(error)
    assert KEY not in str(error)


@pytest.mark.usefixtures("sdk_connections")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_refused_sample_fails_its_attempt_and_a_refused_update_raises(
    small_policy: Path,
) -> None:
    with TinkerServer([str(small_policy)]) as server:
        policy = through_sdk(small_policy, server.url)
        requests = [make_request(episode, make_screen(episode)) for episode in (1, 2)]
        first, _ = policy.sample(requests)
        prompts = [body["prompt"] for path, body in server.stand.requests if path == "asample"]
        for prompt in prompts:
            kinds = [chunk["type"] for chunk in prompt["chunks"]]
            assert kinds == ["encoded_text", "image", "encoded_text"]
            assert prompt["chunks"][1]["expected_tokens"] > 1
        # The samples are sent at the same time and arrive in any order.
        images = [base64.b64decode(prompt["chunks"][1]["data"]) for prompt in prompts]
        assert sorted(images) == sorted(make_screen(episode).png for episode in (1, 2))
        server.stand.refuses = frozenset({"asample", "forward_backward"})
        for completion in policy.sample(requests):
            assert completion.tokens is None
            assert "Tinker refuses to sample: HTTP 400: asample is not for" in str(
                completion.failure
            )
        assert first.tokens is not None
        one = trajectory([past_turn(make_screen(1), first.text, first.tokens)], 1.0)
        with pytest.raises(UsageError, match="Tinker refuses to train: HTTP 400: forward_backward"):
            policy.update([one], SETTINGS)
        assert policy.version == 0
