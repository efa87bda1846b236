"""Runs the Python blocks of these pages, and writes what each prints in the block below it.

`make pages` does so for all pages, `python docs/pages.py docs/sampling.md ...` for some. The tests
compare: a page shows what its code prints.
"""

import contextlib
import io
import re
import sys
from pathlib import Path

import matplotlib
import pytensor

DOCS = Path(__file__).parent

BLOCK = re.compile(r"```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<output>.*?)```)?", re.DOTALL)


def with_code():
    """The pages that have Python blocks, by name: "sampling.md", "tutorials/curator.md"."""
    pages = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    return {name: path for name, path in pages.items() if BLOCK.search(path.read_text("utf-8"))}


def run(page, name="page"):
    """Run the Python blocks of a page, one after the other.

    Returns the page with what they print now, and the names that they define.
    """
    names = {}

    def block(found):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(found["code"], name, "exec"), names)
        printed = output.getvalue()
        shown = f"\n\n```text\n{printed}```" if printed else ""
        return f"```python\n{found['code']}```{shown}"

    return BLOCK.sub(block, page), names


def main(paths):
    matplotlib.use("Agg")
    # As in the tests: arithmetic doesn't depend on whether there is a C compiler.
    pytensor.config.cxx = ""
    for path in paths:
        print(path, flush=True)
        page, _ = run(path.read_text("utf-8"), path.name)
        path.write_text(page, "utf-8")


if __name__ == "__main__":
    main([Path(path) for path in sys.argv[1:]] or with_code().values())
