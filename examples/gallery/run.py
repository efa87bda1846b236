"""Runs the notebook for PyMC's gallery: private_table.myst.md becomes private_table.ipynb.

See `make notebook`. Both files, and what references.bib has, go to pymc-examples.
"""

from pathlib import Path

import jupytext
from nbclient import NotebookClient

SOURCE = Path(__file__).with_name("private_table.myst.md")


def main():
    notebook = jupytext.read(SOURCE)
    NotebookClient(notebook, kernel_name="python3", record_timing=False).execute()
    jupytext.write(notebook, SOURCE.with_name("private_table.ipynb"))


if __name__ == "__main__":
    main()
