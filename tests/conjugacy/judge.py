"""The model's own density, to judge conditional draws."""

from pymc_dapper.graphs.rebuild import inline_symbolic_ops


class Judge:
    """The model's own log-density, of all that it consists of."""

    def __init__(self, model):
        [total] = inline_symbolic_ops([model.logp(jacobian=False)])
        self.function = model.compile_fn(total, inputs=model.value_vars, mode="FAST_COMPILE")

    def __call__(self, point):
        return float(self.function(point))


def given_of(conditional):
    """Value variables of the other variables that a conditional's graphs depend on."""
    return conditional.view.values_in([*conditional.parameters, *conditional.to_values])
