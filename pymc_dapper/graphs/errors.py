"""What a model can be refused for, said before sampling starts."""


class ReadingError(ValueError):
    """The model can't be read: a variable isn't a record, or a factor isn't understood."""


class NotAdditiveError(ReadingError):
    """A factor of the log-density isn't a function of sums over records."""


class UnknownOperationError(ReadingError):
    """An operation on the record axis that the reader has no rule for."""


class NotCollapsibleError(ReadingError):
    """Counts can't be summed out of what parameters are moved by."""


class NotConjugateError(ReadingError):
    """A parameter's conditional distribution isn't one that its prior is conjugate to."""


FAILURES = (ArithmeticError, AssertionError, IndexError, RuntimeError, ValueError)
"""What is raised where a graph can't be evaluated, or a distribution can't be drawn from or has no
density: by an operation, at values that it isn't made for. Who goes on in another way then catches
these only. All else, such as AttributeError or TypeError, is an error of programming."""
