"""The notebook for PyMC's gallery of examples: as it was run, in the form asked for there."""

import json
import re
from pathlib import Path

import matplotlib as mpl
import pytest
from arviz_plots.style import get

GALLERY = Path(__file__).parents[1] / "examples" / "gallery"
NOTEBOOK = json.loads((GALLERY / "private_table.ipynb").read_text("utf-8"))
SOURCE = (GALLERY / "private_table.myst.md").read_text("utf-8")
CELLS = [(cell["cell_type"], "".join(cell["source"])) for cell in NOTEBOOK["cells"]]
TEXT = "\n\n".join(source for kind, source in CELLS if kind == "markdown")
CODE = [source for kind, source in CELLS if kind == "code"]


def test_it_is_what_its_source_says():
    assert re.findall(r"```{code-cell} ipython3\n(.*?)\n```", SOURCE, re.DOTALL) == CODE
    for kind, source in CELLS:
        assert kind == "code" or source in SOURCE


def test_it_was_run_from_its_first_cell_to_its_last():
    ran = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in ran] == list(range(1, len(CODE) + 1))
    outputs = [output for cell in ran for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    told = json.dumps(outputs)
    assert "Warning" not in told
    assert "site-packages" not in told


def test_it_has_the_form_that_the_gallery_asks_for():
    assert re.match(
        r"\(private_table\)=\n# .+\n\n:::\{post\} \w{3} \d{1,2}, \d{4}\n:tags: .+\n"
        r":category: (beginner|intermediate|advanced), [\w-]+\n:author: .+\n:::$",
        CELLS[0][1],
    )
    titles = re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)
    assert titles[-3:] == ["Authors", "References", "Watermark"]
    assert 'az.style.use("arviz-variat")' in CODE[1]
    assert CODE[-1].startswith("%load_ext watermark\n%watermark -n -u -v -iv -w")
    assert CELLS[-1] == ("markdown", ":::{include} ../page_footer.md\n:::")
    assert NOTEBOOK["metadata"]["myst"]["substitutions"] == {"extra_dependencies": "pymc-dapper"}
    assert ":::{include} ../extra_installs.md\n:::" in TEXT
    assert "https://" not in TEXT  # other documentation is referred to by Sphinx


def test_what_it_cites_is_in_the_bibliography_in_order():
    keys = re.findall(r"^@\w+\{(\w+),$", (GALLERY / "references.bib").read_text(), re.MULTILINE)
    assert keys == sorted(keys)
    assert set(re.findall(r"\{cite:[pt]\}`(\w+)`", TEXT)) == set(keys)


@pytest.mark.long
def test_it_runs():
    """Its chains agree: it asserts that itself."""
    names = {}
    with mpl.rc_context():
        assert get("arviz-variat")
        for code in CODE[:-1]:
            exec(compile(code, "private_table", "exec"), names)
    assert names["private_idata"].posterior["record"].sizes["record_dim_0"] == 400
