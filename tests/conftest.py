"""Shared fixtures: one thread a process, real data where SEMIGRAD_DATA says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the real data sets in their official layouts."""
    if "SEMIGRAD_DATA" not in os.environ:
        pytest.skip("set SEMIGRAD_DATA to a folder with cifar-10-batches-bin/, cifar-100-binary/ and svhn/")
    return Path(os.environ["SEMIGRAD_DATA"])
