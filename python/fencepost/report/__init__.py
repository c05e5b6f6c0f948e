"""The report of a result: one HTML file that needs nothing else, for screen, phone and paper.

`html` is all that a comparison needs; a study renders a page of its own from the same parts with
`render`. `view` prepares what is shown; `plane`, `distribution`, `occupancy` and `topology` draw,
and `picture` makes a file of one chart; `frame.html.j2` is any such page, `parts.html.j2` its
pieces, `page.html.j2` the report of a comparison, and `page.css` how all of them look.
"""

from pathlib import Path
from typing import Any

from fencepost.report.view import view

FOLDER = Path(__file__).parent


def html(result: dict[str, Any]) -> str:
    """The report of a result document (docs/results.md); equal results give equal reports."""
    return render(FOLDER / "page.html.j2", view(result))


def render(template: Path, values: dict[str, Any]) -> str:
    """A page that extends frame.html.j2, as one file."""
    # Only here, because most commands make no report and should start quickly.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader([template.parent, FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = Markup((FOLDER / "page.css").read_text(encoding="utf-8"))
    return environment.get_template(template.name).render(style=style, **values)
