"""Whether a server takes connections at all. Knows nothing of what it serves."""

import socket
from collections.abc import Sequence

TIMEOUT_S = 3.0


def check_connects(addresses: Sequence[tuple[str, int]], timeout_s: float = TIMEOUT_S) -> None:
    """Return once one of these addresses takes a connection, which is closed again.

    Raises the last address's OSError when none does within `timeout_s` each. ValueError without any
    address.
    """
    failure: OSError | None = None
    for address in addresses:
        try:
            with socket.create_connection(address, timeout_s):
                return
        except OSError as error:
            failure = error
    if failure is None:
        message = "no address to connect to"
        raise ValueError(message)
    raise failure
