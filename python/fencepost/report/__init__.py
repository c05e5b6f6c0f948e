"""The report of a result: one HTML file that needs nothing else, for screen, phone and paper.

`html` is all that others call. `view` prepares what is shown, `distribution` draws latency
distributions, `page.html.j2` and `page.css` are the page.
"""

from pathlib import Path
from typing import Any

from fencepost.report.view import view

FOLDER = Path(__file__).parent


def html(result: dict[str, Any]) -> str:
    """The report of a result document (docs/results.md); equal results give equal reports."""
    # Only here, because most commands make no report and should start quickly.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = Markup((FOLDER / "page.css").read_text(encoding="utf-8"))
    return environment.get_template("page.html.j2").render(style=style, **view(result))
