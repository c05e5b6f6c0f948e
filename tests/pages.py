"""Pages that the software makes: whether they are well-formed, and what a browser makes of them."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
VOID = {"meta", "link", "br", "path", "rect", "img", "input", "hr"}

needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium here; type: make setup")


class Page(HTMLParser):
    """Checks that elements close in order, and keeps the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data.strip())


@dataclass(frozen=True)
class Shown:
    """What became of a page in a browser."""

    complaints: list[str]
    width: int  # of what would have to be scrolled sideways, if it is more than was asked for
    boxes: int  # by how many pixels the code in a box of it is wider than that, at most
    colours: set[tuple[int, ...]]
    is_dark: bool


# Browsers have a least width of their windows, so the page is shown in a frame in a wide one.
FRAME = """<!DOCTYPE html><html><body style="margin:0">
<iframe id="page" src="{address}" style="width:{width}px;height:{height}px;border:0"></iframe>
<script>
const page = document.getElementById("page");
page.onload = () => {{
  const shown = page.contentDocument;
  console.log("width", shown.documentElement.scrollWidth);
  const boxes = [...shown.querySelectorAll("pre")].map((box) => box.scrollWidth - box.clientWidth);
  console.log("boxes", Math.max(0, ...boxes));
}};
</script></body></html>"""


def show(page: Path, width: int, scheme: str, height: int = 4000) -> Shown:
    """Opens a page `width` pixels wide, `scheme` light or dark."""
    assert BROWSER is not None
    frame, picture = page.with_suffix(".frame.html"), page.with_suffix(".png")
    frame.write_text(FRAME.format(address=page.as_uri(), width=width, height=height))
    done = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            f"--user-data-dir={page.parent / 'profile'}",
            f"--blink-settings=preferredColorScheme={int(scheme == 'light')}",
            f"--window-size={max(width, 500)},{height}",
            f"--screenshot={picture}",
            frame.as_uri(),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = re.findall(r'CONSOLE[^"]*"(.*)", source', done.stderr)
    measured = dict(text.split() for text in said if re.fullmatch(r"(width|boxes) \d+", text))
    with Image.open(picture) as image:
        shown = image.convert("RGB").crop((0, 0, width, height))
        pixels = sorted(shown.getcolors(width * height) or [])
    return Shown(
        complaints=[text for text in said if not text.startswith(("width ", "boxes "))],
        width=int(measured["width"]),
        boxes=int(measured["boxes"]),
        colours={colour for _, colour in pixels},
        is_dark=sum(pixels[-1][1]) < 3 * 128,
    )


def printed_pages(page: Path) -> int:
    """How many sheets it takes on paper."""
    assert BROWSER is not None
    paper = page.with_suffix(".pdf")
    options = ["--headless", "--no-sandbox", "--disable-gpu"]
    options += [f"--user-data-dir={page.parent / 'profile'}", f"--print-to-pdf={paper}"]
    subprocess.run([BROWSER, *options, page.as_uri()], check=True, capture_output=True, timeout=120)
    return len(re.findall(rb"/Type /Page\b", paper.read_bytes()))
