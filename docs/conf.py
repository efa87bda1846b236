"""Configuration of Sphinx, which makes HTML of these pages: see `make docs`."""

import re
import sys
from contextlib import chdir
from pathlib import Path

import pymc_dapper

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
import navigation  # noqa: E402
import pages  # noqa: E402

project = "pymc_dapper"
author = "The pymc_dapper developers"
copyright = author
version = release = pymc_dapper.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
extensions += ["sphinx.ext.napoleon", "sphinx_design"]
exclude_patterns = ["_build"]
# `api.md` lists the public names; each gets a page of its own in `api/`.
templates_path = ["_templates"]

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
    if page == "index":
        source[0] = with_cards(source[0])
    source[0] += navigation.toctree(page)


def as_run_now(source, stem):
    """Run a tutorial, and show what it prints and draws now."""
    pages.as_in_the_tests()
    with chdir(DOCS.parent):
        source, names = pages.run(source, stem)
    for file in pages.save_figures(source, stem, names, DOCS / "_build" / "figures"):
        source = source.replace(f"](../figures/{file})", f"](/_build/figures/{file})")
    return source


def with_cards(first_page):
    """The links of the first page's last section, as cards."""
    start, title, section = first_page.rpartition("\n## Where to go\n")
    links = re.findall(r"^- \[([^]]+)\]\(([\w/-]+)\.md\): (.*?)$", section, re.MULTILINE)
    cards = "".join(
        f":::{{grid-item-card}} {name}\n:link: {page}\n:link-type: doc\n{text}\n:::\n"
        for name, page, text in links
    )
    rest = section.rpartition("\n\n")[2]
    return f"{start}{title}\n::::{{grid}} 1 2 2 3\n:gutter: 2\n{cards}::::\n\n{rest}"


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
