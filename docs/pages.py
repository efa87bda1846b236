"""Runs the Python blocks of these pages, writes what each prints below it, and saves their figures.

`make pages` does so for all pages, `python docs/pages.py docs/sampling.md ...` for some, and
`make docs` for the tutorials, in the HTML only. The tests compare: a page shows what its code
prints.
"""

import contextlib
import io
import re
import sys
from pathlib import Path

import matplotlib
import pytensor
from matplotlib.figure import Figure

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"

BLOCK = re.compile(r"```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<output>.*?)```)?", re.DOTALL)


def with_code():
    """The pages that have Python blocks, by name: "sampling.md", "tutorials/curator.md"."""
    pages = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    return {name: path for name, path in pages.items() if BLOCK.search(path.read_text("utf-8"))}


def run(page, name="page", around=lambda code: contextlib.nullcontext()):
    """Run the Python blocks of a page, one after the other, each within a context that it is given.

    Returns the page with what they print now, and the names that they define.
    """
    names = {}

    def block(found):
        with contextlib.redirect_stdout(io.StringIO()) as output, around(found["code"]):
            exec(compile(found["code"], name, "exec"), names)
        printed = output.getvalue()
        shown = f"\n\n```text\n{printed}```" if printed else ""
        return f"```python\n{found['code']}```{shown}"

    return BLOCK.sub(block, page), names


def save_figures(page, stem, names, folder):
    """Save the plots that a page makes and shows, by the names of the page and of the plot there.

    Returns the names of the files.
    """
    from arviz_plots import PlotCollection

    sys.path.insert(0, str(EXAMPLES))
    from _figures import save

    kinds = PlotCollection | Figure
    plots = {f"{stem}_{name}.png": p for name, p in names.items() if isinstance(p, kinds)}
    shown = {file: plot for file, plot in plots.items() if f"figures/{file})" in page}
    for file, plot in shown.items():
        figure = plot if isinstance(plot, Figure) else plot.viz["figure"].item()
        save(figure, folder / file)
    return list(shown)


def as_in_the_tests():
    """Draw without a screen; do arithmetic alike, whether or not there is a C compiler."""
    matplotlib.use("Agg")
    pytensor.config.cxx = ""


def main(paths):
    as_in_the_tests()
    for path in paths:
        print(path, flush=True)
        page, names = run(path.read_text("utf-8"), path.name)
        path.write_text(page, "utf-8")
        save_figures(page, path.stem, names, DOCS / "figures")


if __name__ == "__main__":
    main([Path(path) for path in sys.argv[1:]] or with_code().values())
