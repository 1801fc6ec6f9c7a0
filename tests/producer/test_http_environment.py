"""Proxies and certificates of the shell: loopback goes past them, the rest is named."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import proxy_bypass

import certifi
import httpx
import pytest

from producer.agents.dbbench.data.layout import downloaded
from producer.agents.gbox.service import GboxService
from producer.chat_answer import ListedModel
from producer.chat_endpoint import ChatEndpoint
from producer.errors import UnreachableError, UsageError
from producer.http_environment import check_http_environment
from producer.policy.tinker_policy.service import TinkerService
from producer.policy.torch_policy.hub import check_hub_has
from schemas.http_environment import by_proxy, bypass_for_loopback, is_loopback, proxy_variable
from schemas.kafka_token import ClientCredentials, TokenError
from tests.support.chat_server import ChatServer, chat_server
from tests.support.tinker_key import KEY
from tests.support.token_server import CLIENT_ID, CLIENT_SECRET, TokenServer

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
OTHERS = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE", "REQUESTS_CA_BUNDLE")


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Without the variables of this machine; what a test sets is undone."""
    for name in (*NAMES, *(name.upper() for name in NAMES), *OTHERS):
        # Set first, so that what the code adds is removed afterwards.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as server:
        server.models = ["one"]
        yield server


PROXIES = [
    ("http_proxy", "http://127.0.0.1:9"),
    ("HTTP_PROXY", "http://proxy.example.invalid:3128"),
    ("http_proxy", "127.0.0.1:9"),
    ("ALL_PROXY", "http://127.0.0.1:9"),
    ("ALL_PROXY", "socks5://127.0.0.1:9"),
    ("all_proxy", "socks4://127.0.0.1:9"),
    ("https_proxy", "nonsense://"),
    ("http_proxy", "http://127.0.0.1:port"),
]


@pytest.mark.parametrize(("name", "value"), PROXIES)
def test_a_server_on_this_machine_is_asked_without_a_proxy(
    name: str, value: str, server: ChatServer, shell: pytest.MonkeyPatch
) -> None:
    """Also where the proxy is one that the client could not even be made for."""
    shell.setenv(name, value)
    shell.setenv("no_proxy", "intranet.example")
    for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
        endpoint = ChatEndpoint(url, None)
        assert endpoint.list_models("base_url", "KEY", ways=()) == [ListedModel("one")]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:9", "SOCKS proxy, which needs the package socksio"),
        ("all_proxy", "socks4://127.0.0.1:9", "has no form that is known"),
        ("https_proxy", "nonsense://", "has no form that is known"),
        ("HTTP_PROXY", "http://127.0.0.1:port", "has no form that is known"),
        ("http_proxy", "http://999.0.0.1:3128", "has no form that is known"),
        ("https_proxy", "http://a\tproxy.example:3128", "has no form that is known"),
        ("SSL_CERT_FILE", "/nonexistent.pem", "No such file or directory"),
        ("SSL_CERT_DIR", "/nonexistent", "No such file or directory"),
        ("SSLKEYLOGFILE", "/nonexistent/keys", "cannot be written"),
    ],
)
def test_what_no_client_can_work_with_is_a_usage_error_that_names_its_variable(
    name: str, value: str, words: str, shell: pytest.MonkeyPatch
) -> None:
    """Of chat servers and judges, Tinker, GBox and the Hugging Face hub."""
    shell.setenv(name, value)
    for ask in (
        lambda: ChatEndpoint("http://192.0.2.1/v1", None),
        lambda: TinkerService(KEY, "https://192.0.2.1"),
        lambda: GboxService("key"),
        lambda: check_hub_has("owner/policy"),
        lambda: downloaded("owner/data"),
    ):
        with pytest.raises(UsageError, match=words) as caught:
            ask()
        assert str(caught.value).startswith(f"{name}: ")


def test_a_file_without_certificates_is_named(shell: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "certificates.pem"
    path.write_text("nothing\n")
    shell.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(UsageError, match=r"^SSL_CERT_FILE: .* \(it has none in PEM form\)"):
        check_http_environment("https://192.0.2.1")


def test_a_folder_of_certificates_belongs_in_the_variable_of_folders_and_a_file_in_that_of_files(
    shell: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shell.setenv("SSL_CERT_FILE", str(tmp_path))
    with pytest.raises(UsageError, match=r"^SSL_CERT_FILE: .* SSL_CERT_DIR takes folders"):
        GboxService("key")
    shell.delenv("SSL_CERT_FILE")
    shell.setenv("SSL_CERT_DIR", __file__)
    with pytest.raises(UsageError, match=r"^SSL_CERT_DIR: .* SSL_CERT_FILE takes a file"):
        GboxService("key")


def test_of_several_folders_of_certificates_one_that_can_be_read_is_enough(
    shell: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing")
    shell.setenv("SSL_CERT_DIR", os.pathsep.join([missing, str(tmp_path)]))
    check_http_environment("https://192.0.2.1")
    GboxService("key").disconnect()
    shell.setenv("SSL_CERT_DIR", os.pathsep.join([missing, missing]))
    with pytest.raises(UsageError, match=r"^SSL_CERT_DIR: .* \(No such file or directory\)"):
        check_http_environment("https://192.0.2.1")


def test_folders_of_certificates_are_not_read_beside_a_file_of_them(
    shell: pytest.MonkeyPatch,
) -> None:
    """As httpx and httpx2 do."""
    shell.setenv("SSL_CERT_FILE", certifi.where())
    shell.setenv("SSL_CERT_DIR", "/nonexistent")
    check_http_environment("https://192.0.2.1")
    GboxService("key").disconnect()


def test_a_password_of_a_proxy_is_in_no_message(shell: pytest.MonkeyPatch) -> None:
    shell.setenv("all_proxy", "socks4://me:s3cr3t@proxy.example:9")
    with pytest.raises(UsageError) as caught:
        check_http_environment("https://192.0.2.1")
    assert "s3cr3t" not in str(caught.value)


def test_a_server_that_a_proxy_does_not_reach_is_reported_with_the_variable(
    shell: pytest.MonkeyPatch,
) -> None:
    shell.setenv("http_proxy", "http://127.0.0.1:9")
    endpoint = ChatEndpoint("http://models.example.invalid/v1", None)
    with pytest.raises(UnreachableError, match="through the proxy of http_proxy"):
        endpoint.list_models("base_url", "KEY", ways=())


@pytest.mark.parametrize("name", ["no_proxy", "NO_PROXY"])
@pytest.mark.parametrize("entry", ["fd00::/8", "[::1]", "[fd00::1]:80", "localhost:*", "münchen"])
def test_an_entry_of_no_proxy_that_httpx_cannot_parse_is_dropped_for_its_clients_alone(
    name: str, entry: str, shell: pytest.MonkeyPatch
) -> None:
    given = ["10.0.0.0/8", "::2", "a.example:8080", ".b.example", "http://c.example"]
    shell.setenv(name, ",".join([*given, entry]))
    check_http_environment("https://192.0.2.1")
    assert entry in os.environ[name].split(",")
    GboxService("key").disconnect()
    TinkerService(KEY, "https://192.0.2.1")
    hosts = [*given, "localhost", "127.0.0.1", "::1"]
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == ",".join(hosts)
    httpx.Client().close()


def test_a_token_endpoint_on_this_machine_is_asked_without_a_proxy_and_another_names_it(
    shell: pytest.MonkeyPatch,
) -> None:
    shell.setenv("http_proxy", "http://127.0.0.1:9")
    with TokenServer() as tokens:
        assert ClientCredentials(tokens.url, CLIENT_ID, CLIENT_SECRET).token()
    with pytest.raises(TokenError, match="through the proxy of http_proxy: "):
        ClientCredentials("http://tokens.example.invalid", "id", "secret").token()


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("http://localhost:8000/v1", True),
        ("http://LOCALHOST", True),
        ("http://my.localhost", True),
        ("http://127.0.0.1", True),
        ("http://127.8.9.10:1", True),
        ("http://[::1]:8000", True),
        ("http://0.0.0.0:8000", True),
        ("http://[::ffff:127.0.0.1]:8000", True),
        ("http://127.1:8000", True),
        ("http://2130706433", True),
        ("http://localhost.example.com", False),
        ("http://[::ffff:10.0.0.1]", False),
        ("http://10.1", False),
        ("http://\udc80", False),
        ("http://10.0.0.1", False),
        ("http://127.0.0.1.example.com", False),
    ],
)
def test_this_machine_is_known_by_its_name_and_addresses(url: str, is_here: bool) -> None:
    assert is_loopback(url) == is_here


def test_loopback_joins_what_no_proxy_names_and_without_a_proxy_nothing_changes() -> None:
    environ: dict[str, Any] = {}
    bypass_for_loopback(environ)
    assert environ == {}
    environ = {"HTTP_PROXY": "http://p:1", "NO_PROXY": "a.example, 127.0.0.1"}
    bypass_for_loopback(environ, "http://127.0.0.5:1")
    bypass_for_loopback(environ, "http://127.0.0.5:1")
    expected = "a.example,127.0.0.1,localhost,::1,127.0.0.5"
    assert environ["no_proxy"] == environ["NO_PROXY"] == expected


@pytest.mark.parametrize("name", ["no_proxy", "NO_PROXY"])
@pytest.mark.parametrize("value", ["*", "a.example, *"])
def test_no_proxy_that_names_every_host_still_does_and_then_no_proxy_is_a_problem(
    name: str, value: str, shell: pytest.MonkeyPatch
) -> None:
    shell.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    shell.setenv(name, value)
    check_http_environment("https://192.0.2.1")
    assert proxy_bypass("192.0.2.1")
    assert proxy_bypass("localhost")


def test_the_variable_of_a_request_is_its_schemes_before_that_of_all(
    shell: pytest.MonkeyPatch,
) -> None:
    environ = {"ALL_PROXY": "http://p:1", "https_proxy": "http://p:2", "HTTPS_PROXY": "http://p:3"}
    assert proxy_variable("https://a.example", environ) == "https_proxy"
    assert proxy_variable("wss://a.example", environ) == "https_proxy"
    assert proxy_variable("http://a.example", environ) == "ALL_PROXY"
    assert by_proxy("http://localhost", environ) == ""
    shell.setenv("no_proxy", "a.example")
    assert proxy_variable("https://a.example", environ) is None
