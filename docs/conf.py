"""The documentation site: sphinx-build -W --keep-going docs BUILD.

Why Sphinx: it is maintained, -W makes every warning an error, and it writes the API pages from the
docstrings. The maintenance of mkdocs-material ends in May 2027. Its successor Zensical is young and
has no mode that is as strict.

The pages are GitHub flavoured Markdown, which the git host shows too. The versions of the tools are
in requirements.txt. The API pages need the installed package.
"""

import runpy
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS / "_ext"), str(ROOT / "build_defs")]

import project_url  # noqa: E402  needs the path above

project = "tf_lstm_ops"
author = copyright = "The tf_lstm_ops developers"
version = release = runpy.run_path(str(ROOT / "tf_lstm_ops" / "_version.py"))["__version__"]

extensions = [
    *(
        "sphinx.ext.autodoc",
        "sphinx.ext.napoleon",
        "sphinx.ext.viewcode",
        "myst_nb",
        "sphinx_copybutton",
    ),
    *("c_header", "google_docstrings", "mathml", "repository_pages", "search_words"),
    "wide_tables",
]
exclude_patterns = ["_ext", "requirements.txt"]
repository_url = project_url.repository_url()

# Markdown as on GitHub.
myst_heading_anchors = 6
myst_fence_as_directive = {"math"}
nb_execution_mode = "off"  # the notebooks have their outputs

autodoc_typehints = "none"  # google_docstrings adds them to the descriptions, as in the source
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": True}
default_role = "code"  # `name` in docstrings is code
napoleon_custom_sections = [("Call arguments", "params_style"), ("Call returns", "returns_style")]

# A copied example has neither its prompts nor its output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"tf_lstm_ops {version}"
html_static_path = ["_static"]
html_copy_source = html_use_index = html_domain_indices = False
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_search_scorer = str(DOCS / "_ext" / "search_scorer.js")
