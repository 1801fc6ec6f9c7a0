"""OAUTHBEARER: the token provider, and the variables that configure it."""

import pytest

from schemas.installation import read_installation
from schemas.kafka_log import client_settings
from schemas.kafka_token import ClientCredentials, TokenError
from tests.support.token_server import CLIENT_ID, CLIENT_SECRET, TokenServer

VARIABLES = {
    "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "KAFKA_SASL_MECHANISM": "OAUTHBEARER",
    "KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": "https://idp.example/token",
    "KAFKA_SASL_OAUTHBEARER_CLIENT_ID": CLIENT_ID,
    "KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": CLIENT_SECRET,
}


def settings(environ: dict[str, str]) -> dict[str, object]:
    return dict(client_settings(read_installation({"HOME": "/h", **environ}).kafka_options))


def test_a_token_is_used_until_a_fifth_of_its_life_is_left() -> None:
    now = [0.0]
    with TokenServer(life_s=100) as server:
        tokens = ClientCredentials(
            server.url, CLIENT_ID, CLIENT_SECRET, scope="kafka a", clock=lambda: now[0]
        )
        first = tokens.token()
        now[0] = 79.0
        assert tokens.token() == first
        now[0] = 80.0
        assert tokens.token() != first
        assert [form["scope"] for form in server.forms] == [["kafka a"], ["kafka a"]]


def test_a_refused_or_absent_endpoint_is_named_without_the_secret() -> None:
    with TokenServer() as server:
        url = server.url
        with pytest.raises(TokenError, match="401 Unauthorized; check KAFKA_SASL_OAUTHB") as failed:
            ClientCredentials(url, CLIENT_ID, "wr0ng").token()
        assert "wr0ng" not in str(failed.value)
    with pytest.raises(TokenError, match="Connection refused") as failed:
        ClientCredentials(url, CLIENT_ID, CLIENT_SECRET).token()
    assert CLIENT_SECRET not in str(failed.value) + repr(
        ClientCredentials(url, CLIENT_ID, CLIENT_SECRET)
    )


@pytest.mark.parametrize(
    "answer",
    [{}, {"access_token": ""}, {"access_token": "a\nb"}, {"access_token": "x", "expires_in": "y"}],
)
def test_an_answer_without_a_token_is_an_error(answer: dict[str, object]) -> None:
    class Odd(TokenServer):
        def answer(self) -> dict[str, object]:
            return answer

    with Odd() as server, pytest.raises(TokenError, match="no token for Kafka"):
        ClientCredentials(server.url, CLIENT_ID, CLIENT_SECRET).token()


def test_variables_make_a_provider() -> None:
    found = settings({**VARIABLES, "KAFKA_SASL_OAUTHBEARER_EXTENSIONS": "a=1, b=x=y"})
    provider = found.pop("sasl_oauth_token_provider")
    assert found == {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    assert isinstance(provider, ClientCredentials)
    assert provider.extensions() == {"a": "1", "b": "x=y"}
    assert CLIENT_SECRET not in repr(provider)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": ""}, "set KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET"),
        ({"KAFKA_SASL_MECHANISM": "PLAIN"}, "KAFKA_SASL_MECHANISM is not OAUTHBEARER"),
        ({"KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": "file:///x"}, "not an http or https URL"),
        ({"KAFKA_SASL_OAUTHBEARER_EXTENSIONS": "nonsense"}, "is not name=value"),
        ({"KAFKA_SASL_OAUTHBEARER_SCPOE": "x"}, "SCPOE is not a supported Kafka setting"),
    ],
)
def test_what_does_not_fit_together_is_named(changes: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        settings({**VARIABLES, **changes})
    assert CLIENT_SECRET not in str(refused.value)
