"""The command line: ``autotransfer --help``.

Nothing heavy is imported before a command needs it: help and completion must be quick.
"""

from autotransfer.cli.app import app, main

__all__ = ["app", "main"]
