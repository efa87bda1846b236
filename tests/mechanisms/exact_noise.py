"""Probabilities of rounded and clamped noise in many digits: mpmath, and nothing of the package.

Each law has `log_tail(x)`, the log of P(X <= x), and `log_cell(d)`, that of
P(d - 1/2 < X < d + 1/2).
Numbers are mpmath's; what is below -1e308 is minus infinity, as it is for floats.
"""

from mpmath import mp, mpf

mp.dps = 60

HALF = mpf(1) / 2
BEYOND_FLOATS = mpf(10) ** 308


def _log(value):
    return float(mp.log(value)) if value else -float("inf")


class Continuous:
    """Noise given by its tail: `tail(x)` is P(X > x), for x >= 0, and symmetric around 0.

    Of a scale 1e300, the tails at the two ends of a cell agree in 300 digits.
    """

    def digits(self):
        return mp.workdps(60 + 2 * max(0, int(mp.log10(self.scale))))

    def is_beyond_floats(self, x):
        raise NotImplementedError

    def log_tail(self, x):
        with self.digits():
            if x >= 0:
                return float(mp.log1p(-self.tail(x)))
            return -float("inf") if self.is_beyond_floats(-x) else _log(self.tail(-x))

    def log_cell(self, d):
        with self.digits():
            near, far = abs(d) - HALF, abs(d) + HALF
            if near < 0:
                return float(mp.log1p(-self.tail(-near) - self.tail(far)))
            if self.is_beyond_floats(near):
                return -float("inf")
            return _log(self.tail(near) - self.tail(far))

    def log_between(self, a, b):
        """The log of P(a < X < b)."""
        with self.digits():
            if a + b < 0:
                a, b = -b, -a
            if a < 0:
                return float(mp.log1p(-self.tail(-a) - self.tail(b)))
            if self.is_beyond_floats(a):
                return -float("inf")
            return _log(self.tail(a) - self.tail(b))


class Laplace(Continuous):
    def __init__(self, scale):
        self.scale = mpf(scale)

    def is_beyond_floats(self, x):
        return x / self.scale > BEYOND_FLOATS

    def tail(self, x):
        return mp.exp(-x / self.scale) / 2


class Gaussian(Continuous):
    def __init__(self, sigma):
        self.scale = self.sigma = mpf(sigma)

    def is_beyond_floats(self, x):
        return (x / self.sigma) ** 2 / 2 > BEYOND_FLOATS

    def tail(self, x):
        z = x / self.sigma
        return mp.erfc(z / mp.sqrt(2)) / 2 if z < mpf(10) ** 150 else mpf(0)  # mpmath can't


class Tulap(Continuous):
    """Noise of constant density in the cell of each integer n: (1 - b) / (1 + b) b^abs(n)."""

    def __init__(self, b, q=0.0):
        self.scale = 1 / (1 - mpf(b))
        self.b, self.q = mpf(b), mpf(q)

    def is_beyond_floats(self, x):
        return self.tail(x) == 0

    def tail(self, x):
        n = int(mp.ceil(x - HALF))
        left = n + HALF - x
        whole = self.b**n / (1 + self.b) * (self.b + left * (1 - self.b))
        return max(whole - self.q / 2, mpf(0)) / (1 - self.q)


class Discrete(Continuous):
    """Noise on the integers. A tail P(X > x) is that of the next integer and above."""

    def log_tail(self, x):
        k = int(mp.floor(x))
        if k >= 0:
            return super().log_tail(k)
        with self.digits():
            return -float("inf") if self.is_beyond_floats(-k) else _log(self.tail(-k - 1))

    def log_between(self, a, b):
        """The log of P(a <= X <= b), of integers."""
        with self.digits():
            if a + b < 0:
                a, b = -b, -a
            if a <= 0:
                return float(mp.log1p(-self.tail(-a) - self.tail(b)))
            if self.is_beyond_floats(a):
                return -float("inf")
            return _log(self.tail(a - 1) - self.tail(b))


class DiscreteLaplace(Discrete):
    def __init__(self, scale):
        self.scale = mpf(scale)

    def is_beyond_floats(self, x):
        return x / self.scale > BEYOND_FLOATS

    def tail(self, x):
        ratio = mp.exp(-1 / self.scale)
        return ratio ** (int(x) + 1) / (1 + ratio)


class DiscreteGaussian(Discrete):
    """The smaller tail by adding up, or by Euler-Maclaurin where it is long and flat."""

    def __init__(self, sigma):
        self.scale = self.sigma = mpf(sigma)
        self.total = 1 + 2 * self._from(1)

    def is_beyond_floats(self, x):
        return (x / self.sigma) ** 2 / 2 > BEYOND_FLOATS

    def tail(self, x):
        return self._from(int(x) + 1) / self.total

    def log_between(self, a, b):
        """The log of P(a <= X <= b), of few integers: one by one."""
        if self.sigma < 50 and b - a > 20:
            return super().log_between(a, b)  # that may be nearly all
        a, b = (-b, -a) if a + b < 0 else (a, b)
        nearest = max(a, 0)
        if self.is_beyond_floats(nearest):
            return -float("inf")
        with self.digits():
            ks = [a + i for i in range(int(b - a) + 1)]
            weight = mp.fsum(mp.exp((nearest**2 - k**2) / (2 * self.sigma**2)) for k in ks)
            return float(mp.log(weight / self.total) - (nearest / self.sigma) ** 2 / 2)

    def _from(self, k):
        """Sum of the weights of k and all above."""
        slope = k / self.sigma**2
        if self.sigma < 300 or slope > HALF / 5:
            total, n = mpf(0), k
            while True:
                term = mp.exp(-((n / self.sigma) ** 2) / 2) if n < self.sigma * 10**150 else mpf(0)
                total += term
                if term <= total * mpf(10) ** -40:
                    return total
                n += 1
        # The sum of f(n) over n >= k is the integral of f from k - 1/2, plus the sum over j of
        # (1 - 2^(1 - 2j)) B_2j f^(2j-1)(k - 1/2) / (2j)!
        start = (k - HALF) / self.sigma
        total = self.sigma * mp.sqrt(mp.pi / 2) * mp.erfc(start / mp.sqrt(2))
        density = mp.exp(-(start**2) / 2)
        hermite = [mpf(1), start]
        for j in range(1, 16):
            derivative = -hermite[-1] * density / self.sigma ** (2 * j - 1)
            weight = (1 - mpf(2) ** (1 - 2 * j)) * mp.bernoulli(2 * j) / mp.factorial(2 * j)
            total += weight * derivative
            for n in (2 * j - 1, 2 * j):
                hermite.append(start * hermite[-1] - n * hermite[-2])
        return total
