"""What tests of several files are given."""

import pytest

from tests.remote.serving import place


@pytest.fixture
def listen_at(tmp_path):
    """Where a server of this scheme may listen."""

    def listen_at(scheme):
        if scheme == "unix":
            return f"unix://{tmp_path}/socket"
        return place() if scheme == "inproc" else f"{scheme}://127.0.0.1:0"

    return listen_at
