"""Graphs of every operation that is written as scalars and loops, and what they evaluate to."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from numba.extending import is_jitted
from pytensor.compile.mode import Mode
from pytensor.graph.fg import FunctionGraph
from pytensor.raise_op import Assert
from pytensor.tensor.basic import Join, split

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.backend.rewrites import rewritten
from pymc_dapper.one_function import scalars, writer
from pymc_dapper.one_function.linker import ONE_FUNCTION

RNG = np.random.default_rng(1)
VALUES = {
    "s": np.array(0.7),
    "n": np.array(2),
    "m": np.array(-1),
    "v": RNG.normal(size=5),
    "w": RNG.uniform(0.1, 0.9, size=3),
    "x": RNG.normal(size=(5, 3)),
    "wide": RNG.normal(size=(12, 20)),
    "cube": RNG.normal(size=(2, 3, 4)),
    "k": np.array([1, -1, 0, 1]),
    "kk": np.array([[0, 2], [-3, 1]]),
    "b": np.array([True, False, True, True, False]),
    "i": np.array([3, 0, -2, 7, 5]),
    "i8": np.array([100, -100, 3], dtype=np.int8),
    "u8": np.array([200, 1, 0], dtype=np.uint8),
    "f4": RNG.normal(size=3).astype(np.float32),
    "special": np.array([np.nan, np.inf, -np.inf, 0.0, -0.0]),
    "none": np.zeros((0, 3)),
    "nobody": np.zeros(0),
    "row": RNG.normal(size=(1, 3)),
    "square": RNG.normal(size=(3, 3)),
    "stack": RNG.normal(size=(2, 2, 3)),
}
STATIC = {"w", "row", "cube", "i8", "square", "stack"}
"""Those whose shape is known when the source is written; of the others, the number of axes is."""


def variables():
    """Inputs, by name."""
    found = {}
    for name, value in VALUES.items():
        shape = value.shape if name in STATIC else (None,) * value.ndim
        found[name] = pt.tensor(name, dtype=value.dtype.name, shape=shape)
    return found


def graphs(
    s, n, m, v, w, x, wide, cube, k, kk, b, i, i8, u8, f4, special, none, nobody, row, square, stack
):
    """Graphs, by name."""
    found = {}

    def add(name, *outputs):
        found[name] = list(outputs)

    unary = (
        "exp log1p sqrt sqr neg sign floor ceil sin cos tan arctan tanh sigmoid softplus expm1 log2"
    )
    for name in [
        *unary.split(),
        "gammaln",
        "erf",
        "erfc",
        "erfinv",
        "psi",
        "log1mexp",
        "abs",
        "gamma",
    ]:
        argument = w if name not in ("log1mexp",) else -w
        add(name, getattr(pt, name)(argument))
    for name in ("exp", "isnan", "isinf", "abs", "neg", "sign", "sigmoid", "softplus", "log1p"):
        add(f"{name} of special numbers", getattr(pt, name)(special))
    for name in ("lt", "gt", "le", "ge", "eq", "neq", "maximum", "minimum", "add", "mul", "sub"):
        add(f"{name} of special numbers", getattr(pt, name)(special, special[::-1]))
        add(f"{name} of small integers", getattr(pt, name)(i8, u8))
        add(f"{name} of mixed types", getattr(pt, name)(i8, f4), getattr(pt, name)(u8, w))
    for name in ("and_", "or_", "xor"):
        add(f"{name} of bools", getattr(pt, name)(b, ~b), getattr(pt, name)(i, i + 1))
    add("sums of bools", b + b, b * b, b.sum(), b.mean(), b.astype("float64") @ v, b.prod())
    add("integer division", i // 2, i // -3, i % 2, i % -3, i8 // 7, v // 0.3, v % 0.3, i / 2)
    add("division by nothing", special / 0.0, v / special, 1 / special)
    add(
        "powers",
        v**2,
        abs(v) ** 1.5,
        v**3,
        2.0**v,
        i**2,
        abs(v) ** -0.5,
        v ** pt.abs(i),
        special**0.0,
    )
    above = (w > 0.5).astype("float64")
    add("powers of small integers", w**i8, w**u8, w**above, 2.0**above)
    add(
        "casts",
        v.astype("int64"),
        i.astype("float64"),
        i.astype("int8"),
        v.astype("float32"),
        v.astype("bool"),
        b.astype("int64"),
        i.astype("uint8"),
        f4.astype("float64"),
        b * 2.5,
    )
    add(
        "switch",
        pt.switch(b, v, 0),
        pt.switch(v > 0, i, v),
        pt.switch(s > 0, v, -v),
        pt.switch(special > 0, special, 1.0),
        pt.switch(i, v, 2),
    )
    add("clip", pt.clip(v, -0.5, 0.5), pt.clip(i, 0, 4), pt.clip(special, -1, 1), pt.clip(v, -s, s))
    add(
        "constants",
        v + np.arange(5.0),
        v * np.array(2.0),
        v[:1] + np.inf,
        x + np.ones(3),
        x * np.array([1.0, 2, 3]),
        x + np.array([-0.0, 0.0, 0.0]),
        pt.constant(np.arange(6.0).reshape(2, 3)),
        pt.constant(2.5),
    )
    add(
        "broadcast",
        x + w,
        x + row,
        x * s,
        v[:, None] * w[None, :],
        x - x.mean(0),
        x - x.mean(1, keepdims=True),
        cube + w[:, None],
    )
    add(
        "transposed",
        x.T,
        x.T + v,
        cube.transpose(2, 0, 1),
        cube.transpose(1, 2, 0) * 2,
        x.T.sum(0),
        x.T.sum(1),
    )
    many, fewer = s * np.linspace(-1, 1, 40), s + np.linspace(-1, 1, 20)
    pairs, below = pt.exp(many)[:, None] * fewer, many[:, None] <= fewer
    add(
        "sums of all pairs",
        *(pairs.sum(0), pairs.sum(1), pairs.max(0), below.sum(0), below.T.sum(1), below.sum()),
        *((v[:, None] * fewer).sum(0), (v * fewer[:, None]).sum(0), pairs[:, None].sum((0, 1))),
        *((cube[..., None] * fewer).sum((0, 2)), (fewer[:, None, None] + x).sum(0)),
    )
    add(
        "axes",
        v[None],
        v[:, None, None],
        row[0],
        row.squeeze(),
        pt.expand_dims(x, 1),
        s[None],
        s[None, None],
    )
    for name, index in {
        "ahead": slice(1, 3),
        "back": slice(None, None, -1),
        "by 2": slice(None, None, 2),
        "by -2": slice(4, 0, -2),
        "from the end": slice(-3, -1),
        "empty": slice(3, 1),
        "too long": slice(2, 100),
        "too early": slice(-100, 2),
        "too long, back": slice(100, None, -3),
        "nothing, back": slice(0, 3, -1),
        "to the start": slice(2, None, -1),
    }.items():
        add(
            f"slice {name}",
            v[index],
            w[index],
            x[index, ::-1],
            x[:, index],
            cube[:, index, 1],
            nobody[index],
            i8[index],
        )
        add(
            f"set slice {name}",
            pt.set_subtensor(v[index], 1.5),
            pt.inc_subtensor(x[index], w),
            pt.set_subtensor(w[index], s),
            pt.inc_subtensor(x[:, index], 1),
        )
    add(
        "slices by variables",
        v[n:],
        v[:n],
        v[m:],
        v[:m],
        v[n:m],
        v[m:n],
        v[m:n:-1],
        v[n::2],
        x[n:, :m],
        v[-n:],
        w[n:],
        w[m::-1],
    )
    add(
        "indices",
        v[0],
        v[-1],
        v[n],
        v[m],
        x[n],
        x[:, m],
        x[n, m],
        cube[1, :, -1],
        w[n],
        k[n],
        v[k[0]],
        i[0],
        b[n],
    )
    add(
        "set indices",
        pt.set_subtensor(v[n], 3),
        pt.inc_subtensor(x[m], w),
        pt.set_subtensor(x[1, 2], s),
        pt.inc_subtensor(v[0], v[1]),
        pt.set_subtensor(i[n], 4),
        pt.inc_subtensor(i8[1], 100),
        pt.set_subtensor(b[0], np.array(False)),
    )
    add(
        "look up",
        w[k],
        x[k],
        x[:, k],
        cube[:, k],
        w[kk],
        x[kk],
        x[k, k],
        cube[0, k],
        cube[k, :, k] if False else cube[:, k, k],
        x[[0, 2, -1]],
        w[np.array([2, 0])],
        x[n, k],
        v[k[::-1]],
        w[k.astype("int8")],
        w[(k + 1) % 3],
        pt.exp(w)[k],
    )
    add(
        "look up apart",
        cube[np.array([0, 1]), :, np.array([1, 2])],
        cube[k[:2], 1:, k[:2]],
        cube[1, :, k],
    )
    add(
        "add up",
        pt.inc_subtensor(pt.zeros(3)[k], v[:4]),
        pt.inc_subtensor(w[k], 1.0),
        pt.set_subtensor(w[np.array([0, 2])], s),
        pt.inc_subtensor(x[k], w),
        pt.inc_subtensor(x[:, np.array([0, 0, 1])], 1),
        pt.inc_subtensor(x[k, k], s),
        pt.inc_subtensor(pt.zeros(4, dtype="int64")[k], 1),
    )
    add(
        "bincount",
        pt.bincount(abs(i), minlength=9),
        pt.bincount(abs(k), weights=v[:4], minlength=3),
    )
    shares, of_stack = (pt.special.softmax(y, axis=-1) for y in (square, stack))
    longer = pt.concatenate([square, -square.sum(-1, keepdims=True)], axis=-1)
    above_zero = 1 / (1 + pt.exp(-stack[0]))
    chances = pt.stack([1 - above_zero, above_zero], axis=-1)
    add("small tables, joined", chances, pt.log(chances)[k[:2], n], 1 / chances, chances[k[0]])
    add(
        "joined tables of rows",
        pt.concatenate([pt.exp(stack), pt.cos(pt.exp(stack[..., :1]))], axis=-1),
        pt.concatenate([shares, pt.log(shares[:1])], axis=0),
        pt.concatenate([shares, pt.log(shares[:, :1])], axis=1)[k, n],
    )
    add("small tables", shares, of_stack, pt.special.softmax(longer, axis=-1), shares.T, 2 * longer)
    add(
        "sums of small tables",
        *(each.sum(axis) for each in (shares, of_stack) for axis in (None, 0, 1, -1)),
        *(of_stack.sum((0, 2)), of_stack.max((1, 2)), pt.exp(shares.sum(-1)), shares.cumsum(1)),
        *(pt.log(shares).sum(-1)[k], (shares > s).all(-1), (shares > s).sum(-1, dtype="int8")),
        (square * i8).astype("int8").sum(-1),
    )
    add(
        "small tables, read",
        *(
            shares[k],
            shares[:, k],
            shares[k, k],
            shares[0, 1] + shares[n, 2],
            shares[1],
            shares[:, 1],
        ),
        *(of_stack[1, :, m], of_stack[k[:2]], shares - shares[k[0]], shares[::-1] * shares[:, :1]),
        *(shares.flatten(), of_stack.reshape((4, 3)), pt.concatenate([shares, square]) + shares[m]),
        pt.concatenate([of_stack, stack[:, :1]], axis=1),
        pt.set_subtensor(shares[n], w),
        pt.inc_subtensor(pt.ones((3, 3))[k], shares[0]),
    )
    order = pt.constant(np.arange(12).reshape(3, 4))
    small = order.astype("uint8")
    add("numbers in order", order, order[k, n], order[:, m], small[k] + i8[0], w[np.arange(3)][k])
    add("masks", v[b], x[b], pt.set_subtensor(v[b], 0.0))
    add(
        "reshape",
        x.reshape((15,)),
        x.reshape((3, 5)),
        cube.reshape((6, 4)),
        cube.reshape((4, 6)),
        v.reshape((5, 1)),
        v.reshape((1, 5, 1)),
        x.flatten(),
        x.T.reshape((-1,)),
        cube.reshape((n, -1)),
        w.reshape((3,)),
        s.reshape((1,)),
        row.reshape((3,)),
        pt.exp(x).reshape((5, 3, 1)),
        none.reshape((0,)),
        cube.reshape((2, 12))[:, ::5],
        v[:1].reshape(()),
    )
    flat = pt.exp(pt.concatenate([v, x.flatten(), wide.flatten(), cube.flatten()]))
    add(
        "flat and back",
        flat,
        flat[5:20].reshape((5, 3)),
        flat[20:-24].reshape((12, 20)),
        flat[20:][-24:].reshape((2, 3, 4)),
        flat[2:42].reshape((5, 8)).T,
        flat[1:81:2].reshape((5, 8)),
        flat[::-1][:40].reshape((5, 8)),
        wide.flatten()[40:80].reshape((2, 20)),
    )
    add(
        "alloc",
        pt.zeros(4),
        pt.ones((n, 3)),
        pt.full((2, n), s),
        pt.alloc(w, n, 3),
        pt.alloc(row, 4, 3),
        pt.zeros((0, 2)),
        pt.full((n,), np.array(True)),
        pt.alloc(w[:, None], n, 3, 2),
        pt.zeros_like(x),
        pt.ones_like(v) * 2,
        pt.alloc(np.int8(3), n),
    )
    add(
        "join",
        pt.concatenate([v, w]),
        pt.concatenate([x, row]),
        pt.concatenate([x, x[:, :1]], axis=1),
        pt.stack([s, s * 2, n]),
        pt.stack([v, v * 2]),
        pt.stack([v, v], axis=1),
        pt.stack([pt.exp(v), v * pt.exp(v), v.sum() + v], axis=1),
        2 * pt.concatenate([pt.exp(square), square[:, ::-1], i8[:, None]], axis=1),
        pt.concatenate([w, i8]),
        pt.concatenate([cube, cube], axis=-1),
        pt.concatenate([nobody, v]),
        pt.concatenate([v, w])[n],
        pt.stack([s, s * 2])[1],
        pt.concatenate([v, w]).sum(),
        pt.concatenate([w, w])[4],
        Join(0)(w, w + 1),
    )
    add("split", *split(v, [2, 3]), *split(x, [1, 2], axis=1))
    add(
        "split where lengths are known",
        *split(w, [1, 0, 2]),
        *split(cube, [1, 3], axis=-1),
        *(2 * each for each in split(pt.exp(square), [2, 1], axis=1)),
        *pt.grad((pt.concatenate([w[:, None], square], axis=1) ** 2).sum(), [w, square]),
    )
    add("cumulated", pt.cumsum(w), pt.cumprod(w)[1:], pt.cumsum(pt.exp(w)).sum(), pt.cumsum(w)[n])
    add(
        "cumulated along an axis",
        *(each.cumsum(axis) for each in (x, pt.exp(square), of_stack) for axis in (0, -1)),
        *(cube.cumprod(1), cube.cumsum(), v.cumsum(), i.cumsum(), pt.cumsum(none, axis=1)),
        *(pt.cumsum(b), pt.cumsum(nobody), x.cumsum(1)[:, n], i.cumprod()),
    )
    lower, upper = (part(square) + 3 * pt.eye(3) for part in (pt.tril, pt.triu))
    add(
        "triangular",
        pt.linalg.solve_triangular(lower, w, lower=True, b_ndim=1),
        pt.linalg.solve_triangular(upper, square, lower=False, b_ndim=2),
        pt.linalg.solve_triangular(lower, x.T, lower=True, b_ndim=2),
        pt.linalg.solve_triangular(lower, none.T, lower=True, b_ndim=2),
        pt.linalg.solve_triangular(square, x.T, lower=True, b_ndim=2),
        pt.linalg.solve_triangular(lower[:1, :1], row, lower=True, b_ndim=2),
        pt.linalg.solve_triangular(pt.tril(square, -1), w, lower=True, b_ndim=1),
        pt.linalg.solve_triangular(lower[None], x[:, :, None], lower=True, b_ndim=2),
        pt.linalg.solve_triangular(lower[None] * w[:, None, None], row.T[None], lower=True),
        pt.linalg.solve_triangular(lower * v[:, None, None], w, lower=True, b_ndim=1),
        *pt.grad(pt.linalg.solve_triangular(lower, w, lower=True, b_ndim=1).sum(), [w, square]),
    )
    add("shapes", x.shape, x.shape[0], v.shape[0] + n, x.size, cube.shape, pt.exp(x).shape[1])
    add(
        "arange",
        pt.arange(4),
        pt.arange(n),
        pt.arange(1, v.shape[0]),
        pt.arange(2, 11, 3),
        pt.arange(4) * s,
        w[pt.arange(n)],
        pt.arange(3.0),
    )
    add(
        "eye",
        pt.eye(3),
        square * pt.eye(3),
        pt.diag(w),
        pt.diagonal(square),
        pt.diag(square),
        pt.tril(square),
    )
    add(
        "diagonals",
        *(pt.diagonal(square * w[:, None, None], 0, *axes) for axes in ((1, 2), (0, 2), (0, 1))),
        pt.diagonal(pt.stack([cube[:, 0, :2], cube[:, 1, 2:], cube[:, 2, 1:3]]), 0, 1, 2).sum(),
    )
    for name in ("sum", "prod", "max", "min"):
        for axis in (None, 0, 1, (0, 1)):
            add(
                f"{name} over {axis}",
                *(
                    getattr(pt, name)(a, axis=axis)
                    for a in (x, pt.exp(x), square, x.T, wide, row, wide.T)
                ),
            )
        add(
            f"{name} of a cube",
            *(getattr(pt, name)(cube, axis=axis) for axis in ((0, 2), 1, 2, 0, (1, 2))),
        )
        add(
            f"{name} of integers",
            getattr(pt, name)(i),
            getattr(pt, name)(i8),
            getattr(pt, name)(u8),
            getattr(pt, name)(f4),
        )
    add(
        "max of special numbers",
        pt.max(special),
        pt.min(special),
        pt.max(special[3:]),
        pt.max(special[1:]),
    )
    add(
        "sums of nothing",
        nobody.sum(),
        nobody.prod(),
        none.sum(0),
        none.sum(1),
        pt.exp(nobody),
        none + w,
        none @ w,
        pt.all(nobody > 0),
        w @ none.T,
        none.T @ none,
        pt.cumsum(w[:0]),
    )
    add("all", pt.all(b), pt.any(b), pt.all(x > 0, axis=0), pt.any(x > 0, axis=1), pt.all(v > -9))
    add(
        "means",
        x.mean(),
        x.var(0),
        v.std(),
        x.mean(1),
        i.mean(),
        pt.cumsum(v),
        pt.argmax(v),
        pt.sort(v),
        pt.logsumexp(v),
        pt.special.softmax(x, axis=1),
        pt.special.log_softmax(v),
    )
    add(
        "dot",
        v @ v,
        x @ w,
        v @ x,
        x.T @ x,
        x @ x.T,
        wide @ wide.T,
        wide.T @ wide,
        wide @ np.ones(20),
        np.ones(12) @ wide,
        wide.T @ wide[:, 0],
        wide[0] @ wide.T,
        square @ square,
        x @ square,
        pt.exp(wide) @ wide.T,
        wide[::2] @ wide.T,
        i @ i,
        kk @ kk,
        f4 @ f4,
        i @ v,
        pt.dot(wide.T[:3], wide[:, :2]),
    )
    add("batches", cube @ np.ones((2, 4, 3)), pt.einsum("ij,j->i", x, w))
    add("outer", pt.linalg.outer(v, w) if hasattr(pt.linalg, "outer") else v[:, None] @ w[None])
    add(
        "quadratic",
        w @ square @ w,
        pt.linalg.cholesky(square @ square.T + pt.eye(3)),
        pt.linalg.solve_triangular(pt.tril(square) + pt.eye(3) * 3, w, lower=True),
    )
    add("inputs and outputs", v, x, v, s, v * 1, x[:], v[::1], n, b)
    add("alike", pt.exp(v), pt.exp(v), pt.exp(v) + 1, (pt.exp(v) * 2).sum())
    add(
        "checks",
        Assert("positive")(v, s > 0),
        Assert("all")(pt.exp(x), pt.all(x < 100), s < 1),
        pt.specify_shape(v, (5,)),
        pt.specify_shape(x, (None, 3)),
    )
    add(
        "used often",
        *(lambda e: [e.sum(), e.sum(0), e * 2, e.max(1), e @ w, e[k], e.T])(
            pt.exp(x) / (1 + pt.exp(x))
        ),
    )
    add(
        "gradient",
        *pt.grad(
            (pt.log1p(pt.exp(x @ w)) - v * (x @ w)).sum() + (w**2).sum() + pt.gammaln(w).sum(),
            [w, x],
        ),
    )
    add(
        "gradient of look-ups",
        *pt.grad(
            (w[k] * v[:4]).sum()
            + pt.max(x)
            + x[n, m]
            + pt.prod(w)
            + pt.concatenate([w, v])[2:6].sum(),
            [w, v, x],
        ),
    )
    add(
        "standardised",
        (v - v.mean()) / v.std(),
        pt.exp(v - pt.logsumexp(v)),
        x / x.sum(1, keepdims=True),
        (x.T / x.sum(1)).T,
    )
    return found


PERFORMED = {}
"""PyTensor's functions for numba, each with what evaluates its operation in Python."""


def _noting(make):
    def noted(op, node):
        def performed(*inputs):
            storage = [[None] for _ in node.outputs]
            op.perform(node, list(inputs), storage)
            results = [each[0] for each in storage]
            return results if len(results) > 1 else results[0]

        function, key = make(op, node=node)
        PERFORMED[function] = performed
        return function, key

    return noted


def written(graph):
    """Write a graph, and note what its functions of PyTensor's do."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (writer, "numba_funcify_ensure_cache"),
            (scalars, "numba_funcify_and_cache_key"),
        ):
            patch.setattr(module, name, _noting(getattr(module, name)))
        return writer.write(graph, "one_function")


def as_python(text):
    """Make a function in Python of what was written."""
    names = {name: in_python(x, PERFORMED) if is_jitted(x) else x for name, x in text.names.items()}
    exec(text.source, names)
    return names["one_function"]


def values_of(text, inputs, given):
    """Evaluate source in Python."""
    with np.errstate(all="ignore"):
        return as_python(text)(*[given[x.name] for x in inputs])


def expected(inputs, outputs):
    """Evaluate by PyTensor's operations in Python, none of them rewritten."""
    function = pytensor.function(
        inputs, outputs, mode=Mode("py", None), on_unused_input="ignore", accept_inplace=True
    )
    with np.errstate(all="ignore"):
        return function(*[VALUES[x.name].copy() for x in inputs])


def as_written(inputs, outputs, rewrite):
    """Write a graph, rewritten first or not."""
    graph = FunctionGraph(inputs, outputs, clone=True)
    if rewrite:
        graph = rewritten(inputs, outputs, ONE_FUNCTION)
    return written(graph)


def close(mine, theirs):
    """Whether arrays agree in type, shape and values, up to the order of summation."""
    if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
        return False
    rtol = 2e-6 if mine.dtype == np.float32 else 1e-11
    return np.allclose(mine, theirs, rtol=rtol, atol=1e-13, equal_nan=True)
