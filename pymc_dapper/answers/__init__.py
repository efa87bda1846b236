"""Answers from a release at once: true values given what was published, without a model."""

from pymc_dapper.answers.answer import Answer
from pymc_dapper.answers.summary import Summary

__all__ = ["Answer", "Summary"]
