"""Malformed inputs: every argument of every public callable is taken, or refused by its name.

The callables are found in the package, so that a new one takes part by itself. It needs an entry in
`tests/valid_calls.py`.
"""

import importlib
import inspect
import pkgutil
import re
import typing
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import NoneType, UnionType

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper
from pymc_dapper.mechanisms import Mechanism
from tests.long_cases import one_in_three
from tests.valid_calls import MECHANISMS, OF_SEVERAL, STOPS, VALID, Reached, of_mechanism

PACKAGE = Path(pymc_dapper.__file__).parent

MALFORMED = [None, True, -1, 0, 1.5, np.nan, np.inf, "", "no", [], {}, 1j, object()]
MALFORMED += [np.array([]), np.array([np.nan, 1]), np.ma.masked_array([1, 2], [0, 1])]
MALFORMED += [[[1, 2], [3]], pt.vector("symbolic"), lambda: None]

# A mechanism derives from this one, and PyMC calls what its own classes have.
NOT_CALLED_BY_USERS = {
    "Mechanism": "is derived from",
    "action_of": "is called by walks through graphs, with an operation and its node",
    "follow_records": "is called by PyTensor's graph walk, with an operation and its node",
    "DiscreteGaussian": "is a distribution: PyMC takes its arguments apart",
    "DiscreteLaplace": "is a distribution: PyMC takes its arguments apart",
    "Tulap": "is a distribution: PyMC takes its arguments apart",
    "answers.Answer": "is returned",
    "answers.Summary": "is returned",
    "budget.Bound": "is a type",
    "budget.check_pure": "is called by mechanisms, with their names",
    "diagnostics.Acceptance": "is returned",
    "synthetic.Combined": "is returned",
    "statistics.Sensitivities": "is returned",
    "statistics.Sensitivity": "is returned",
    "statistics.Statistic": "is returned",
}
"""Public names that stand for no call of a user's, and why."""

EXTENSIONS = (
    "backend.",
    "conjugacy.",
    "counts.reading.",
    "interweaving.reading.",
    "reading.",
    "reference.",
    "plausibility.",
)
"""Parts for extensions of the package, and references: they check values when used."""

PROTOCOL = {
    "as_released",
    "check_released",
    "count_range",
    "following",
    "noise_logp",
    "noisy_range",
}
"""Methods that the package calls, with what was checked."""


def public_callables():
    """Every public function, class and method of mechanisms by its name within the package."""
    found = {}
    for module in [pymc_dapper, *public_modules()]:
        for name in module.__all__:
            value = getattr(module, name)
            if not callable(value) or (inspect.isclass(value) and issubclass(value, BaseException)):
                continue
            path = f"{module.__name__.removeprefix('pymc_dapper').removeprefix('.')}.{name}"
            path = path.removeprefix(".")
            known = next((old for old, each in found.items() if each is value), None)
            if known is None:
                found[path] = value
            elif path.count(".") < known.count("."):
                del found[known]
                found[path] = value
    for name, value in list(found.items()):
        if inspect.isclass(value) and issubclass(value, Mechanism) and value is not Mechanism:
            for method in public_methods(value):
                found[f"{name}.{method}"] = getattr(value, method)
    return {
        name: value
        for name, value in found.items()
        if name not in NOT_CALLED_BY_USERS and not name.startswith(EXTENSIONS)
    }


def public_modules():
    for info in pkgutil.walk_packages(pymc_dapper.__path__, "pymc_dapper."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            module = importlib.import_module(info.name)
            if hasattr(module, "__all__"):
                yield module


def public_methods(cls):
    return [
        name
        for name in dir(cls)
        if not name.startswith("_")
        and name not in PROTOCOL
        and (inspect.isroutine(inspect.getattr_static(cls, name)))
        and inspect.signature(getattr(cls, name)).parameters.keys() - {"self"}
    ]


CALLABLES = public_callables()


def valid_call(name):
    """The callable, and arguments that it takes."""
    cls, _, method = name.rpartition(".")
    if cls in MECHANISMS:
        calls = of_mechanism(cls)
        if method in calls:
            return getattr(MECHANISMS[cls][0], method), calls[method]
    elif name in VALID:
        return OF_SEVERAL.get(name, CALLABLES[name]), VALID[name]()
    pytest.fail(
        f"pymc_dapper.{name} is public, but malformed inputs aren't tried on it: add a valid call "
        "of it to tests/valid_calls.py"
    )


def parameters(function):
    """Parameters of a callable by name, with what they may be."""
    if inspect.isclass(function):
        function = function.__init__
    return {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        and name != "self"
    }


def is_of_type(value, annotation):
    """Whether a value is what an annotation says; None where the annotation doesn't decide."""
    if isinstance(annotation, typing.TypeAliasType):
        annotation = annotation.__value__
    if isinstance(annotation, UnionType) or typing.get_origin(annotation) is typing.Union:
        verdicts = [is_of_type(value, each) for each in typing.get_args(annotation)]
        return True if True in verdicts else None if None in verdicts else False
    if annotation in (None, NoneType):
        return value is None
    if annotation is bool:
        return isinstance(value, bool)
    if annotation is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if annotation is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and value == value
    if annotation is str:
        return isinstance(value, str)
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return isinstance(value, str) and value in typing.get_args(annotation)
    if origin is Callable:
        return callable(value)
    if origin is Mapping:
        return isinstance(value, Mapping)
    if annotation in (Mechanism, pm.Model) or (
        inspect.isclass(annotation) and annotation.__module__.startswith("pymc_dapper")
    ):
        return isinstance(value, annotation)
    return False if type(value) is object else None


def fault(function, arguments, name, parameter):
    """What is wrong with how an argument is taken; None if nothing is."""
    value = arguments[name]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pm.Model():
                function(**arguments)
    except (TypeError, ValueError, ImportError) as error:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        raised_by = trace.tb_frame.f_code.co_filename
        if not Path(raised_by).is_relative_to(PACKAGE):
            return f"{type(error).__name__} from {raised_by}: {error}"
        said = str(error)
        if re.search(rf"\b{name}\b", said) or (name in SAID_AS and re.search(SAID_AS[name], said)):
            return None
        return f"{type(error).__name__} doesn't name it: {error}"
    except Reached:
        pass
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(value, np.ma.MaskedArray):
        return "taken, though entries are masked"
    accepted = parameter.annotation is parameter.empty or is_of_type(value, parameter.annotation)
    if accepted is False and value is not parameter.default:
        return f"taken, though it isn't {parameter.annotation}"
    return None


SAID_AS = {
    "vars": "was given|variable",
    "clamp": "clamped",
    "rounding": "rounded",
    "dims": "dim",
    "statistic": "true values",
    "records": "variable",
    "counts": "variable",
    "integrate": "variable",
    "released": "release|answers",
    "var_names": "var names|parameters",
    "expression": "expression",
    "value": "value|known",
    "values": "release",
    "utility": "the study has no",
}
"""What a message may say instead of an argument's name."""


def stop(monkeypatch, name):
    """Replace the expensive part of a call by something that raises Reached."""

    def reached(*_, **__):
        raise Reached

    def reached_after(original):
        def call(*arguments, **options):
            original(*arguments, **options)
            raise Reached

        return call

    # Each call asks a model for the same one, which is the slowest part.
    start = cache(pm.Model.initial_point)
    monkeypatch.setattr(pm.Model, "initial_point", lambda model, seed=None: dict(start(model)))
    for path in STOPS.get(name, []):
        module, _, attribute = path.removeprefix("after ").partition(":")
        owner = importlib.import_module(f"pymc_dapper.{module}")
        *classes, attribute = attribute.split(".")
        for each in classes:
            owner = getattr(owner, each)
        after = path.startswith("after ")
        then = reached_after(getattr(owner, attribute)) if after else reached
        monkeypatch.setattr(owner, attribute, then)


@pytest.mark.parametrize("name", one_in_three(CALLABLES))
def test_every_argument_is_taken_or_refused_by_its_name(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    function, valid = valid_call(name)
    stop(monkeypatch, name)
    faults = []
    for parameter_name, parameter in parameters(function).items():
        for value in MALFORMED:
            arguments = {**valid, parameter_name: value}
            found = fault(function, arguments, parameter_name, parameter)
            if found:
                faults.append(f"{parameter_name}={value!r:.40}: {found[:300]}")
    assert not faults, f"{name}:\n" + "\n".join(faults)


@pytest.mark.parametrize("name", CALLABLES)
def test_what_malformed_inputs_stand_in_for_is_a_valid_call(name, monkeypatch):
    function, valid = valid_call(name)
    stop(monkeypatch, name)
    with pm.Model(), suppress(Reached):
        function(**valid)


@pytest.mark.parametrize(
    ("careless", "expected"),
    [
        (lambda k: k.real.imag, "AttributeError"),
        (lambda k: 1 // k, "ZeroDivisionError"),
        (lambda k: [][k], "IndexError"),
        (lambda k: int(k), "TypeError from|doesn't name it"),
        (lambda k: 3, "taken, though"),
    ],
)
def test_careless_functions_are_found_out(careless, expected):
    def annotated(k: int):
        return careless(k)

    parameter = inspect.signature(annotated).parameters["k"]
    found = [fault(annotated, {"k": value}, "k", parameter) for value in MALFORMED]
    assert any(x and re.search(expected, x) for x in found)


def test_a_public_function_without_a_valid_call_is_told():
    with pytest.raises(pytest.fail.Exception, match=r"add a valid call of it to tests/valid_calls"):
        valid_call("statistics.median")
