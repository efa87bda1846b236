"""The table of contents: ten pages, and those below them. `conf.py` puts it into the HTML."""

CHILDREN = {
    "index": [
        "getting-started",
        "how-do-i",
        "tutorials/index",
        "gallery",
        "releases",
        "sampling",
        "what-can-go-wrong",
        "methods",
        "api",
        "evidence/index",
    ],
    "tutorials/index": [
        "tutorials/first-release",
        "tutorials/from-dapper",
        "tutorials/census-table",
        "tutorials/noisy-tables",
        "tutorials/looks-fine",
        "tutorials/curator",
    ],
    "releases": [
        "answers",
        "mechanisms",
        "quantiles",
        "selections",
        "offices",
        "your-own-mechanism",
        "budgets",
        "statistics",
        "distributions",
        "noisy-stats",
        "studies",
    ],
    "sampling": [
        "small-budgets",
        "tabulate",
        "latent-counts",
        "census",
        "unknown-number",
        "microdata",
        "synthetic-data",
        "conjugate-steps",
        "with-pymc",
        "performance",
        "reading-a-model",
        "operations",
    ],
    "what-can-go-wrong": ["naive-fitting", "plots"],
    "methods": [
        "rejection-abc",
        "monte-carlo-em",
        "private-proportion",
        "release-under-invariants",
        "api-reference-methods",
    ],
    "evidence/index": [
        "evidence/exactness",
        "evidence/performance",
        "evidence/paper",
        "evidence/reference-posteriors",
        "evidence/small-budgets",
        "evidence/interweaving",
        "evidence/latent-counts",
        "evidence/studies",
        "evidence/measured",
        "evidence/numerics",
        "design",
        "evidence/upstream",
        "evidence/broadband",
    ],
}


def toctree(page):
    """The hidden directive at the end of a page that has others below it."""
    here = page.rpartition("/")[0]
    pages = [f"/{name}" if here else name for name in CHILDREN.get(page, ())]
    return "\n".join(["\n```{toctree}", ":hidden:\n", *pages, "```\n"]) if pages else ""
