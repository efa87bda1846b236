"""Moves of people among the cells of blocks.

A table counts people, who have no names. The ratios of moves are worked out as if they had: a
move picks some people at random. The prior of a person's cell, given the others of the group, is
the group's composition (Polya's urn).

- `recast`: people of a group move between two of its cells, and stay in their blocks. Their number
  is drawn by the prior and the noise of the larger areas. The noise of their blocks decides.
- `swap`: two people change places, so that larger areas don't change. This is done where a total
  between their blocks is known. Elsewhere the other moves do as much, and cost less.
- `give`: people move to another block and keep their cells. Blocks are drawn evenly, or by size.
  The number of people is drawn by the prior and the noise of both totals. The noise of the other
  classes decides.
- `resize`: people come from outside of the tree, or go there.
"""

import math

import numpy as np
from numba import njit

from pymc_dapper.counts.trees.weights import OF_TABLE, log_prior
from pymc_dapper.kernels.arrays import int64
from pymc_dapper.table_trees.layout import Fixed, Moves, State, Tables

RECAST, SWAP, GIVE, RESIZE = range(4)
"""The moves."""
WINDOW = 32
"""Cells of a group exchange fewer people than this at once."""
REACH = 64
"""Blocks give each other fewer people than this at once."""
SCALES = 7
"""Up to 2**(SCALES - 1) people come or go at once."""
ONE = int64.py_func(1)
"""One person."""
OUTSIDE = int64.py_func(-1)
"""No block, or no cell."""
EVENLY, BY_SIZE = int64.py_func(0), int64.py_func(1)
"""How two blocks are drawn."""
# They are of type int64, as all numbers below: numba compiles a function anew for 1, -1 and int16.


@njit
def add(tables: Tables, row: int, cell: int, n: int) -> None:
    """Add people to a cell, or take them away."""
    before = tables.counts[row, cell]
    tables.counts[row, cell] = before + n
    tables.total[row] += n
    if before == 0 and n != 0:
        tables.cells[row, tables.occupied[row]] = cell
        tables.occupied[row] += 1
    elif n != 0 and before + n == 0:
        k, last = 0, tables.occupied[row] - 1
        while tables.cells[row, k] != cell:
            k += 1
        tables.cells[row, k] = tables.cells[row, last]
        tables.occupied[row] = last


@njit
def pick(tables: Tables, row: int, u: float) -> int:
    """Return the cell of the person of a row with number u, which is below the total."""
    left = int(u)
    for k in range(tables.occupied[row] - 1):
        cell = int64(tables.cells[row, k])
        left -= tables.counts[row, cell]
        if left < 0:
            return cell
    return int64(tables.cells[row, tables.occupied[row] - 1])


@njit
def of_prior(fixed: Fixed, g: int, u: float) -> int:
    """Return the cell whose share of a group's prior holds u, which is below the prior's sum."""
    cell = min(np.searchsorted(fixed.cumulative[g], u, side="right"), fixed.alpha.shape[1] - 1)
    while fixed.alpha[g, cell] == 0:  # by rounding
        cell -= 1
    return cell


@njit
def newcomer(rng: np.random.Generator, fixed: Fixed, groups: Tables, g: int) -> int:
    """Draw the cell of one more person of a group, given all others (Polya's urn)."""
    n = groups.total[g]
    u = rng.random() * (n + fixed.cumulative[g, -1])
    return pick(groups, g, u) if u < n else of_prior(fixed, g, u - n)


@njit
def log_total(fixed: Fixed, b: int, n: int) -> float:
    """Log-probability of a block's total."""
    if n < 0:
        return -np.inf
    if fixed.prior[b] != OF_TABLE:
        return log_prior(fixed, b, n)  # type: ignore[arg-type]  # has what it reads
    table = int(fixed.first[b])
    at = fixed.table_starts[table] + n - fixed.table_lowest[table]
    if n < fixed.table_lowest[table] or at >= fixed.table_starts[table + 1]:
        return -np.inf
    return fixed.tables[at]


@njit
def slope(fixed: Fixed, residual: np.ndarray, a: int, c1: int, c2: int) -> tuple[float, float]:
    """Return b and c of the noise's log-ratio b n - c n**2, if n people of an area change cells.

    A cell of -1 is outside of the area.
    """
    b = c = 0.0
    for q in range(fixed.classes.shape[1]):
        at = fixed.base[a, q]
        one = fixed.classes[c1, q] if c1 >= 0 else -1
        other = fixed.classes[c2, q] if c2 >= 0 else -1
        if at < 0 or one == other:
            continue
        if one >= 0 and not math.isnan(residual[at + one]):
            b -= 2 * fixed.weight[a, q] * residual[at + one]
            c += fixed.weight[a, q]
        if other >= 0 and not math.isnan(residual[at + other]):
            b += 2 * fixed.weight[a, q] * residual[at + other]
            c += fixed.weight[a, q]
    return b, c


@njit
def shift(fixed: Fixed, residual: np.ndarray, a: int, c1: int, c2: int, n: int) -> float:
    """Move n people of an area between cells; return the noise's log-ratio."""
    b, c = slope(fixed, residual, a, c1, c2)
    for q in range(fixed.classes.shape[1]):
        at = fixed.base[a, q]
        one = fixed.classes[c1, q] if c1 >= 0 else -1
        other = fixed.classes[c2, q] if c2 >= 0 else -1
        if at >= 0 and one != other:
            if one >= 0:
                residual[at + one] += n
            if other >= 0:
                residual[at + other] -= n
    return n * (b - c * n)


@njit
def move(fixed: Fixed, residual: np.ndarray, b1: int, b2: int, c: int, n: int) -> float:
    """Move n people of a cell to another block; return the noise's log-ratio.

    A block of -1 is outside of the tree; n below 0 takes a move back.
    """
    gain = 0.0
    a1 = fixed.leaf[b1] if b1 >= 0 else -1
    a2 = fixed.leaf[b2] if b2 >= 0 else -1
    while a1 != a2:
        if a2 < 0 or (a1 >= 0 and fixed.depth[a1] >= fixed.depth[a2]):
            gain += -np.inf if fixed.exact[a1] else 0.0
            gain += shift(fixed, residual, a1, c, OUTSIDE, n)
            a1 = fixed.parent[a1]
        else:
            gain += -np.inf if fixed.exact[a2] else 0.0
            gain += shift(fixed, residual, a2, OUTSIDE, c, n)
            a2 = fixed.parent[a2]
    return gain


@njit
def accept(rng: np.random.Generator, log_ratio: float) -> bool:
    """Decide on a proposal by its log-ratio."""
    return log_ratio >= 0 or rng.random() < math.exp(log_ratio)


@njit
def any_cell(rng: np.random.Generator, fixed: Fixed, g: int, cell: int) -> int:
    """Draw a cell by the prior, or from a small class that a cell belongs to."""
    q = int(rng.random() * 2 * fixed.kin.shape[0])
    if q < fixed.kin.shape[0]:
        begin, end = fixed.kin_begin[q, cell], fixed.kin_end[q, cell]
        return fixed.kin[q, begin + int(rng.random() * (end - begin))] if begin < end else cell
    return of_prior(fixed, g, rng.random() * fixed.cumulative[g, -1])


@njit
def place(rng: np.random.Generator, logs: np.ndarray) -> int:
    """Draw an index by the logarithms of its weights, which are overwritten."""
    top, total = logs.max(), 0.0
    for k in range(logs.size):
        total += math.exp(logs[k] - top)
        logs[k] = total
    return min(int(np.searchsorted(logs, rng.random() * total, side="right")), logs.size - 1)


@njit
def how_many(rng: np.random.Generator, fixed: Fixed, state: State, g: int, c1: int, c2: int) -> int:
    """Draw how many people of a group move from a cell to another, as if blocks had no noise.

    The number lies in a window of WINDOW numbers, which holds 0 at a random place.
    """
    groups, above = state.groups, fixed.together[g]
    n1, n2 = groups.counts[g, c1], groups.counts[g, c2]
    first = -int(rng.random() * WINDOW)
    low, high = max(first, -n2), min(first + WINDOW - 1, n1)
    if low == high:
        return 0
    b = c = 0.0
    while above >= 0:
        more = slope(fixed, state.residual, above, c1, c2)
        b, c = b + more[0], c + more[1]
        above = fixed.parent[above]
    logs, now = np.full(high - low + 1, low * (b - c * low)), 0.0
    for n in range(low, high):
        now += math.log((n1 - n) * (n2 + n + fixed.alpha[g, c2]))
        now -= math.log((n2 + n + 1) * (n1 - n - 1 + fixed.alpha[g, c1]))
        logs[n + 1 - low] = now + (n + 1) * (b - c * (n + 1))
    return low + place(rng, logs)


@njit
def recast(rng: np.random.Generator, fixed: Fixed, state: State, g: int, c1: int) -> int:
    """Propose that people of a group move between two cells, and stay in their blocks.

    The prior and the noise of larger areas determine the law of their number. The noise of their
    blocks decides. Returned is 0 if nobody would move, 1 if the blocks refuse, 2 if they accept.
    """
    people, groups, top = state.people, state.groups, fixed.together[g]
    c2 = any_cell(rng, fixed, g, c1)
    if c1 == c2 or fixed.alpha[g, c1] == 0 or fixed.alpha[g, c2] == 0:
        return 0
    n = how_many(rng, fixed, state, g, c1, c2)
    if n == 0:
        return 0
    if n < 0:
        n, c1, c2 = -n, c2, c1
    blocks, gain = np.empty(n, dtype=np.int64), 0.0
    for k in range(n):
        left, b = int(rng.random() * (groups.counts[g, c1] - k)), fixed.begin[top]
        while left >= people.counts[b, c1]:
            left -= people.counts[b, c1]
            b += 1
        gain += between(fixed, state, b, c1, c2, ONE, top)
        blocks[k] = b
    if not accept(rng, gain):
        for k in range(n):
            between(fixed, state, blocks[k], c1, c2, -ONE, top)
        return 1
    add(groups, g, c1, -n)
    add(groups, g, c2, n)
    while top >= 0:
        shift(fixed, state.residual, top, c1, c2, n)
        top = fixed.parent[top]
    return 2


@njit
def between(fixed: Fixed, state: State, b: int, c1: int, c2: int, n: int, top: int) -> float:
    """Move n people of a block to another cell; return the log-ratio of noise below area top."""
    add(state.people, b, c1, -n)
    add(state.people, b, c2, n)
    gain, a = 0.0, fixed.leaf[b]
    while a != top:
        gain += shift(fixed, state.residual, a, c1, c2, n)
        a = fixed.parent[a]
    return gain


@njit
def swap(rng: np.random.Generator, fixed: Fixed, state: State, b1: int, b2: int, top: int) -> bool:
    """Propose that a person of each of two blocks, within an area, changes places."""
    people, groups, g1, g2 = state.people, state.groups, fixed.group[b1], fixed.group[b2]
    if b1 == b2 or people.total[b2] == 0:
        return False
    c1 = pick(people, b1, rng.random() * people.total[b1])
    c2 = pick(people, b2, rng.random() * people.total[b2])
    if c1 == c2:
        return False
    gain = 0.0
    if g1 != g2:
        for g, gone, come in ((g1, c1, c2), (g2, c2, c1)):
            add(groups, g, gone, -ONE)
            gain += log_urn(fixed, groups, g, come, ONE) - log_urn(fixed, groups, g, gone, ONE)
            add(groups, g, gone, ONE)
        if gain == -np.inf:
            return False
    gain += between(fixed, state, b1, c1, c2, ONE, top)
    gain += between(fixed, state, b2, c2, c1, ONE, top)
    if not accept(rng, gain):
        between(fixed, state, b1, c1, c2, -ONE, top)
        between(fixed, state, b2, c2, c1, -ONE, top)
        return False
    add(groups, g1, c1, -ONE)
    add(groups, g1, c2, ONE)
    add(groups, g2, c2, -ONE)
    add(groups, g2, c1, ONE)
    return True


@njit
def take(rng: np.random.Generator, people: Tables, b: int, n: int) -> None:
    """Take n people of a block, at random, into the last row (see :class:`Tables`)."""
    hand = people.total.size - 1
    for _ in range(n):
        c = pick(people, b, rng.random() * people.total[b])
        add(people, b, c, -ONE)
        add(people, hand, c, ONE)


@njit
def put(people: Tables, row: int) -> None:
    """Put all people of the last row into another one, or outside of the tree if that is -1."""
    hand = people.total.size - 1
    while people.occupied[hand]:
        c = int64(people.cells[hand, people.occupied[hand] - 1])
        n = int64(people.counts[hand, c])
        if row >= 0:
            add(people, row, c, n)
        add(people, hand, c, -n)


@njit
def log_urn(fixed: Fixed, groups: Tables, g: int, c: int, n: int) -> float:
    """Log of an urn's factor for a cell with n people more."""
    alpha = fixed.alpha[g, c]
    if alpha == 0:
        return -np.inf
    now = groups.counts[g, c] + alpha
    return math.log(now) if n == 1 else math.lgamma(now + n) - math.lgamma(now)


@njit
def noise_of_total(fixed: Fixed, b: int, n: int) -> float:
    """Return the noise's log-density of a block's total, of all queries that count all cells."""
    return -fixed.precision[b] * (n - fixed.middle[b]) ** 2


@njit
def to_give(
    rng: np.random.Generator, fixed: Fixed, totals: np.ndarray, b1: int, b2: int, by_size: int
) -> int:
    """Draw how many people a block gives to another, as if only totals were known.

    The number lies in a window of REACH numbers, which holds 0 at a random place.
    """
    n1, n2, first = totals[b1], totals[b2], -int(rng.random() * REACH)
    low, high = max(first, by_size - n2), min(first + REACH - 1, n1 - by_size)
    logs = np.zeros(high - low + 1)
    for n in range(low, high + 1):
        logs[n - low] = log_total(fixed, b1, n1 - n) + log_total(fixed, b2, n2 + n)
        logs[n - low] += noise_of_total(fixed, b1, n1 - n) + noise_of_total(fixed, b2, n2 + n)
        if by_size:
            logs[n - low] += math.log((n1 - n) * (n2 + n))
    return low + place(rng, logs)


@njit
def give(
    rng: np.random.Generator, fixed: Fixed, state: State, b1: int, b2: int, by_size: int
) -> bool:
    """Propose that people of one of two blocks move to the other, and keep their cells.

    ``by_size`` is BY_SIZE if both blocks were drawn in proportion to their people, else EVENLY.
    """
    people, groups, residual = state.people, state.groups, state.residual
    n = to_give(rng, fixed, people.total, b1, b2, by_size) if b1 != b2 else 0
    if n == 0:
        return False
    if n < 0:
        n, b1, b2 = -n, b2, b1
    g1, g2, n1, n2 = fixed.group[b1], fixed.group[b2], people.total[b1], people.total[b2]
    gain = noise_of_total(fixed, b1, n1) - noise_of_total(fixed, b1, n1 - n)
    gain += noise_of_total(fixed, b2, n2) - noise_of_total(fixed, b2, n2 + n)
    hand = people.total.size - 1
    take(rng, people, b1, n)
    if g1 != g2:
        one, other = groups.total[g1] - n, groups.total[g2]
        one, other = one + fixed.cumulative[g1, -1], other + fixed.cumulative[g2, -1]
        gain += math.lgamma(one + n) - math.lgamma(one)
        gain -= math.lgamma(other + n) - math.lgamma(other)
    for k in range(people.occupied[hand]):
        c = int64(people.cells[hand, k])
        m = int64(people.counts[hand, c])
        if g1 != g2:
            add(groups, g1, c, -m)
            gain += log_urn(fixed, groups, g2, c, m) - log_urn(fixed, groups, g1, c, m)
            add(groups, g2, c, m)
        gain += move(fixed, residual, b1, b2, c, m)
    if accept(rng, gain):
        put(people, b2)
        return True
    for k in range(people.occupied[hand]):
        c = int64(people.cells[hand, k])
        m = int64(people.counts[hand, c])
        add(groups, g1, c, m)
        add(groups, g2, c, -m)
        move(fixed, residual, b1, b2, c, -m)
    put(people, b1)
    return False


@njit
def resize(rng: np.random.Generator, fixed: Fixed, state: State, b: int, n: int) -> bool:
    """Propose that n people come from outside of the tree, or that -n go."""
    people, groups, g = state.people, state.groups, fixed.group[b]
    before, hand = people.total[b], people.total.size - 1
    gain = log_total(fixed, b, before + n)
    if gain == -np.inf:
        return False
    gain -= log_total(fixed, b, before)
    if n < 0:
        take(rng, people, b, -n)
    else:
        for _ in range(n):
            c = newcomer(rng, fixed, groups, g)
            add(groups, g, c, ONE)
            add(people, hand, c, ONE)
    sign = 1 if n > 0 else -1
    for k in range(people.occupied[hand]):
        c = int64(people.cells[hand, k])
        m = sign * int64(people.counts[hand, c])
        gain += move(fixed, state.residual, OUTSIDE, b, c, m)
        if n < 0:
            add(groups, g, c, m)
    accepted = accept(rng, gain)
    if not accepted:
        for k in range(people.occupied[hand]):
            c = int64(people.cells[hand, k])
            m = sign * int64(people.counts[hand, c])
            move(fixed, state.residual, OUTSIDE, b, c, -m)
            add(groups, g, c, -m)
    put(people, b if accepted == (n > 0) else OUTSIDE)
    return accepted


@njit
def within(rng: np.random.Generator, fixed: Fixed, area: int) -> int:
    """Draw one of the areas around an area."""
    above = fixed.depth[area]
    for _ in range(1 + int(rng.random() * above) if above else 0):
        area = fixed.parent[area]
    return area


@njit
def of_person(rng: np.random.Generator, fixed: Fixed, state: State, g: int) -> int:
    """Draw the block of a person of a group that has people."""
    b, left = fixed.begin[fixed.together[g]], int(rng.random() * state.groups.total[g])
    while left >= state.people.total[b]:
        left -= state.people.total[b]
        b += 1
    return b


@njit
def block_of(rng: np.random.Generator, fixed: Fixed, area: int) -> int:
    """Draw a block of an area."""
    return fixed.begin[area] + int(rng.random() * (fixed.end[area] - fixed.begin[area]))


@njit
def sweep(
    rng: np.random.Generator,
    fixed: Fixed,
    state: State,
    visits: int,
    moves: Moves,
    made: np.ndarray,
) -> None:
    """Go through all blocks.

    Parameters
    ----------
    rng : Generator
        Is advanced.
    fixed, state
        The state is changed.
    visits : int
        How often the total of each block is proposed to change, by each kind of moves.
    moves : Moves
        Which of them are made.
    made : ndarray of int64, shape (4, 2)
        How many were proposed and accepted: is added to.
    """
    for g in range(fixed.together.size):
        for _ in range(2 * state.groups.total[g] if moves.on[RECAST] else 0):
            how = recast(rng, fixed, state, g, int(rng.random() * fixed.alpha.shape[1]))
            made[RECAST, 0] += how > 0
            made[RECAST, 1] += how > 1
        area, n = fixed.together[g], state.groups.total[g]
        is_open = moves.on[GIVE] and n > 0 and fixed.end[area] > fixed.begin[area] + 1
        for _ in range(visits * (fixed.end[area] - fixed.begin[area]) if is_open else 0):
            one, other = of_person(rng, fixed, state, g), of_person(rng, fixed, state, g)
            made[GIVE, 0] += 1
            made[GIVE, 1] += give(rng, fixed, state, one, other, BY_SIZE)
    for b in range(fixed.leaf.size):
        # The number of swaps stays the same, since swaps don't change totals.
        is_shut = moves.on[SWAP] and fixed.depth[moves.lid[b]] > 0
        for _ in range((state.people.total[b] + 1) // 2 if is_shut else 0):
            area = within(rng, fixed, moves.lid[b])
            made[SWAP, 0] += 1
            made[SWAP, 1] += swap(rng, fixed, state, b, block_of(rng, fixed, area), area)
        for _ in range(0 if fixed.exact[fixed.leaf[b]] else visits):
            if moves.on[GIVE]:
                other = block_of(rng, fixed, within(rng, fixed, fixed.leaf[b]))
                made[GIVE, 0] += 1
                made[GIVE, 1] += give(rng, fixed, state, b, other, EVENLY)
            if moves.on[RESIZE]:
                n = 1 + int(rng.random() * (1 << int(rng.random() * SCALES)))
                made[RESIZE, 0] += 1
                made[RESIZE, 1] += resize(rng, fixed, state, b, n if rng.random() < 0.5 else -n)


@njit
def settle(
    fixed: Fixed, state: State, blocks: np.ndarray, cells: np.ndarray, n: np.ndarray
) -> None:
    """Put people into an empty tree: n[k] into cell cells[k] of block blocks[k]."""
    for k in range(blocks.size):
        add(state.people, blocks[k], cells[k], n[k])
        add(state.groups, fixed.group[blocks[k]], cells[k], n[k])
        move(fixed, state.residual, OUTSIDE, blocks[k], cells[k], n[k])


@njit
def tally(
    fixed: Fixed, people: Tables, rows: np.ndarray, classes: np.ndarray, out: np.ndarray
) -> None:
    """Count people of areas by class.

    Parameters
    ----------
    fixed : Fixed
        What stays.
    people : Tables
        The blocks' tables.
    rows : ndarray of int64, shape (areas,)
        The row of ``out`` for each area, -1 for none.
    classes : ndarray of int64, shape (cells,)
        The class of each cell, -1 for none.
    out : ndarray of int64, shape (rows, classes)
        Is written.
    """
    out[:] = 0
    for b in range(fixed.leaf.size):
        for k in range(people.occupied[b]):
            c = people.cells[b, k]
            if classes[c] < 0:
                continue
            a = fixed.leaf[b]
            while a >= 0:
                if rows[a] >= 0:
                    out[rows[a], classes[c]] += people.counts[b, c]
                a = fixed.parent[a]
