"""What the process that workers are forked from does before the first one is needed."""

from __future__ import annotations

import os

import torch

import autotransfer.training  # noqa: F401 -- what a worker does
from autotransfer._driver import end_with

# The first optimiser of a process imports torch's compiler, which takes as long as all the rest.
torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])

_SERVER = os.getpid()
os.register_at_fork(after_in_child=lambda: end_with(_SERVER))
