"""The public address of the repository, where one is known.

The address is not part of the source: a fork that publishes gives its own. Package metadata and the
site then link to it. Without an address they have no links to files of the repository.
"""

import os


def repository_url() -> str | None:
    """Returns the address without a slash at the end, such as ``https://host/owner/name``.

    It is ``TF_LSTM_OPS_REPOSITORY_URL``, or else the repository in which a GitHub workflow runs.
    """
    if address := os.environ.get("TF_LSTM_OPS_REPOSITORY_URL"):
        return address.rstrip("/")
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else None


def file_url(path: str) -> str | None:
    """The address of a file or folder of the repository, given its path from the root."""
    root = repository_url()
    return root and f"{root}/blob/main/{path}"
