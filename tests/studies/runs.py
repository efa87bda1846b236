"""Small studies and cells, run."""

from concurrent.futures import ThreadPoolExecutor

from pymc_dapper.studies import cell as cells
from pymc_dapper.studies import study
from pymc_dapper.studies.cell import CellRunner
from tests.studies import functions

DEFAULTS = {"chains": 2, "compute_convergence_checks": False}


def runner(simulate=functions.simulate, build=functions.build, **changes):
    """What does cells, without models from before."""
    cells._models.prepared.clear()
    options = {
        "seed": 1,
        "var_names": None,
        "prob": 0.9,
        "timeout": None,
        "missing_information": True,
        "sample_kwargs": {**functions.FAST, **DEFAULTS},
        **changes,
    }
    return CellRunner(simulate=simulate, build=build, **options)


def in_this_process(simulate, build, grid, **options):
    with ThreadPoolExecutor(1) as executor:
        return study(
            simulate,
            build,
            grid,
            seed=1,
            executor=executor,
            sample_kwargs=functions.FAST,
            progressbar=False,
            **options,
        )


REPLICATES = 4


def run(
    simulate=functions.simulate, build=functions.build, *, seed=1, replicates=REPLICATES, **options
):
    return study(
        simulate,
        build,
        functions.GRID,
        replicates=replicates,
        seed=seed,
        sample_kwargs=functions.FAST,
        progressbar=False,
        **options,
    )
