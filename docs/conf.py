"""How the documentation is built: `make docs`, without a network, every warning an error."""

import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same figures on every machine
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from causalformer import DataWarning, __version__

project = "causalformer"
author = "The causalformer developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "from_the_tree",
]
exclude_patterns = ["gallery", "auto_gallery/*.ipynb", "auto_gallery/*.py", "auto_gallery/sg_*"]

# Markdown
myst_enable_extensions = ["colon_fence", "dollarmath", "html_image"]
myst_heading_anchors = 3

suppress_warnings = ["myst.header"]  # tables of results begin at a level of their own
highlight_language = "none"  # what has no language is a command

# docstrings
default_role = "py:obj"  # single backticks; what has no page of its own is shown as code
autodoc_typehints = "none"  # the docstrings say what goes in
autodoc_default_options = {
    "members": True,
    "exclude-members": "model_config, set_fit_request, set_predict_request, set_score_request",
}
autosummary_generate = False
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"

# the gallery; a script that fails ends the build
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "run_stale_examples": True,  # the program may have changed where a script has not
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "matplotlib_animations": False,
}
warnings.simplefilter("ignore", DataWarning)  # the gallery prints those it is about

# pages
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_sidebars = {page: [] for page in ("index", "tutorial/*", "benchmarks", "faq")}
html_title = f"causalformer {release}"
html_math_renderer = "mathml"  # browsers draw it themselves; MathJax would come from another host
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
