"""A matplotlib figure -> one <svg> element to stand inside an HTML page.  Pure.

Text stays text, colours become CSS variables (so that a page can show the figure on a dark
ground), ids get a prefix (so that many figures can share a page), and a title and a description
say what a reader who cannot see it should know.
"""

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from textwrap import wrap

from matplotlib.figure import Figure as Drawing

from kvbench.report.hover import apply_notes

INK = "#010203"  # text, axes and ticks: becomes the page's text colour
FAINT = "#040506"  # grid lines
PALETTE = (  # Okabe and Ito, told apart by colour-blind readers; yellow is left out, black is ink
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#7f7f7f",
    "#5d3a9b",
)
FONTS = "system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"

MARK_ROW, MARK_FONT = 12.0, 8.5  # points, as everything in a drawing
MARK_CHARACTER = 5.0  # a wide one in bold

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FRACTION = re.compile(r"(\.\d\d)\d+")  # of a point, a seventieth of an inch


def svg_named(figure_id: str, mark: str = "") -> Callable[[Drawing, str, str], str]:
    """Return what saves a drawing with its title and description under this id."""

    def save(drawing: Drawing, title: str, description: str) -> str:
        return to_svg(drawing, figure_id=figure_id, title=title, description=description, mark=mark)

    return save


def to_svg(
    drawing: Drawing, *, figure_id: str, title: str, description: str, mark: str = ""
) -> str:
    """Return ``drawing`` as the text of one <svg> element.

    Args:
        drawing: the figure, drawn with ``INK``, ``FAINT`` and ``PALETTE`` only.
        figure_id: unique in the page; letters, digits and hyphens.
        title: the figure's name, for assistive technology.
        description: what the figure shows, in words and numbers.
        mark: what must be read with the figure wherever it is shown; it stands above the axes in
            room of its own, so that it lies on nothing.
    """
    buffer = io.StringIO()
    drawing.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    root = ET.fromstring(buffer.getvalue())  # noqa: S314 - matplotlib wrote it a line above
    apply_notes(root)
    _clean(root, figure_id)
    root.attrib = {
        "viewBox": root.get("viewBox", "0 0 1 1"),
        "role": "img",
        "aria-labelledby": f"{figure_id}-title {figure_id}-desc",
        "class": "plot",
    }
    if mark:
        _mark(root, mark)
        description = f"{mark}. {description}"
    for name, text in (("desc", description), ("title", title)):
        element = ET.Element(name, {"id": f"{figure_id}-{name}"})
        element.text = text
        root.insert(0, element)
    return ET.tostring(root, encoding="unicode")


def _mark(root: ET.Element, mark: str) -> None:
    """Write ``mark`` into rows that are added at the top."""
    left, top, width, height = (float(part) for part in root.attrib["viewBox"].split())
    rows = wrap(mark, max(20, int(width / MARK_CHARACTER)))
    for place, row in enumerate(rows):
        element = ET.SubElement(root, "text")
        element.attrib = {
            "class": "steady-mark",
            "x": f"{left + 3:g}",
            "y": f"{top - MARK_ROW * (len(rows) - place - 1) - 3:g}",
            "style": f"font: bold {MARK_FONT}px {FONTS}; fill: currentColor",
        }
        element.text = row
    added = MARK_ROW * len(rows)
    root.set("viewBox", f"{left:g} {top - added:g} {width:g} {height + added:g}")


def _clean(root: ET.Element, prefix: str) -> None:
    for parent in root.iter():
        for child in list(parent):
            if child.tag.endswith("metadata"):
                parent.remove(child)
    referred = {
        name
        for element in root.iter()
        for value in (*element.attrib.values(), "")
        for name in [*_REFERENCE.findall(value), *_linked(element)]
    }
    for element in root.iter():
        element.tag = element.tag.removeprefix(_NAMESPACE)
        if not (element.text or "").strip():  # indents are a tenth of a drawing
            element.text = None
        if not (element.tail or "").strip():
            element.tail = None
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]
        if (own := element.attrib.pop("id", None)) in referred:
            element.set("id", f"{prefix}-{own}")
        link = element.attrib.pop(_LINK, "")
        if link.startswith("data:"):  # a dense layer, as a picture in the page itself
            element.set("href", "".join(link.split()))
            continue
        if link:
            element.set("href", f"#{prefix}-{link.removeprefix('#')}")
        for key, value in element.attrib.items():
            element.set(key, _restyle(value, prefix))
        for key in ("d", "x", "y"):
            if key in element.attrib:
                element.set(key, _FRACTION.sub(r"\1", element.attrib[key]))
    for element in root.iter():
        _share_style(element)


def _share_style(group: ET.Element) -> None:
    """Say once what all markers of a group say; there may be thousands."""
    markers = [child for child in group if child.tag.endswith("use")]
    styles = {marker.get("style") for marker in markers}
    if len(markers) > 1 and len(styles) == 1 and (style := styles.pop()) is not None:
        group.set("style", style)
        for marker in markers:
            del marker.attrib["style"]


def _linked(element: ET.Element) -> list[str]:
    link = element.get(_LINK)
    return [link.removeprefix("#")] if link else []


def _restyle(value: str, prefix: str) -> str:
    """Return one attribute with references prefixed, and colours and fonts left to the page."""
    value = _REFERENCE.sub(rf"url(#{prefix}-\1)", value)
    if "#" in value or "font" in value:
        value = value.replace(INK, "currentColor").replace(FAINT, "var(--grid, #d0d0d0)")
        for number, colour in enumerate(PALETTE):
            value = value.replace(colour, f"var(--c{number}, {colour})")
        value = value.replace("'DejaVu Sans'", FONTS)
    return value
