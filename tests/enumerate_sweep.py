"""The transition matrix of a compiled sweep, enumerated without looking inside it."""

import numpy as np

NEVER, ALWAYS = np.inf, -np.inf
LOWEST, HIGHEST = -700.0, -1e-300


def transition_matrix(decide, states, proposal_probabilities, *given):
    """Transition matrix of one sweep over all records.

    `decide` is the compiled half of a sweep that users run: a deterministic function of records,
    proposals and log uniforms. For every state and every proposal, the log uniforms of the records
    before the i-th force their outcome, those after it are rejected, and the i-th record's
    acceptance probability is the uniform variate at which its outcome changes. Where
    proposals depend on the state, their probabilities are a matrix with a row for each.
    """
    states = np.ascontiguousarray(states)
    index = {tuple(state): k for k, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    known = {}
    probabilities = np.broadcast_to(proposal_probabilities, matrix.shape)
    for state, of_proposals in zip(states, probabilities, strict=True):
        for proposal, probability in zip(states, of_proposals, strict=True):
            outcomes = _outcomes(decide, state, proposal, given, known)
            for records, outcome_probability in outcomes:
                matrix[index[tuple(state)], index[records]] += probability * outcome_probability
    return matrix


def _outcomes(decide, state, proposal, given, known):
    """All outcomes of a sweep for one proposal, with their probabilities."""
    n = len(state)
    branches = [((), 1.0)]
    for i in range(n):
        grown = []
        for forced, probability in branches:
            p = _acceptance_probability(decide, state, proposal, given, forced, i, known)
            grown += [
                ((*forced, ALWAYS), probability * p),
                ((*forced, NEVER), probability * (1 - p)),
            ]
        branches = [(forced, probability) for forced, probability in grown if probability > 0]
    for forced, probability in branches:
        records, accepted, _ = decide(state, proposal, np.array(forced), *given)
        assert np.array_equal(accepted, np.array(forced) == ALWAYS)
        yield tuple(records), probability


def acceptance_probability(decide, state, proposal, guess, *given):
    """Of a single record; `guess` is the logarithm that it should have."""
    known = {(0, *state, proposal[0]): max(LOWEST, min(HIGHEST, guess))}
    return _acceptance_probability(decide, state, proposal, given, (), 0, known)


def _acceptance_probability(decide, state, proposal, given, forced, i, known):
    """Find it; `known` are those that were found, by what a right sweep decides on."""
    log_uniforms = np.full(len(state), NEVER)
    log_uniforms[:i] = forced

    def outcome(log_uniform):
        log_uniforms[i] = log_uniform
        _, accepted, log_density = decide(state, proposal, log_uniforms, *given)
        return accepted[i], log_density

    present = np.where(log_uniforms == ALWAYS, proposal, state)
    present[i:] = state[i:]
    key = (i, *present, proposal[i])
    if not _is_threshold(known.get(key), outcome):
        known[key] = _threshold(outcome)
    return 0.0 if known[key] <= LOWEST else float(np.exp(known[key]))


def _is_threshold(guess, outcome):
    """Whether the outcome changes there: a faulty sweep's may change elsewhere."""
    if guess is None:
        return False
    width = _width(guess)
    is_below = guess >= HIGHEST or not outcome(min(guess + width, HIGHEST))[0]
    return is_below and (guess <= LOWEST or outcome(max(guess - width, LOWEST))[0])


def _threshold(outcome):
    """The log uniform at which the outcome changes; the highest or lowest if it doesn't."""
    accepted, stays = outcome(HIGHEST)
    if accepted:
        return HIGHEST
    accepted, moves = outcome(LOWEST)
    if not accepted:
        return LOWEST
    low, high = _near(moves - stays, outcome)
    while high - low > _width(low):
        middle = (low + high) / 2
        low, high = (middle, high) if outcome(middle)[0] else (low, middle)
    return (low + high) / 2


def _near(guess, outcome):
    """Where to look: about the guess, a right sweep's threshold but for rounding, if it's there."""
    low, high = guess - 100 * _width(guess), guess + 100 * _width(guess)
    inside = low > LOWEST and high < HIGHEST
    if inside and outcome(low)[0] and not outcome(high)[0]:
        return low, high
    return LOWEST, HIGHEST


def _width(log_uniform):
    return 1e-13 * max(1e-3, -log_uniform)
