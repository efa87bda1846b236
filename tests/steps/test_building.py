"""Where memory runs out, that is said, and nothing else is blamed."""

import ast
import os
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numba.core import caching
from pytensor.compile.mode import get_mode

import pymc_dapper as pmd
from pymc_dapper.assignment import readings as assignment_readings
from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.conjugacy import check as conjugacy_check
from pymc_dapper.counts import step as counts_step
from pymc_dapper.counts.reading import self_check as count_check
from pymc_dapper.interweaving.reading import self_check as map_check
from pymc_dapper.records.reading import model as reading_module
from pymc_dapper.steps.building import (
    telling_why,
    whole_graphs,
    without_c_compiler,
    without_traces,
)

PACKAGE = Path(pmd.__file__).parent


def no_memory(*arguments, **options):
    raise MemoryError("Unable to allocate 7.45 GiB for an array\n\nHINT: about PyTensor")


def failing(compile_, at):
    """Compile as before; the function so compiled raises, from its so-manieth call on."""

    def compiled(*arguments, **options):
        function = compile_(*arguments, **options)
        calls = []

        def call(*values):
            calls.append(1)
            return no_memory() if len(calls) > at else function(*values)

        return call

    return compiled


def records():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, shape=4)
        pmd.GaussianMechanism(1.0).potential("privacy", x.sum(), released=1.0)
    return model, mu, x


def table():
    with pm.Model() as model:
        counts = pm.Poisson("counts", [3.0, 4.0])
        pmd.GaussianMechanism(1.0).potential("privacy", counts, released=np.array([3.0, 4.0]))
    return model, counts


def told(build):
    with pytest.raises(MemoryError, match="Unable to allocate") as caught:
        build()
    [note] = caught.value.__notes__
    assert "fewer records, cells" in note
    return note


@pytest.mark.parametrize("at", [0, 1])
def test_records_that_do_not_fit_into_memory(at, monkeypatch, uncompiled):
    """When they are drawn, or when factors are evaluated; of parameters drawn from their prior."""
    model, _, x = records()
    compile_ = failing(reading_module.compile_in_python, at)
    monkeypatch.setattr(reading_module, "compile_in_python", compile_)
    note = told(lambda: pmd.DapperStep([x], model=model))
    assert note.startswith("Memory ran out in DapperStep for 'x'. Take fewer")
    assert "table of counts" in note


def test_a_prior_that_takes_all_memory(uncompiled):
    """Told once, and not as a distribution that can't be drawn from."""
    with pm.Model() as model:
        x = pm.CustomDist(
            "x", logp=lambda value: -(value**2), random=no_memory, signature="->()", shape=4
        )
        pmd.GaussianMechanism(1.0).potential("privacy", x.sum(), released=1.0)
    assert "in DapperStep for 'x'." in told(
        lambda: pmd.DapperStep(x, model=model, initial_point={"x": np.ones(4)})
    )


def test_maps_that_do_not_fit_into_memory(monkeypatch, uncompiled):
    model, mu, x = records()
    monkeypatch.setattr(map_check, "at_point", failing(map_check.at_point, 0))
    note = told(lambda: pmd.InterweaveStep(mu, records=x, model=model))
    assert "in InterweaveStep for 'mu'." in note
    assert "interweave=False" in note


def test_conditionals_that_do_not_fit_into_memory(monkeypatch, uncompiled):
    model, mu, _ = records()
    monkeypatch.setattr(conjugacy_check, "at_point", failing(conjugacy_check.at_point, 0))
    note = told(lambda: pmd.ConjugateStep(mu, model=model))
    assert "in ConjugateStep for 'mu'." in note
    assert "conjugate=False" in note


def test_counts_that_do_not_fit_into_memory(monkeypatch, uncompiled):
    model, counts = table()
    step = pmd.CountStep([counts], model=model)
    monkeypatch.setattr(count_check, "compile_in_python", failing(count_check.compile_in_python, 0))
    with pytest.raises(MemoryError):
        count_check.WrittenFactors(step._reading, [])(np.array([3, 4]))
    monkeypatch.setattr(counts_step, "read_counts", no_memory)
    assert "in CountStep for 'counts'." in told(lambda: pmd.CountStep([counts], model=model))


def test_starts_that_do_not_fit_into_memory(monkeypatch, uncompiled):
    """PyMC makes an array of all records to begin with; and numbers of records are looked for."""
    model, *_ = records()
    for name, step in (("initial_point", "DapperStep"), ("find_sizes", "SizeStep")):
        with monkeypatch.context() as patch:
            patch.setattr(assignment_readings, name, no_memory)
            note = told(lambda: pmd.assign_steps(model=model, progressbar=False))
        assert note.startswith(f"Memory ran out in {step} for 'mu', 'x'. ")


@pytest.mark.parametrize("error", [28, 13, 30], ids=["full", "not ours", "read-only"])
def test_a_folder_that_cannot_be_written_to_is_named(error, monkeypatch, tmp_path):
    def refuses(file, mode):
        raise OSError(error, os.strerror(error), file)

    monkeypatch.setattr(caching, "open", refuses, raising=False)
    with (
        pytest.raises(OSError, match=os.strerror(error)) as caught,
        telling_why("DapperStep", ["x"]),
    ):
        caching.IndexDataCacheFile(str(tmp_path), "x", None).save("key", b"")
    [note] = caught.value.__notes__
    assert note.startswith(f"Compiled code in '{tmp_path}' can't be used in DapperStep for 'x'. ")
    assert "base_compiledir=" in note
    with pytest.raises(OSError, match="of the user's") as caught, telling_why("DapperStep", ["x"]):
        raise OSError(error, "of the user's own")
    assert not hasattr(caught.value, "__notes__")


def test_a_function_of_the_users_may_run_out_of_memory():
    model, mu, _ = records()
    with pytest.raises(MemoryError, match="Unable to allocate"):
        pmd.FunctionStep(mu, draw=no_memory, model=model)


def test_no_handler_takes_lack_of_memory_for_something_else():
    """All of the package: what catches any exception lets this one through, or names its kind."""
    found, wrong = 0, []
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Try):
                continue
            kinds = [ast.unparse(x.type) if x.type else "BaseException" for x in node.handlers]
            for k, (kind, handler) in enumerate(zip(kinds, node.handlers, strict=True)):
                if not {"Exception", "BaseException"} & set(kind.strip("()").split(", ")):
                    continue
                found += 1
                passed = "MemoryError" in kinds[:k]
                told = ("error_message(", "_executor_failed(", "set_exception(", "add_note(")
                if not passed and not any(x in ast.unparse(handler) for x in told):
                    wrong.append(f"{file.name}:{handler.lineno}")
    assert found > 5
    assert wrong == []


def test_variables_note_where_they_are_made_except_in_our_graphs():
    with pytensor.config.change_flags(traceback__limit=3):
        with without_traces():
            assert pt.scalar().tag.trace == []
        assert len(pt.scalar().tag.trace[0]) == 3
        with pytest.raises(MemoryError), without_traces():
            no_memory()
        assert len(pt.scalar().tag.trace[0]) == 3


def test_constants_are_evaluated_without_a_c_compiler():
    with pytensor.config.change_flags(cxx="some compiler"):
        with without_c_compiler():
            assert pytensor.config.cxx == ""
        with without_c_compiler(unless=True):
            assert pytensor.config.cxx == "some compiler"
        with pytest.raises(MemoryError), without_c_compiler():
            no_memory()
        assert pytensor.config.cxx == "some compiler"


@pytest.mark.parametrize(
    ("options", "compiler"), [({}, ""), ({"compile_kwargs": {"mode": "NUMBA"}}, "some compiler")]
)
def test_steps_built_by_hand_need_no_c_compiler(options, compiler, monkeypatch):
    """Unless a user compiles in another way than ours, which may."""
    found = []

    def read(*arguments, **given):
        found.append(pytensor.config.cxx)
        no_memory()

    model, counts = table()
    monkeypatch.setattr(counts_step, "read_counts", read)
    with pytensor.config.change_flags(cxx="some compiler"):
        told(lambda: pmd.CountStep([counts], model=model, **options))
    assert found == [compiler]


def test_pymc_compiles_each_graph_as_one_function_too():
    default = get_mode(None)
    with whole_graphs():
        assert get_mode(None) is numba_mode(None) is not default
    with whole_graphs(unless=True):
        assert get_mode(None) is default


@pytest.mark.parametrize("flags", [{"mode": "NUMBA"}, {"mode": "FAST_COMPILE"}, {"linker": "py"}])
def test_a_mode_that_a_user_has_chosen_stays(flags):
    with pytensor.config.change_flags(**flags):
        chosen = get_mode(None)
        with whole_graphs():
            assert get_mode(None) is chosen
