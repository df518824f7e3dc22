"""What a part of a drawing says when it is pointed at, and whose it is.  Pure.

A note travels as the artist's group id, so that it needs no place beside the drawing; writing SVG
turns it into <title> elements and a ``data-side`` attribute, and other formats ignore it.
"""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import msgspec
from matplotlib.artist import Artist
from msgspec import Struct

_MARK = "kvbench-note:"


class Note(Struct, frozen=True, kw_only=True):
    """One label for the whole part, or one per marker of it; ``side`` is the number of a run."""

    labels: tuple[str, ...] = ()
    side: int | None = None


def note(artist: Artist, labels: Sequence[str] = (), side: int | None = None) -> None:
    """Let ``artist`` say ``labels`` and belong to ``side``."""
    own = Note(labels=tuple(labels), side=side)
    artist.set_gid(_MARK + msgspec.json.encode(own).decode())


def apply_notes(root: ET.Element) -> None:
    """Turn the notes of a parsed SVG into titles and ``data-side``; the ids stay to be dropped."""
    for group in list(root.iter()):
        text = group.get("id", "")
        if not text.startswith(_MARK):
            continue
        found = msgspec.json.decode(text.removeprefix(_MARK), type=Note)
        del group.attrib["id"]
        if found.side is not None:
            group.set("data-side", str(found.side))
        markers = [part for part in group.iter() if part.tag.endswith("}use")]
        if len(markers) == len(found.labels):  # a marker outside the axes is not drawn
            for marker, label in zip(markers, found.labels, strict=True):
                _title(marker, label)
        elif len(found.labels) == 1:
            _title(group, found.labels[0])


def _title(part: ET.Element, text: str) -> None:
    element = ET.Element("title")
    element.text = text
    part.insert(0, element)
