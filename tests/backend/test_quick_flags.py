from itertools import product

from numba.core.compiler import Flags
from numba.core.targetconfig import Option, TargetConfig

from pymc_dapper.backend.quick_flags import hash_of_flags, same_flags


class OtherFlags(TargetConfig):
    nrt = Option(type=bool, default=False, doc="Another one's.")


def flags(kind=Flags, **options):
    made = kind()
    for name, value in options.items():
        setattr(made, name, value)
    return made


MADE = [
    flags(),
    flags(nrt=True),
    flags(nrt=False),  # as it is where it isn't set
    flags(nrt=True, fastmath=True),
    flags(nrt=False, fastmath=True),
    flags(fastmath=True, boundscheck=False),
    flags(nrt=True, fastmath={"contract"}),
    flags(OtherFlags),
    flags(OtherFlags, nrt=True),
]


def test_flags_are_told_apart_as_numba_does():
    for one, other in product(MADE, MADE):
        assert same_flags(one, other) == (one == other)
        assert same_flags(one, one.copy())
    assert not same_flags(flags(), flags(nrt=True))
    assert same_flags(flags(), flags(nrt=False))


def test_their_hash_is_that_of_numba():
    assert [hash_of_flags(each) for each in MADE] == [hash(each) for each in MADE]
