"""Configuration of Sphinx, which makes HTML of these pages: see `make docs`."""

import re
import sys
from contextlib import chdir
from pathlib import Path

import pymc_dapper

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
import pages  # noqa: E402

project = "pymc_dapper"
author = "The pymc_dapper developers"
copyright = author
version = release = pymc_dapper.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

# Signatures say names and defaults, docstrings say types and shapes.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    # PyMC's protocols of steps and of distributions: for PyMC to call.
    "exclude-members": "rv_type, setup_chain, stats_dtypes_shapes, step, support_point",
}
napoleon_google_docstring = False
napoleon_use_rtype = False
# Types are said in words ("array_like, optional"): only names of ours must lead somewhere.
nitpick_ignore_regex = [("py:class", r"(?!pymc_dapper\.).*"), ("py:exc", "SamplingError")]
napoleon_custom_sections = [("Attributes", "params_style")]

html_theme = "furo"
html_title = f"pymc_dapper {release}"
html_show_sourcelink = False


def read_as_sphinx(app, page, source):
    """What GitHub shows as it is, Sphinx wants in other words."""
    # Markdown outside of this folder isn't a page: link to the file.
    outside = r"\.\./" * (page.count("/") + 1)
    source[0] = re.sub(rf"\]\(({outside}[^)]*\.md)\)", r"](path:\1)", source[0])
    if page == "gallery":
        source[0] = with_thumbnails(source[0])
    if page.startswith("tutorials/") and app.config.run_tutorials:
        source[0] = as_run_now(source[0], page.removeprefix("tutorials/"))
    # Each section of the first page lists pages: they make the table of contents.
    if page == "index":
        first, *sections = source[0].split("\n## ")
        source[0] = "\n## ".join([first, *(with_toctree(section) for section in sections)])


def as_run_now(source, stem):
    """Run a tutorial, and show what it prints and draws now."""
    pages.as_in_the_tests()
    with chdir(DOCS.parent):
        source, names = pages.run(source, stem)
    for file in pages.save_figures(source, stem, names, DOCS / "_build" / "figures"):
        source = source.replace(f"](../figures/{file})", f"](/_build/figures/{file})")
    return source


def with_toctree(section):
    """Add a hidden table of contents to a section: the pages that it links to."""
    title = section.partition("\n")[0]
    pages = re.findall(r"\]\(([\w/-]+)\.md\)", section)
    return "\n".join([section, "```{toctree}", ":hidden:", f":caption: {title}\n", *pages, "```\n"])


def with_thumbnails(gallery):
    """Put small figures before a gallery's first section, each leading to the page about it."""
    title, _, sections = gallery.partition("\n## ")
    figures = re.findall(
        r"!\[([^]]*)\]\((.*?)\)(.*?)\[page\]\(([\w/-]+)\.md\)", sections, re.DOTALL
    )
    cards = "".join(
        f":::{{grid-item-card}}\n:img-top: {figure}\n:img-alt: {' '.join(alt.split())}\n"
        f":link: {page}\n:link-type: doc\n:::\n"
        for alt, figure, _, page in figures
    )
    return f"{title}\n::::{{grid}} 2 3 4 4\n:gutter: 2\n{cards}::::\n\n## {sections}"


def setup(app):
    # `sphinx -D run_tutorials=0` shows them as they were run last, by `make pages`.
    app.add_config_value("run_tutorials", True, "env", bool)
    app.connect("source-read", read_as_sphinx)
