"""Step methods: thin adapters from PyMC's step protocol to a compiled kernel.

`base.Step` is what all steps share: the call, options and ``initial_point``, what compiled
functions take besides what they move (`Given`), shared data, statistics and the progress column. A
step adds its reading, its compiled function and what a draw is. It takes a reading that was made
already (`of_reading`); its constructor reads the model itself. All steps of `assign_steps` read and
check the model before the first is compiled (`compile`).

- *Nothing twice.* While steps are built (`building`), PyMC is asked once for log-densities and for
  the start (`graphs.asked_once`), variables don't note which lines made them, and no garbage is
  collected (`pymc_dapper.garbage`: a fifth of a second each). What was found out of a model isn't
  kept on disk: the graphs are needed anyway, and a key would have to hold the code of every
  operation.
- *Stages.* Steps tell `progress.stage` what they are doing. `pmd.sample` and `assign_steps` show
  it.
- *First calls.* PyTensor compiles a function when it is first called. Each step calls its functions
  once, NUTS among them, so that forked workers inherit the result. Under "spawn" workers compile
  again, from the cache on disk.
- *What a chain hands back* is draws and statistics, nothing else. Acceptance of single records
  (``track_records=True``) is a statistic, a byte for each record and draw, under a name of its own:
  PyMC can stack only what has the same shape, and adds an axis where two steps share a name.
- *Warnings of a chain* go through PyMC's statistic ``warning`` (`stats`), which PyMC logs in the
  main process and leaves out of the result. `CountStep` tells of cells that never moved though they
  could (`counts.compiled.unmoved`), `DapperStep` of chains with hardly any effective draws of what
  mechanisms see of the records (`records.long_memory`, evaluated at 32 draws).
- *Chains.* ``setup_chain(rng, tune, draws)`` starts each chain and resets its state: one step may
  serve several. It reads ``pm.Data`` anew, so a step serves again after ``pm.set_data``; it
  refuses, by name, a dim or an array whose size changed. Lengths of dims are constants in what is
  compiled. A mechanism that knows which releases are possible leaves a check with its variable
  (``tag.check_data``), which is made then.
- *Assignment.* PyMC's ``Competence`` sees a variable, not what depends on it, so `DapperStep` isn't
  registered for automatic assignment.
"""
