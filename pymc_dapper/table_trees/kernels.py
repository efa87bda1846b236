"""Moves of people among the cells of blocks.

People have no names: a table counts them. But all ratios are those of named people, of whom some
are picked at random. Given the others of the group, the prior of a person's cell is the group's
composition (Polya's urn). So moves that pick people at random and draw new cells from the urn are
decided on by the noise, and by the prior of the totals of blocks.
"""

import math

import numpy as np
from numba import njit

from pymc_dapper.counts.trees.weights import OF_TABLE, log_prior
from pymc_dapper.table_trees.layout import Fixed, State, Tables

RELABEL, SWAP, GIVE, TRADE, RESIZE, RECAST = range(6)
"""The moves."""
RARE = 2
"""How often rare cells are looked at for each person in a group."""
SCALES = 7
"""Up to 2**(SCALES - 1) people move at once, and now and then any number."""


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
    """Return the cell of the person at u, below the total."""
    left = int(u)
    for k in range(tables.occupied[row] - 1):
        cell = tables.cells[row, k]
        left -= tables.counts[row, cell]
        if left < 0:
            return cell
    return tables.cells[row, tables.occupied[row] - 1]


@njit
def newcomer(rng: np.random.Generator, fixed: Fixed, groups: Tables, g: int) -> int:
    """Draw the cell of one more person of a group, by the urn."""
    n, mass = groups.total[g], fixed.cumulative[g, -1]
    u = rng.random() * (n + mass)
    if u < n:
        return pick(groups, g, u)
    cell = min(np.searchsorted(fixed.cumulative[g], u - n, side="right"), fixed.alpha.shape[1] - 1)
    while fixed.alpha[g, cell] == 0:  # by rounding
        cell -= 1
    return cell


@njit
def relative(rng: np.random.Generator, fixed: Fixed, groups: Tables, g: int, cell: int) -> int:
    """Draw the cell of one more person of a group, by the urn; or within a class of a cell's.

    Either way, the urn decides between two cells as it would by itself.
    """
    q = int(rng.random() * 2 * fixed.kin.shape[0])
    if q >= fixed.kin.shape[0]:
        return newcomer(rng, fixed, groups, g)
    begin, end = fixed.kin_begin[q, cell], fixed.kin_end[q, cell]
    left = 0.0
    for k in range(begin, end):
        left += groups.counts[g, fixed.kin[q, k]] + fixed.alpha[g, fixed.kin[q, k]]
    left *= rng.random()
    found = cell
    for k in range(begin, end):
        weight = groups.counts[g, fixed.kin[q, k]] + fixed.alpha[g, fixed.kin[q, k]]
        if weight > 0:
            found = fixed.kin[q, k]
            left -= weight
            if left < 0:
                break
    return found


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
def shift(fixed: Fixed, residual: np.ndarray, a: int, c1: int, c2: int, n: int) -> float:
    """Move n people of an area between cells, -1 for elsewhere; return the noise's log-ratio."""
    gain = 0.0
    for q in range(fixed.classes.shape[0]):
        at = fixed.base[a, q]
        if at < 0:
            continue
        one = fixed.classes[q, c1] if c1 >= 0 else -1
        other = fixed.classes[q, c2] if c2 >= 0 else -1
        if one == other:
            continue
        if one >= 0:
            r = residual[at + one]
            if not math.isnan(r):
                residual[at + one] = r + n
                gain -= fixed.weight[a, q] * n * (2 * r + n)
        if other >= 0:
            r = residual[at + other]
            if not math.isnan(r):
                residual[at + other] = r - n
                gain -= fixed.weight[a, q] * n * (n - 2 * r)
    return gain


@njit
def move(
    fixed: Fixed, residual: np.ndarray, b1: int, c1: int, b2: int, c2: int, n: int, stop: int
) -> float:
    """Move n people from a block's cell to another's; return the noise's log-ratio.

    Parameters
    ----------
    fixed : Fixed
        What stays.
    residual : ndarray of float64
        Is changed.
    b1, c1, b2, c2 : int
        From where to where; -1 for outside of the tree.
    n : int
        How many; less than 0 takes a move back.
    stop : int
        The area from which on nothing changes in the end, or -1.
    """
    gain = 0.0
    a1 = fixed.leaf[b1] if b1 >= 0 else -1
    a2 = fixed.leaf[b2] if b2 >= 0 else -1
    while a1 != a2 or (c1 != c2 and a1 >= 0 and a1 != stop):
        if a1 == a2:
            gain += shift(fixed, residual, a1, c1, c2, n)
            a1 = a2 = fixed.parent[a1]
        elif a2 < 0 or (a1 >= 0 and fixed.depth[a1] >= fixed.depth[a2]):
            gain += -np.inf if fixed.exact[a1] else 0.0
            gain += shift(fixed, residual, a1, c1, -1, n)
            a1 = fixed.parent[a1]
        else:
            gain += -np.inf if fixed.exact[a2] else 0.0
            gain += shift(fixed, residual, a2, -1, c2, n)
            a2 = fixed.parent[a2]
    return gain


@njit
def accept(rng: np.random.Generator, log_ratio: float) -> bool:
    """Decide."""
    return log_ratio >= 0 or rng.random() < math.exp(log_ratio)


@njit
def relabel(rng: np.random.Generator, fixed: Fixed, state: State, b: int) -> bool:
    """Propose another cell for a person of a block that has people."""
    people, groups, g = state.people, state.groups, fixed.group[b]
    c1 = pick(people, b, rng.random() * people.total[b])
    add(groups, g, c1, -1)
    c2 = relative(rng, fixed, groups, g, c1)
    if c1 != c2:
        if accept(rng, move(fixed, state.residual, b, c1, b, c2, 1, -1)):
            add(people, b, c1, -1)
            add(people, b, c2, 1)
            add(groups, g, c2, 1)
            return True
        move(fixed, state.residual, b, c1, b, c2, -1, -1)
    add(groups, g, c1, 1)
    return False


@njit
def any_cell(rng: np.random.Generator, fixed: Fixed, g: int) -> int:
    """Draw a cell by the prior."""
    u, last = rng.random() * fixed.cumulative[g, -1], fixed.alpha.shape[1] - 1
    return min(np.searchsorted(fixed.cumulative[g], u, side="right"), last)


@njit
def recast(rng: np.random.Generator, fixed: Fixed, state: State, g: int) -> int:
    """Propose that a person of a group moves to or from a cell that is drawn evenly.

    So cells with few people are looked at as often as others. It is decided on by the prior first,
    which takes little time, and by the noise if that accepts: 0 is returned if neither is asked, 1
    or 2 if the noise refuses or accepts.
    """
    people, groups = state.people, state.groups
    c1, c2 = int(rng.random() * fixed.alpha.shape[1]), any_cell(rng, fixed, g)
    if rng.random() < 0.5:
        c1, c2 = c2, c1
    n1, n2 = groups.counts[g, c1], groups.counts[g, c2]
    if c1 == c2 or n1 == 0:
        return 0
    one, other = fixed.alpha[g, c1], fixed.alpha[g, c2]
    if rng.random() * (n1 - 1 + one) * (n2 + 1) >= n1 * (n2 + other):
        return 0
    left, b = int(rng.random() * n1), fixed.begin[fixed.together[g]]
    while left >= people.counts[b, c1]:
        left -= people.counts[b, c1]
        b += 1
    if not accept(rng, move(fixed, state.residual, b, c1, b, c2, 1, -1)):
        move(fixed, state.residual, b, c1, b, c2, -1, -1)
        return 1
    for tables, row in ((people, b), (groups, g)):
        add(tables, row, c1, -1)
        add(tables, row, c2, 1)
    return 2


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
            add(groups, g, gone, -1)
            gain += log_urn(fixed, groups, g, come, 1) - log_urn(fixed, groups, g, gone, 1)
            add(groups, g, gone, 1)
        if gain == -np.inf:
            return False
    gain += move(fixed, state.residual, b1, c1, b1, c2, 1, top)
    gain += move(fixed, state.residual, b2, c2, b2, c1, 1, top)
    if not accept(rng, gain):
        move(fixed, state.residual, b1, c1, b1, c2, -1, top)
        move(fixed, state.residual, b2, c2, b2, c1, -1, top)
        return False
    for tables, one, other in ((people, b1, b2), (groups, g1, g2)):
        add(tables, one, c1, -1)
        add(tables, other, c2, -1)
        add(tables, one, c2, 1)
        add(tables, other, c1, 1)
    return True


@njit
def take(rng: np.random.Generator, people: Tables, b: int, n: int) -> None:
    """Take n people at random in the hand."""
    hand = people.total.size - 1
    for _ in range(n):
        c = pick(people, b, rng.random() * people.total[b])
        add(people, b, c, -1)
        add(people, hand, c, 1)


@njit
def put(people: Tables, row: int) -> None:
    """Put all people in the hand down."""
    hand = people.total.size - 1
    while people.occupied[hand]:
        c = people.cells[hand, people.occupied[hand] - 1]
        n = people.counts[hand, c]
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
def give(rng: np.random.Generator, fixed: Fixed, state: State, b1: int, b2: int, n: int) -> bool:
    """Propose that n people move to another block, and keep their cells."""
    people, groups, residual = state.people, state.groups, state.residual
    g1, g2, n1, n2 = fixed.group[b1], fixed.group[b2], people.total[b1], people.total[b2]
    if b1 == b2 or n > n1 or n == 0:
        return False
    gain = log_total(fixed, b1, n1 - n) + log_total(fixed, b2, n2 + n)
    if gain == -np.inf:
        return False
    gain -= log_total(fixed, b1, n1) + log_total(fixed, b2, n2)
    hand = people.total.size - 1
    take(rng, people, b1, n)
    if g1 != g2:
        one, other = groups.total[g1] - n, groups.total[g2]
        one, other = one + fixed.cumulative[g1, -1], other + fixed.cumulative[g2, -1]
        gain += math.lgamma(one + n) - math.lgamma(one)
        gain -= math.lgamma(other + n) - math.lgamma(other)
    for k in range(people.occupied[hand]):
        c = people.cells[hand, k]
        m = people.counts[hand, c]
        if g1 != g2:
            add(groups, g1, c, -m)
            gain += log_urn(fixed, groups, g2, c, m) - log_urn(fixed, groups, g1, c, m)
            add(groups, g2, c, m)
        gain += move(fixed, residual, b1, c, b2, c, m, -1)
    if accept(rng, gain):
        put(people, b2)
        return True
    for k in range(people.occupied[hand]):
        c = people.cells[hand, k]
        m = people.counts[hand, c]
        add(groups, g1, c, m)
        add(groups, g2, c, -m)
        move(fixed, residual, b1, c, b2, c, -m, -1)
    put(people, b1)
    return False


@njit
def trade(rng: np.random.Generator, fixed: Fixed, state: State, b1: int, b2: int) -> bool:
    """Propose that a person moves to another block, to a cell of its group's composition."""
    people, groups = state.people, state.groups
    n1, n2 = people.total[b1], people.total[b2]
    if b1 == b2 or n1 == 0:
        return False
    gain = log_total(fixed, b1, n1 - 1) + log_total(fixed, b2, n2 + 1)
    if gain == -np.inf:
        return False
    gain -= log_total(fixed, b1, n1) + log_total(fixed, b2, n2)
    c1 = pick(people, b1, rng.random() * n1)
    add(groups, fixed.group[b1], c1, -1)
    c2 = newcomer(rng, fixed, groups, fixed.group[b2])
    if accept(rng, gain + move(fixed, state.residual, b1, c1, b2, c2, 1, -1)):
        add(people, b1, c1, -1)
        add(people, b2, c2, 1)
        add(groups, fixed.group[b2], c2, 1)
        return True
    move(fixed, state.residual, b1, c1, b2, c2, -1, -1)
    add(groups, fixed.group[b1], c1, 1)
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
            add(groups, g, c, 1)
            add(people, hand, c, 1)
    sign = 1 if n > 0 else -1
    for k in range(people.occupied[hand]):
        c = people.cells[hand, k]
        m = sign * people.counts[hand, c]
        gain += move(fixed, state.residual, -1, -1, b, c, m, -1)
        if n < 0:
            add(groups, g, c, m)
    accepted = accept(rng, gain)
    if not accepted:
        for k in range(people.occupied[hand]):
            c = people.cells[hand, k]
            m = sign * people.counts[hand, c]
            move(fixed, state.residual, -1, -1, b, c, -m, -1)
            add(groups, g, c, -m)
    if accepted == (n > 0):
        put(people, b)
    else:
        while people.occupied[hand]:
            c = people.cells[hand, people.occupied[hand] - 1]
            add(people, hand, c, -people.counts[hand, c])
    return accepted


@njit
def some(rng: np.random.Generator) -> int:
    """Draw how many people move, on one of several scales."""
    return 1 + int(rng.random() * (1 << int(rng.random() * SCALES)))


@njit
def to_give(rng: np.random.Generator, n1: int, n2: int, is_far: bool) -> int:
    """Draw how many of n1 people a block gives to another; if less than 0, it is given them."""
    how = rng.random()
    if is_far and how < 0.5:
        return 1
    if how < 0.7:
        return some(rng)
    if how < 0.85:  # the totals change places, if it has more
        return max(n1 - n2, 0)
    return n1 - int(rng.random() * (n1 + n2 + 1))


@njit
def within(rng: np.random.Generator, fixed: Fixed, b: int) -> int:
    """Draw an area around a block: its group's every other time, or any."""
    area, own = fixed.together[fixed.group[b]], fixed.leaf[b]
    if area == own or rng.random() < 0.5:
        area = own
        above = fixed.depth[own]
        for _ in range(1 + int(rng.random() * above) if above else 0):
            area = fixed.parent[area]
    return area


@njit
def block_of(rng: np.random.Generator, fixed: Fixed, area: int) -> int:
    """Draw a block of an area."""
    return fixed.begin[area] + int(rng.random() * (fixed.end[area] - fixed.begin[area]))


@njit
def pair(rng: np.random.Generator, b1: int, b2: int) -> tuple[int, int]:
    """Draw an order."""
    return (b1, b2) if rng.random() < 0.5 else (b2, b1)


@njit
def sweep(
    rng: np.random.Generator,
    fixed: Fixed,
    state: State,
    visits: int,
    moves: np.ndarray,
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
        How often the total of each block is proposed to change.
    moves : ndarray of bool, shape (6,)
        Which of them are made.
    made : ndarray of int64, shape (6, 2)
        How many were proposed and accepted: is added to.
    """
    for g in range(fixed.together.size):
        for _ in range(RARE * state.groups.total[g] if moves[RECAST] else 0):
            how = recast(rng, fixed, state, g)
            made[RECAST, 0] += how > 0
            made[RECAST, 1] += how > 1
    for b in range(fixed.leaf.size):
        # Neither of these two changes how often they are made.
        for _ in range(state.people.total[b] if moves[RELABEL] else 0):
            made[RELABEL, 0] += 1
            made[RELABEL, 1] += relabel(rng, fixed, state, b)
        for _ in range((state.people.total[b] + 1) // 2 if moves[SWAP] else 0):
            area = within(rng, fixed, b)
            made[SWAP, 0] += 1
            made[SWAP, 1] += swap(rng, fixed, state, b, block_of(rng, fixed, area), area)
        for _ in range(0 if fixed.exact[fixed.leaf[b]] else visits):
            # Each draws who gives: a move is undone by one in the other direction.
            if moves[GIVE]:
                area = within(rng, fixed, b)
                one, other = pair(rng, b, block_of(rng, fixed, area))
                is_far = area != fixed.together[fixed.group[b]]
                n = to_give(rng, state.people.total[one], state.people.total[other], is_far)
                made[GIVE, 0] += 1
                if n >= 0:
                    made[GIVE, 1] += give(rng, fixed, state, one, other, n)
                else:
                    made[GIVE, 1] += give(rng, fixed, state, other, one, -n)
            if moves[TRADE]:
                area = within(rng, fixed, b)
                one, other = pair(rng, b, block_of(rng, fixed, area))
                made[TRADE, 0] += 1
                made[TRADE, 1] += trade(rng, fixed, state, one, other)
            if moves[RESIZE]:
                n = some(rng)
                made[RESIZE, 0] += 1
                made[RESIZE, 1] += resize(rng, fixed, state, b, n if rng.random() < 0.5 else -n)


@njit
def settle(
    fixed: Fixed, state: State, blocks: np.ndarray, cells: np.ndarray, n: np.ndarray
) -> None:
    """Put people into an empty tree: n of a block's cell, one after the other."""
    for k in range(blocks.size):
        add(state.people, blocks[k], cells[k], n[k])
        add(state.groups, fixed.group[blocks[k]], cells[k], n[k])
        move(fixed, state.residual, -1, -1, blocks[k], cells[k], n[k], -1)


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
