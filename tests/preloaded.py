"""New processes with the libraries already loaded, which saves seconds in each."""

from multiprocessing import get_context


def preloaded():
    """What starts processes: they share nothing with this one, and get all as pickles.

    As spawned ones do. The process from which they are forked loads the libraries once.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.studies.functions"])  # pymc_dapper and PyMC with it
    return context
