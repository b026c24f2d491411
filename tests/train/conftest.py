"""What all tests of training have in common."""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Small networks are slower on several threads, and other tests have work for those."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
