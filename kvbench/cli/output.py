"""What the verbs share in printing: one JSON document on stdout, advice on stderr."""

import argparse
import sys
from typing import Any, TextIO

import msgspec


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json``."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document on stdout and nothing else"
    )


def print_json(value: Any) -> None:  # noqa: ANN401 - any record that msgspec can encode
    """Print ``value`` as one indented JSON document."""
    encoded = msgspec.json.encode(value, enc_hook=_plain, order="deterministic")
    print(msgspec.json.format(encoded, indent=2).decode())


def advise(text: str) -> None:
    """Print advice to stderr."""
    print(f"kvbench: {text}", file=sys.stderr)


def _plain(value: object) -> object:
    """Arrays become lists, paths become text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def speaks_unicode(stream: TextIO) -> bool:
    """Return whether the stream can carry more than ASCII."""
    return "utf" in (stream.encoding or "").lower()
