"""``python -m kvbench``."""

from kvbench.cli.main import entry

entry()
