"""Whether a machine can train in half the bits."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import torch

from semigrad.settings import Precision

TRIAL = """
import torch
net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 2), torch.nn.Flatten(), torch.nn.Linear(16 * 49, 16))
with torch.autocast("cpu", torch.bfloat16):
    net(torch.rand(4, 3, 16, 16)).float().sum().backward()
"""
"""A step with all that has ended processes on some processors."""


def precision_problems(precision: Precision, device: torch.device) -> list[str]:
    """A sentence where a network cannot compute so on this device."""
    if precision == "float16" and device.type != "cuda":
        return [f"precision float16 needs a GPU (cuda), not {device.type}. Use float32 or bfloat16."]
    if precision == "bfloat16" and device.type == "cpu":
        return bfloat16_problems()
    return []


@cache
def bfloat16_problems() -> list[str]:
    """Some virtual processors claim instructions that they do not have, and end the process that uses them: so another
    one tries."""
    code = subprocess.run([sys.executable, "-c", TRIAL], capture_output=True).returncode
    if code == 0:
        return []
    reason = f"signal {-code}" if code < 0 else f"exit code {code}"
    return [
        f"This processor cannot compute in bfloat16: a process that tried ended ({reason}). Use float32, or try the "
        "environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16."
    ]
