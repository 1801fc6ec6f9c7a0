"""What differs between releases of Tinker's SDK, 0.25 to 0.38.

A server of its protocol pins the release that it answers: SkyRL's 0.4 pins 0.25. In 0.25 a call
that makes a client returns the client, later a future of it; `RestClient` is made by a
`ServiceClient` there. All functions wait for the answer without a limit.
"""

from typing import TypeVar

import tinker

Client = TypeVar("Client")


def made(client: tinker.APIFuture[Client]) -> Client:
    """The client that a call of the SDK makes, of either kind; the newest release's is typed."""
    return client.result() if isinstance(client, tinker.APIFuture) else client


def server_capabilities(url: str, key: str) -> tinker.types.GetServerCapabilitiesResponse:
    """The models that the service at `url` has."""
    if hasattr(tinker, "RestClient"):
        client = tinker.RestClient(base_url=url, api_key=key)
        return client.get_server_capabilities().result()
    return tinker.ServiceClient(base_url=url, api_key=key).get_server_capabilities()


def weights_info(url: str, key: str, path: str) -> tinker.types.WeightsInfoResponse:
    """What the service at `url` knows of the weights saved at `path`."""
    if hasattr(tinker, "RestClient"):
        client = tinker.RestClient(base_url=url, api_key=key)
    else:
        client = tinker.ServiceClient(base_url=url, api_key=key).create_rest_client()
    return client.get_weights_info_by_tinker_path(path).result()
