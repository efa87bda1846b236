"""Step methods: thin adapters from PyMC's step protocol to a compiled kernel.

`base.Step` is the shared base of all steps: the call, options and ``initial_point``, the other
inputs of compiled functions (`Given`), shared data, statistics and the progress column. A step adds
its reading, its compiled function and the code of a draw. It takes an existing reading
(`of_reading`), or its constructor reads the model. All steps of `assign_steps` read and check the
model before the first is compiled (`compile`).

- *Nothing twice.* While steps are built (`building`), PyMC computes log-densities and the start
  once (`graphs.asked_once`), variables don't record the lines that made them, and no garbage is
  collected (`pymc_dapper.garbage`: a fifth of a second each). Readings of a model aren't cached on
  disk: the graphs are needed anyway, and a key would have to contain the code of every operation.
- *Stages.* Steps report their stages to `progress.stage`. `pmd.sample` and `assign_steps` show
  them.
- *First calls.* PyTensor compiles a function when it is first called. Each step calls its functions
  once, NUTS among them, so that forked workers inherit the result. Under "spawn" workers compile
  again, from the cache on disk.
- *A chain returns* draws and statistics, nothing else. Acceptance of single records
  (``track_records=True``) is a statistic, a byte for each record and draw, under a separate name:
  PyMC can stack only equal shapes, and adds an axis if two steps share a name.
- *Warnings of a chain* go through PyMC's statistic ``warning`` (`stats`), which PyMC logs in the
  main process and leaves out of the result. `CountStep` warns about cells that never moved though
  they could (`counts.compiled.unmoved`), `DapperStep` about chains with hardly any effective draws
  of the sums that mechanisms use (`records.long_memory`, evaluated at 32 draws).
- *Chains.* ``setup_chain(rng, tune, draws)`` starts each chain and resets its state: one step may
  serve several chains. It reads ``pm.Data``, so a step remains valid after ``pm.set_data``; it
  refuses, by name, a dim or an array whose size changed. Lengths of dims are constants in compiled
  code. A mechanism that knows which releases are possible stores a check with its variable
  (``tag.check_data``), which is made then.
- *Assignment.* PyMC's ``Competence`` gets a variable, not its dependents, so `DapperStep` isn't
  registered for automatic assignment.
"""
