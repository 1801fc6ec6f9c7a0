"""A second host that can be lost: a network namespace behind a switch whose port can be unplugged.

Unplugged, packets vanish in both directions without a FIN, an RST or an ICMP error, and both ends
keep their carrier: what a host looks like that lost its power, or a cut network. Needs root (or
CAP_NET_ADMIN and CAP_SYS_ADMIN) and Linux's `ip`.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

_numbers = count()
NETWORK = "198.18.0.0/16"
"""Set aside for benchmarks of networks (RFC 2544): nobody routes it."""


class LostHost:
    """A host of its own for processes started with `command`; it starts plugged in."""

    def __init__(self) -> None:
        number = next(_numbers)
        self._name = f"cua{os.getpid()}n{number}"
        self._switch = f"{self._name}s"
        self._here = f"v{os.getpid()}n{number}"
        block = (os.getpid() * 7 + number) % 16_384
        base, last = f"198.18.{block // 64}", block % 64 * 4
        self.address_here = f"{base}.{last + 1}"
        """Of the test's own host, as the other one sees it."""
        self._address_there = f"{base}.{last + 2}"

    def open(self) -> None:
        """Make it. CalledProcessError where that is not permitted."""
        name, switch, here = self._name, self._switch, self._here
        for namespace in (name, switch):
            _ip("netns", "add", namespace)
        _ip("link", "add", here, "type", "veth", "peer", "name", "p0", "netns", switch)
        _ip(
            "-n",
            name,
            *["link", "add", "eth0", "type", "veth", "peer", "name", "p1", "netns"],
            switch,
        )
        _ip("-n", switch, *["link", "add", "bridge", "type", "bridge"])
        for port in ("p0", "p1"):
            _ip("-n", switch, "link", "set", port, "master", "bridge", "up")
        _ip("-n", switch, "link", "set", "bridge", "up")
        _ip("addr", "add", f"{self.address_here}/30", "dev", here)
        _ip("-n", name, "addr", "add", f"{self._address_there}/30", "dev", "eth0")
        _ip("link", "set", here, "up")
        for device in ("lo", "eth0"):
            _ip("-n", name, "link", "set", device, "up")
        # Without ARP, so that an unplugged port is silence instead of "no route to host".
        hardware = _hardware_address(_ip("link", "show", here))
        there = _hardware_address(_ip("-n", name, "link", "show", "eth0"))
        _ip("neigh", "replace", self._address_there, "lladdr", there, "dev", here)
        _ip(*("-n", name), "neigh", "replace", self.address_here, "lladdr", hardware, "dev", "eth0")

    def close(self) -> None:
        """Remove whatever there is of it."""
        for arguments in (
            ("link", "del", self._here),
            ("netns", "del", self._switch),
            ("netns", "del", self._name),
        ):
            subprocess.run(["ip", *arguments], check=False, capture_output=True)

    def command(self, *arguments: str) -> list[str]:
        """The command that runs on that host, with this one's file system."""
        return ["ip", "netns", "exec", self._name, *arguments]

    def unplug(self) -> None:
        """Lose it."""
        _ip("-n", self._switch, "link", "set", "p1", "nomaster")

    def plug_in(self) -> None:
        """Have it back."""
        _ip("-n", self._switch, "link", "set", "p1", "master", "bridge")


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def _hardware_address(shown: str) -> str:
    return shown.partition("link/ether ")[2].split()[0]


@contextmanager
def lost_host() -> Iterator[LostHost]:
    """A host to lose; the test is skipped where none can be made."""
    if shutil.which("ip") is None:
        pytest.skip("the command ip (Debian: iproute2) is missing")
    host = LostHost()
    try:
        try:
            host.open()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespace can be made: {error.stderr.strip()}")
        yield host
    finally:
        host.close()
