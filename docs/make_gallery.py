"""Makes the figures of the examples anew, and the tables beside them, by running the examples.

See `make gallery`. It takes up to half an hour. Figures of pages are made by docs/pages.py, and
docs/figures/budgets.png by benchmarks/, docs/figures/design.png by docs/make_design.py.
"""

import subprocess
import sys
from pathlib import Path

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
    "broadband": ["--output", "broadband.png", "--page", "../evidence/broadband.md"],
    "injuries": ["--output", "injuries.png", "--page", "../offices.md"],
    "invariants": ["--output", "invariants.png"],
    "answers": ["--output", "answers.png", "--page", "../evidence/measured.md"],
    "private_proportion": ["--output", "private_proportion.png"],
    "budget_study": ["--output", "budget_study.png", "--page", "../studies.md"],
    # These name their figures themselves.
    "published_methods": ["--output", "."],
    "paper": ["--figures", ".", "--page", "../evidence/paper.md"],
}


def run_examples():
    for name, arguments in EXAMPLES.items():
        print(f"examples/{name}.py", flush=True)
        script = SCRIPTS / f"{name}.py"
        subprocess.run([sys.executable, script, *arguments], cwd=FIGURES, check=True)


if __name__ == "__main__":
    run_examples()
