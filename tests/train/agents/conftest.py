"""Seed torch, so that tests start from the same networks in every run."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
