"""A stand-in for the Python module "tes" of py-tes, written for CloudShare's tests.

It is NOT py-tes, which no package registry of Debian has and which users install by
`pip install py-tes`. It has what Snakemake's executor for TES uses, by the same names:
a client that creates, gets, lists and cancels tasks, and the models of a task. Nobody but
test/tes should use it: it knows no other servers' paths, and checks what it is given only
as far as a typing error would go unnoticed otherwise.
"""

from . import models
from .client import HTTPClient
from .models import Executor, Input, Output, Resources, Task

__all__ = ["Executor", "HTTPClient", "Input", "Output", "Resources", "Task", "models"]
