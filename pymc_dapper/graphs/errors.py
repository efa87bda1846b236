"""Reasons to refuse a model, raised before sampling starts."""


class ReadingError(ValueError):
    """The model can't be read: a variable isn't a record, or a factor isn't understood."""


class NotAdditiveError(ReadingError):
    """A factor of the log-density isn't a function of sums over records."""


class UnknownOperationError(ReadingError):
    """An operation on the record axis that the reader has no rule for."""


class NotMarginalisableError(ReadingError):
    """Counts can't be marginalised from the density that moves parameters."""


class NotConjugateError(ReadingError):
    """A parameter's conditional distribution isn't of its prior's conjugate family."""


def without_mechanism(what: str, *names: str) -> ReadingError:
    """Make the error that no factor depends on some records or counts, ``what``."""
    listed = ", ".join(f"'{name}'" for name in names)
    return ReadingError(
        f"nothing in the model depends on the {what} {listed}: they would just follow their prior. "
        f"Add the privacy mechanism as a function of the {what}: a pm.Potential or an observed "
        "variable"
    )


FAILURES = (ArithmeticError, AssertionError, IndexError, RuntimeError, ValueError)
"""Errors of an operation at values that it doesn't accept: a graph can't be evaluated, or a
distribution has no draws or no density. Code with a fallback catches these only. All other errors,
such as AttributeError, are programming errors."""
