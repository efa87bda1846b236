"""Admission of men and women to UC Berkeley, from randomised answers.

400 applicants reported their sex and whether they were admitted, each by randomised response: with
probability 3/4 the true value, else the other one. Only these 400 pairs of answers were released,
together with that probability. How do the odds of admission compare, and how sure can we be?

The script prints the posterior summary and the quantiles of the odds ratio, male to female, and
saves a figure to examples/output/randomised_response.png (another place: --output PATH). It shows
three analyses side by side:

private       of the released answers, with their randomisation taken into account
naive         of the released answers, as if they were true
confidential  of the true values: for teaching, since an analyst doesn't have them
"""

import argparse
import json
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from _figures import save
from _markdown import fill_file
from _odds_ratio import draw, print_quantiles, quantiles_table
from scipy.stats import gaussian_kde

import pymc_dapper as pmd
from pymc_dapper.reference import KnownTablePosterior

HERE = Path(__file__).parent
DATA = json.loads((HERE / "data" / "randomised_response.json").read_text(encoding="utf-8"))
OUTPUT = HERE / "output" / "randomised_response.png"

LABELS = {
    "confidential": (0.9, "confidential:\nthe true values", "left"),
    "naive": (0.1, "naive: answers\ntaken as true", "right"),
    "private": (0.8, "private: randomisation\naccounted for\n(line exact, bars sampled)", "left"),
}


def build_model(answered_male, answered_admitted, keep):
    """Applicants are latent records; their answers are observed, one of each kind per record."""
    with pm.Model(coords={"cell": DATA["cells"]}) as model:
        p = pm.Dirichlet("p", np.ones(4), dims="cell")
        record = pm.Categorical("record", p=p, shape=len(answered_male))
        # The cells in order: male/admit, male/reject, female/admit, female/reject.
        response = pmd.RandomizedResponse(keep, categories=2)
        response.observe("answered_male", 1 - record // 2, released=answered_male)
        response.observe("answered_admitted", 1 - record % 2, released=answered_admitted)
        pm.Deterministic("log_odds_ratio", pt.log(p[0] * p[3] / (p[1] * p[2])))
    return model


def sample(model, draws, tune):
    """Sample as pmd.sample chooses: with the records marginalised.

    Answers like these tell little about a single record, so p and the records would hold each other
    in place. But nothing else sees the records: what matters is how many gave which answers.
    """
    return pmd.sample(draws, tune=tune, chains=4, random_seed=1, model=model)


class ExactDraws:
    """Independent draws of the log odds ratio from its exact posterior.

    Given p, the answers are independent draws, too, from the cells' probabilities ``p @ channel``.
    Since the prior of p is flat, these probabilities have a Dirichlet posterior, restricted to what
    some p leads to. So draw from the Dirichlet law, solve for p, and keep valid probabilities.

    This works because the model is so simple. It is here to check the sampler by.
    """

    def __init__(self, answers, keep, size=1_000_000):
        one = np.array([[keep, 1 - keep], [1 - keep, keep]])
        channel = np.kron(one, one)
        rng = np.random.default_rng(1)
        p = np.linalg.solve(channel.T, rng.dirichlet(1 + answers, size=size).T)
        p = p[:, (p > 0).all(axis=0)]
        self.draws = np.log(p[0] * p[3] / (p[1] * p[2]))
        self._density = gaussian_kde(self.draws[:50_000])

    def pdf(self, x):
        return self._density(x).reshape(np.shape(x))

    def quantile(self, probabilities):
        return np.quantile(self.draws, probabilities)


def exact_log_odds_ratios(answers, confidential, keep):
    """What each analysis says about the log odds ratio, found without a Markov chain."""
    alpha = np.ones(4)
    return {
        "confidential": KnownTablePosterior(alpha, confidential).log_odds_ratio(),
        "naive": KnownTablePosterior(alpha, answers).log_odds_ratio(),
        "private": ExactDraws(answers, keep),
    }


def released():
    """Each applicant's answers: male or not, admitted or not."""
    return np.array(DATA["answered_male"]), np.array(DATA["answered_admitted"])


def exact_posteriors():
    """The same, of the released answers."""
    male, admitted = released()
    answers = np.bincount(2 * (1 - male) + (1 - admitted), minlength=4)
    return exact_log_odds_ratios(answers, np.array(DATA["confidential"]), DATA["keep_probability"])


def main(draws=4_000, tune=1000, output=OUTPUT, page=None):
    """Sample, print both tables, save the figure; write the quantiles into a page if given."""
    model = build_model(*released(), DATA["keep_probability"])
    idata = sample(model, draws, tune)
    sampled = idata.posterior["log_odds_ratio"].values.ravel()
    exact = exact_posteriors()

    print(az.summary(idata, ci_prob=0.9))
    print_quantiles(sampled, exact)
    fill_file(page, {"randomised answers": quantiles_table(sampled, exact)})
    figure = draw(sampled, exact, LABELS, limits=(0.2, 80), ticks=(0.25, 0.5, 1, 2, 4, 8, 16, 32))
    save(figure, Path(output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    parser.add_argument("--page", type=Path, help="page to write the quantiles into")
    arguments = parser.parse_args()
    main(output=arguments.output, page=arguments.page)
