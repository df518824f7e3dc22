"""``make pictures``: photograph the report of the stored example for the README."""

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "results" / "examples"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
WIDTH, FIRST_SCREEN = 1240, 980


def main() -> None:
    """Write the pictures beside the example that they show."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        page_file = Path(folder) / "report.html"
        arguments = ("--html", str(page_file), "--csv", str(Path(folder) / "table.csv"))
        subprocess.run(
            [sys.executable, "-m", "kvbench", "report", str(EXAMPLES / "virtio-disk"), *arguments],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        page = browser.new_page(viewport={"width": WIDTH, "height": FIRST_SCREEN})
        page.goto(page_file.as_uri())
        page.screenshot(path=EXAMPLES / "report.png")
        section = page.locator("section[aria-labelledby=reload] .figures")
        section.screenshot(path=EXAMPLES / "report-figures.png")
        browser.close()


if __name__ == "__main__":
    main()
