"""What the shell's variables do to HTTP clients: proxies and certificates.

Every client reads `http_proxy`, `SSL_CERT_FILE` and their siblings by itself, sends even requests
to this machine to a proxy, and fails without naming a variable. One place for both sides: loopback
goes past proxies, and what cannot work is named with its variable.
"""

import os
import socket
import ssl
from collections.abc import Iterator, Mapping, MutableMapping
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from stat import S_ISDIR
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from schemas.installation import without_secrets


class SocksPackage(NamedTuple):
    """What a client needs for SOCKS proxies."""

    module: str
    """What it is imported as."""
    package: str
    """Its name in the package index."""


LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
PROXY_SCHEMES: Final = ("http", "https", "socks5", "socks5h")
CERTIFICATE_FILE: Final = "SSL_CERT_FILE"
CERTIFICATE_FOLDERS: Final = "SSL_CERT_DIR"
CERTIFICATES: Final = (CERTIFICATE_FILE, CERTIFICATE_FOLDERS)
"""A client takes certificates from the first that is set, and reads no other."""
REQUESTS_CERTIFICATES: Final = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The same of the package requests alone; each is a file or a folder."""
SOCKSIO: Final = SocksPackage("socksio", "socksio")
"""Of httpx and httpx2."""
PYSOCKS: Final = SocksPackage("socks", "PySocks")
"""Of requests."""
KEY_LOG: Final = "SSLKEYLOGFILE"
EVERY_HOST: Final = "*"
"""In `no_proxy`: no request goes through a proxy."""


def is_loopback(url: str) -> bool:
    """Whether the URL's host is this machine by its name or address."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        try:
            # As clients do: `127.1`, `0x7f000001`.
            address = IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified


def bypass_for_loopback(environ: MutableMapping[str, str], url: str | None = None) -> None:
    """Have clients that read `no_proxy` reach this machine without a proxy. Idempotent.

    `url`: whose host is added, too, if it is this machine.
    """
    if not any(name.lower().endswith("_proxy") for name in environ):
        return
    wanted = [*LOOPBACK]
    if url is not None and is_loopback(url) and (host := urlsplit(url).hostname):
        wanted.append(host)
    hosts = _hosts_without_proxy(environ)
    if EVERY_HOST in hosts:
        # urllib and requests know it alone; httpx also among others.
        hosts = [EVERY_HOST]
    else:
        hosts += [host for host in dict.fromkeys(wanted) if host not in hosts]
    environ["no_proxy"] = environ["NO_PROXY"] = ",".join(hosts)


def drop_unreadable_hosts(environ: MutableMapping[str, str]) -> None:
    """Take those entries out of `no_proxy` of which httpx 0.28 raises InvalidURL. Idempotent.

    `fd00::/8`, `[::1]`, `localhost:*`: curl and Go read them, or pass over them, as httpx2 does.
    """
    hosts = _hosts_without_proxy(environ)
    kept = [host for host in hosts if _can_be_parsed(_pattern(host))]
    if kept != hosts:
        environ["no_proxy"] = environ["NO_PROXY"] = ",".join(kept)


def proxy_variable(url: str, environ: Mapping[str, str]) -> str | None:
    """The variable whose proxy a request to this URL goes through; None: it needs none."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    return _variable(scheme, environ) or _variable("all", environ)


def by_proxy(url: str, environ: Mapping[str, str]) -> str:
    """For messages of a failed connection: names the proxy's variable; empty without a proxy."""
    variable = proxy_variable(url, environ)
    return f" through the proxy of {variable}" if variable else ""


def http_problem(
    url: str,
    environ: Mapping[str, str],
    certificates: tuple[tuple[str, ...], ...] = (CERTIFICATES,),
    *,
    needs_proxies: bool = False,
    socks: SocksPackage = SOCKSIO,
) -> str | None:
    """Why no request to this URL can be sent, with what to do. None: nothing prevents it.

    `certificates`: variables that the client takes certificates from; of each group the first that
    is set. `needs_proxies`: the client is made for every proxy that is named, also if it asks this
    machine without one. `socks`: what it needs for SOCKS proxies.
    """
    problems = list(_tls_problems(environ, certificates))
    if needs_proxies or not is_loopback(url):
        problems += _proxy_problems(environ, socks)
    return next(iter(problems), None)


def _variable(scheme: str, environ: Mapping[str, str]) -> str | None:
    names = [name for name, value in environ.items() if name.lower() == f"{scheme}_proxy" and value]
    return max(names, key=str.islower) if names else None


def _hosts_without_proxy(environ: Mapping[str, str]) -> list[str]:
    # The lower-case one wins in every client.
    given = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    return [host.strip() for host in given.split(",") if host.strip()]


def _pattern(host: str) -> str:
    """The URL that httpx makes of an entry of `no_proxy`."""
    if "://" in host:
        return host
    try:
        version = ip_address(host.partition("/")[0]).version
    except ValueError:
        return f"all://*{host}"
    return f"all://[{host}]" if version == 6 else f"all://{host}"  # noqa: PLR2004  # of IP


def _can_be_parsed(url: str) -> bool:
    """Whether httpx and httpx2, whose parsers are the same, take this URL."""
    # Slow to import, and most shells have no proxy.
    from httpx2 import URL, InvalidURL

    try:
        URL(url)
    except InvalidURL:
        return False
    return True


def _proxy_problems(environ: Mapping[str, str], socks: SocksPackage) -> Iterator[str]:
    if EVERY_HOST in _hosts_without_proxy(environ):
        return
    for scheme in ("http", "https", "all"):
        if (variable := _variable(scheme, environ)) is None:
            continue
        value = environ[variable]
        url = value if "://" in value else f"http://{value}"
        shown = f"{variable}: the proxy {without_secrets(url)}"
        try:
            parts = urlsplit(url)
            is_url = bool(parts.hostname) and parts.port != 0 and _can_be_parsed(url)
        except ValueError:
            is_url = False
        if not is_url or parts.scheme not in PROXY_SCHEMES:
            yield (
                f"{shown} has no form that is known; use one such as http://proxy.example:3128, or"
                f" unset {variable}"
            )
        elif parts.scheme.startswith("socks") and find_spec(socks.module) is None:
            yield (
                f"{shown} is a SOCKS proxy, which needs the package {socks.package}; install it,"
                f" use an http proxy, or unset {variable}"
            )


def _tls_problems(
    environ: Mapping[str, str], certificates: tuple[tuple[str, ...], ...]
) -> Iterator[str]:
    for group in certificates:
        variable = next((name for name in group if environ.get(name)), None)
        if variable and (reason := _unreadable(variable, environ[variable])):
            yield (
                f"{variable}: no certificates can be read from {environ[variable]} ({reason});"
                f" correct or unset {variable}"
            )
    if path := environ.get(KEY_LOG):
        try:
            with Path(path).open("ab"):
                pass
        except OSError as error:
            yield f"{KEY_LOG}: {path} cannot be written ({error.strerror}); correct or unset it"


def _unreadable(variable: str, value: str) -> str | None:
    """Why no certificates can be read from what this variable names."""
    if variable == CERTIFICATE_FOLDERS:
        found = [_unreadable_folder(folder) for folder in value.split(os.pathsep) if folder]
        return None if None in found else next(iter(found), "it names no folder")
    try:
        if Path(value).is_dir():
            if variable == CERTIFICATE_FILE:
                return f"it is a folder; {CERTIFICATE_FOLDERS} takes folders"
            return _unreadable_folder(value)
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=value)
    except ssl.SSLError:
        return "it has none in PEM form"
    except OSError as error:
        return error.strerror or str(error)
    return None


def _unreadable_folder(folder: str) -> str | None:
    try:
        if not S_ISDIR(Path(folder).stat().st_mode):
            return f"it is no folder; {CERTIFICATE_FILE} takes a file"
    except OSError as error:
        return error.strerror or str(error)
    return None if os.access(folder, os.R_OK | os.X_OK) else "no permission"
