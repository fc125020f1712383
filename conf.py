"""How Sphinx builds the site. Sphinx's source directory is this one, the repository's root."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for `sphinxext`

project = "devicearray"
author = "The devicearray authors"
copyright = author
release = version = installed_version("devicearray")

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxext.checked_doctest",
    "sphinxext.measured",
    "sphinxext.recorded",
]
root_doc = "index"
default_role = "py:obj"
exclude_patterns = [
    "README.md",
    ".*",
    "_build",
    "benchmarks",
    "dist",
    "sphinxext",
    "src",
    "tests",
]
# `make html` warns about every reference that leads nowhere.
nitpicky = True
# In a docstring a bare name in single backticks may be a parameter's, as numpydoc writes it.
nitpick_ignore_regex = [("py:obj", r"[a-z_]\w*")]

# The inventories are committed and hold the names that this site uses, so that a build needs no
# network. sphinxext/inventories/make.py makes them; a new name goes there.
_INVENTORIES = HERE / "sphinxext" / "inventories"
intersphinx_mapping = {
    name: (address, str(_INVENTORIES / f"{name}.inv"))
    for name, address in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "jax": "https://docs.jax.dev/en/latest/",
    }.items()
}

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's "Parameters" says it in words
autosummary_generate = True
numpydoc_show_class_members = False

# `cache` would key on the cells alone and show stale results after a change in src/.
nb_execution_mode = "off" if tags.has("doctest") else "force"  # type: ignore[name-defined]  # noqa: F821
nb_execution_raise_on_error = True
nb_execution_timeout = 600
myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]

html_theme = "sphinx_book_theme"
html_title = "devicearray"
html_static_path = ["sphinxext/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "home_page_in_toc": True,
    "navbar_persistent": [],  # the sidebar has the search field
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
}

# Copying an example leaves its prompts and its output behind.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
