"""Fixtures of several test files."""

import pytest

from tests.remote.serving import place


@pytest.fixture
def listen_at(tmp_path):
    """Return an address of a scheme to listen at."""

    def listen_at(scheme):
        if scheme == "unix":
            return f"unix://{tmp_path}/socket"
        return place() if scheme == "inproc" else f"{scheme}://127.0.0.1:0"

    return listen_at
