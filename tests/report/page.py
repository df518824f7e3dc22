"""A page as a test sees it: parsed with html.parser, with its structure checked on the way."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}
Attributes = dict[str, str]


class Page(HTMLParser):
    """Collects elements with their text; complains about tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, Attributes]] = []
        self.texts: list[tuple[str, str]] = []  # (path of open tags, text)
        self.problems: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        if self._open:
            self.problems.append(f"left open: {self._open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.problems.append(f"</{tag}> closes {self._open[-1:]}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((" ".join(self._open), data.replace("\u00a0", " ")))

    def named(self, tag: str) -> list[Attributes]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, inside: str = "") -> str:
        """Return all text under any element ``inside``, joined."""
        return " ".join(text for path, text in self.texts if inside in path.split() or not inside)
