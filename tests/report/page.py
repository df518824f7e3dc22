"""A page as a test sees it: parsed with html.parser, with its structure checked on the way."""

import base64
import hashlib
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}
Attributes = dict[str, str]


class Page(HTMLParser):
    """Collects elements with their text; complains about tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, Attributes]] = []
        self.texts: list[tuple[str, str]] = []  # (path of open tags, text)
        self.scripts: list[str] = []
        self.problems: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        if self._open:
            self.problems.append(f"left open: {self._open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag == "script":
            self.scripts.append("")
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
        if self._open[-1:] == ["script"]:
            self.scripts[-1] += data
        elif data.strip():
            self.texts.append((" ".join(self._open), data.replace("\u00a0", " ")))

    def named(self, tag: str) -> list[Attributes]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, inside: str = "") -> str:
        """Return all text under any element ``inside``, joined."""
        return " ".join(text for path, text in self.texts if inside in path.split() or not inside)

    def foreign_scripts(self) -> list[str]:
        """Return the scripts that the page's own policy does not let run, and any beyond one."""
        policy = next((a["content"] for a in self.named("meta") if "http-equiv" in a), "")
        foreign = self.scripts[1:]
        for script in self.scripts:
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            if f"'sha256-{digest}'" not in policy:
                foreign.append(script)
        return foreign + [a["src"] for a in self.named("script") if "src" in a]
