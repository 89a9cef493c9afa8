"""The documentation site: ``make docs`` builds it offline into docs/_build/html."""

import sys
from pathlib import Path

from sphinx.ext.autodoc.mock import _MockObject

import scb

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "scb"
author = "The scb developers"
project_copyright = author
release = version = scb.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "code_links",  # docs/_ext: paths and names in pages become links to the source
    "maths",  # subscripts in plain text
    "mended_html",  # anchors in headings, figures at full size, breaks in long names
    "made_pages",  # the figures of the paper, the command line, the names of the package
]
exclude_patterns = ["_build", "_ext", "tutorials", *(f"learn/**/*.{kind}" for kind in ("ipynb", "py", "zip", "md5"))]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]
toc_object_entries_show_parents = "hide"
nitpicky = True

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "html_image"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing", "config.cache"]  # check_site.py follows every link of the built pages, anchors too

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_mock_imports = ["torch", "cupy"]  # not needed to read a signature
_MockObject.__or__ = _MockObject.__ror__ = lambda self, other: self  # torch.device | str in an annotation
autodoc_typehints = "none"  # numpydoc sections name types and shapes
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
python_use_unqualified_type_names = True

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "learn",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "capture_repr": (),  # what is printed is shown, and nothing else
    "show_memory": False,
    "write_computation_times": False,  # its page asks for scripts from elsewhere
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 0,
    "image_scrapers": ("matplotlib",),
    "reference_url": {"scb": None},
    "backreferences_dir": None,
    "parallel": True,
    "thumbnail_size": (400, 250),
}

copybutton_prompt_text = r">>> |\.\.\. "  # what is copied runs: neither prompts nor answers
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "scb"
html_favicon = "_static/favicon.svg"  # two positions of many that matter
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["404.html"]  # a file of its own: it takes nothing from the theme
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None  # the same sources make the same pages
html_theme_options = {
    "logo": {"text": "scb"},
    "navbar_align": "left",
    "navbar_center": ["lab-link", "navbar-nav"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "story": []}  # neither has pages below it
