"""Reading a model: what proposes its records, and the factors that depend on them.

`model.read_model` returns a frozen `ModelReading`: the graph that proposes all records, the factors
that depend on them, and the plan of a sweep. ``docs/reading-a-model.md`` tells users what a reading
means.

**Roles.** A walk (`factors.RecordWalk`) gives each variable of a factor's graph a role (`roles`):

================== ================================================================================
role               meaning
================== ================================================================================
``Fixed``          doesn't depend on the records
``Rows``           each slice along an axis depends on one record only
``SumOverRecords`` a sum over the record axis; it holds what each record adds
``FunctionOfSums`` depends on the records through such sums only
``Combination``    products of functions of sums with ``Rows``, added up, such as ``x - x.mean()``
================== ================================================================================

A sum over the record axis is the boundary. Below it are contributions of single records, above it
is the mechanism. A sum of a polynomial of combinations is rewritten as a polynomial of sums: a
variance comes from the sums of ``x`` and ``x ** 2``. That loses digits if the mean is large
relative to the spread; the self-check and the step notice.

**Operations.** `rules.follow_records` returns the roles of an operation's outputs. By default they
follow from `graphs.ops.action_of`. Some operations, such as a look-up by records, need more than
their action and have rules of their own. A rule is called only if an input is ``Rows`` and none is
a function of sums. An unknown operation raises `UnknownOperationError`, which says how to teach it.
An operation that mixes records otherwise (a maximum) raises `NotAdditiveError`, and the factor
needs full evaluations, unless `orders` reads it as a function of order statistics and of sums.
Operations that wrap a graph are inlined first.

**Factors.** A walk that ends in ``Rows`` makes a `SeparableFactor`, with one log-density per
record; one that ends in a function of sums an `AdditiveFactor`; any other a `FullFactor`, with the
reason. Factors without records are left out. If none is left, the model is refused: the records
would only follow their prior.

**Parameter checks.** PyMC checks that all parameters of a distribution are valid. If these depend
on records, one "all" would couple the records. So the check is made for each record, which gives
the same density. A proposal drawn with invalid parameters is refused (`possible`). A check costs
nothing if bounds of the graph show that it always holds.

**Proposals** are the records' random variables as functions of uniform, normal or exponential noise
(`graphs.noise`); other draws come from one generator. Variables of one record that depend on each
other are drawn together. The same walk checks that slice i of a prior's parameters depends on
record i only. If there are separable factors and at most 16 values, `finite` proposes from the
prior times these factors, which then cancel.

**Self-check.** Before sampling, `self_check` and `prior_check` compare the reading with the model
at random states: a contribution must depend on its record alone, and each factor must equal the
model's. `law_check` compares draws from the records' prior with its density. Graphs are evaluated
in Python, since compiling takes longer. So these checks can't see a fault of compiled code; the
step compares that at the first state of a chain.
"""
