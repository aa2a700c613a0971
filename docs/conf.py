"""How `make docs` makes the site. It works without a network: nothing is fetched, and no page asks for anything."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

import semigrad

sys.path.insert(0, str(Path(__file__).parent))

from docstrings import as_markup

project = "Semigrad"
author = "The Semigrad developers"
copyright = author
release = version = semigrad.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
root_doc = "index"

highlight_language = "text"  # of blocks that do not say theirs: formulas

html_theme = "furo"
html_title = f"Semigrad {release}"
html_static_path = ["_static"]
html_css_files = ["semigrad.css"]
html_show_copyright = html_show_sphinx = html_copy_source = False
pygments_style, pygments_dark_style = "default", "github-dark"

myst_heading_anchors = 3

nb_execution_mode = "cache"  # a few seconds for each notebook that has changed
nb_execution_cache_path = str(Path(__file__).parent / "_build" / "notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 300

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what things are; ours carry bounds, which are no reading
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
add_module_names = False


def show_as_written(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    lines[:] = as_markup(lines)


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", show_as_written)
