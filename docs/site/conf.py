"""How Sphinx makes the site of the pages that docs/site/assemble.py laid out (`make docs`).

Nothing comes from outside: Furo has its fonts and scripts, the search runs in the reader's browser.
"""

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from fencepost import __version__

project = "Fencepost"
release = version = __version__
html_title = f"Fencepost {__version__}"
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["pages.css"]
# The pages are Markdown in the repository; their source is one click too many here.
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False
project_copyright = ""
html_show_copyright = False

extensions = ["myst_parser"]
root_doc = "index"
myst_heading_anchors = 6  # the names of headings in links are those of GitHub
highlight_language = "text"
smartquotes = False  # two hyphens of an option stay two


def setup(app: Sphinx) -> None:
    """What Pygments does not know is text; pictures in Mermaid, too, whose program would come from
    outside."""
    for language in ("csv", "mermaid"):
        app.add_lexer(language, TextLexer)
