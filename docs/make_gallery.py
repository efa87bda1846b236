"""Makes the figures of these pages anew, and the tables beside them, by running the examples.

See `make gallery`. It takes up to half an hour. A figure of benchmarks/,
docs/figures/budgets.png, isn't among them.
"""

import subprocess
import sys
from pathlib import Path

from arviz_plots import PlotCollection
from pages import run

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures"
SCRIPTS = DOCS.parent / "examples"

EXAMPLES = {
    "admissions": ["--output", "admissions.png"],
    "randomised_response": [
        "--output",
        "randomised_response.png",
        "--page",
        "../getting-started.md",
    ],
    "regression": ["--output", "regression.png"],
    "noisy_stats": ["--output", "noisy_stats.png", "--page", "../noisy-stats.md"],
    "unknown_number": ["--output", "unknown_number.png", "--page", "../unknown-number.md"],
    "births": ["--output", "births_posterior.png"],
    "census": ["--output", "census_tracts.png", "--page", "../latent-counts.md"],
    "census_blocks": ["--output", "census_blocks.png", "--page", "../census.md"],
    "broadband": ["--output", "broadband.png", "--page", "../broadband.md"],
    "invariants": ["--output", "invariants.png"],
    "private_proportion": ["--output", "private_proportion.png"],
    "budget_study": ["--output", "budget_study.png", "--page", "../studies.md"],
    # These name their figures themselves.
    "published_methods": ["--output", "."],
    "paper": ["--figures", ".", "--page", "../paper.md"],
}


def run_examples():
    for name, arguments in EXAMPLES.items():
        print(f"examples/{name}.py", flush=True)
        script = SCRIPTS / f"{name}.py"
        subprocess.run([sys.executable, script, *arguments], cwd=FIGURES, check=True)


def run_pages_with_plots():
    """Save each figure that a page makes, by the names of the page and of the figure there."""
    sys.path.insert(0, str(SCRIPTS))
    from _figures import save

    for page in ("plots.md", "tutorials/first-release.md", "tutorials/curator.md"):
        path = DOCS / page
        print(path, flush=True)
        _, names = run(path.read_text("utf-8"), page)
        for name, value in names.items():
            if isinstance(value, PlotCollection):
                save(value.viz["figure"].item(), FIGURES / f"{path.stem}_{name}.png")


if __name__ == "__main__":
    run_examples()
    run_pages_with_plots()
