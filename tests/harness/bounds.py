"""Bounds for checks on counted samples, from one false-alarm budget for a whole run (docs/contributing/testing-live.md, "Error model").

A `Check` is declared once at the top of a test file with the number of comparisons it makes in a full run. test_bounds.py adds
up the declared numbers and compares the sum with COMPARISONS."""
import json
import math
import os
import statistics
import sys

# The probability that a full run without a defect fails in any live check, and the number of comparisons among which it is divided.
BUDGET = 1e-3
COMPARISONS = 320
# A variance inflation factor: the variance of a share between blocks of a recording, divided by that of independent samples.
# Measured by tests/harness/dispersion.py: at most 0.33, because systematic samples of aperiodic work are evenly spread. 1 is always large enough.
DISPERSION = 1.0
# Several expirations of a late timer merge into one. Stolen time is not CPU time of a thread, although its timer continues. A recording counts
# as disturbed if more than these shares of its time are affected.
MERGED = 0.01
STOLEN = 0.02


def log_choose(n, k):
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def binomial_log_pmf(k, n, p):
    """log P(X = k) for X ~ Binomial(n, p)."""
    if p <= 0 or p >= 1:
        return 0.0 if k == (n if p >= 1 else 0) else -math.inf
    return log_choose(n, k) + k * math.log(p) + (n - k) * math.log1p(-p)


def hypergeometric_log_pmf(k, total, marked, drawn):
    """log P(X = k) for X marked ones among `drawn` of `total`, of which `marked` are marked."""
    if k < max(0, drawn - (total - marked)) or k > min(marked, drawn):
        return -math.inf
    return log_choose(marked, k) + log_choose(total - marked, drawn - k) - log_choose(total, drawn)


def tail(log_pmf, k, last, step):
    """The sum of exp(log_pmf) from k to `last`. k is beyond the mode, so the terms decrease."""
    total = 0.0
    for at in range(k, last + step, step):
        term = math.exp(log_pmf(at))
        total += term
        if term <= 1e-17 * total:
            break
    return total


def acceptance(log_pmf, first, last, mode, below, above):
    """(low, high): the probabilities of lower and higher counts are at most `below` and `above`."""
    def search(near, far, wanted, step):
        # The count nearest to the mode for which the probability of counts beyond it is at most `wanted`.
        while near != far:
            middle = (near + far) // 2 if step > 0 else -((-near - far) // 2)
            if tail(log_pmf, middle + step, last if step > 0 else first, step) <= wanted:
                far = middle
            else:
                near = middle + step
        return near

    return (search(mode, first, below, -1) if below > 0 else first, search(mode, last, above, 1) if above > 0 else last)


def share_bounds(samples, share, dispersion, level, sides=2):
    """(low, high) for the measured share if the true one is `share`. sides 2: both bounds, +1: only high counts are wrong, -1: only low ones."""
    effective = max(1, math.floor(samples / dispersion))
    each = level / 2 if sides == 2 else level
    low, high = acceptance(lambda k: binomial_log_pmf(k, effective, share), 0, effective, min(effective, math.floor((effective + 1) * share)),
                           each if sides != 1 else 0, each if sides != -1 else 0)
    return low / effective, high / effective


def difference_bounds(hits, samples, other_hits, other_samples, dispersion, level):
    """(low, high) for hits / samples if both recordings have the same true share, given the hits of both (Fisher's exact test)."""
    drawn, others = max(1, math.floor(samples / dispersion)), max(1, math.floor(other_samples / dispersion))
    total = drawn + others
    marked = min(total, round((hits + other_hits) / dispersion))
    first, last = max(0, drawn - (total - marked)), min(marked, drawn)
    mode = min(last, max(first, math.floor((drawn + 1) * (marked + 1) / (total + 2))))
    low, high = acceptance(lambda k: hypergeometric_log_pmf(k, total, marked, drawn), first, last, mode, level / 2, level / 2)
    return low / drawn, high / drawn


def distance(counts):
    """(sum of the squared standardized differences of pairs of counts, number of pairs that are not both 0)."""
    seen = [(ours, others) for ours, others in counts if ours + others > 0]
    return sum((ours - others) ** 2 / (ours + others) for ours, others in seen), len(seen)


def distance_bound(members, level):
    """The largest distance() of pairs with equal means: the quantile of the chi-square distribution, by Wilson and Hilferty."""
    spread = 2 / (9 * members)
    return members * (1 - spread + statistics.NormalDist().inv_cdf(1 - level) * math.sqrt(spread)) ** 3


def samples_needed(share, difference, dispersion=DISPERSION, power=0.99):
    """The number of samples that detects a share that is off by `difference` with the probability `power`, at the level of one comparison."""
    far = min(0.5, share + difference)
    normal = statistics.NormalDist()
    spread = (normal.inv_cdf(1 - level() / 2) * math.sqrt(share * (1 - share)) + normal.inv_cdf(power) * math.sqrt(far * (1 - far)))
    return math.ceil(dispersion * (spread / difference) ** 2)


def level():
    """The probability of a false alarm of one comparison."""
    return BUDGET / max(1, COMPARISONS)


class Check:
    """Comparisons of one kind in one test file. More than `times` of them in a run are an error in the test."""

    all = []

    def __init__(self, what, times):
        self.what, self.times, self.done = what, times, 0
        Check.all.append(self)

    def _within(self, low, found, high, detail):
        self.done += 1
        if self.done > self.times:
            raise RuntimeError(f"{self.what}: more than the {self.times} comparisons that it declares")
        if path := os.environ.get("FLAMEWIRE_COMPARISONS"):
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps({"what": self.what, "low": low, "found": found, "high": high, "detail": str(detail)[:200]}) + "\n")
        assert low <= found <= high, f"{self.what}: {found:.5g} is not within {low:.5g} and {high:.5g}: {detail}"

    def _of(self, hits, samples, detail):
        assert samples > 0, f"{self.what}: no samples ({detail})"
        return hits / samples, f"{hits} of {samples} samples {detail}"

    def share(self, hits, samples, expected, bias=0.0, dispersion=DISPERSION, detail=""):
        """A share that is known by construction. `bias` is the largest possible error of the workload itself."""
        found, detail = self._of(hits, samples, detail)
        low = share_bounds(samples, max(0.0, expected - bias), dispersion, level() / 2, -1)[0]
        high = share_bounds(samples, min(1.0, expected + bias), dispersion, level() / 2, 1)[1]
        self._within(low, found, high, detail)

    def at_most(self, hits, samples, share, dispersion=DISPERSION, detail=""):
        """At most `share` of the samples are hits."""
        found, detail = self._of(hits, samples, detail)
        self._within(0, found, share_bounds(samples, share, dispersion, level(), 1)[1], detail)

    def at_least(self, hits, samples, share, dispersion=DISPERSION, detail=""):
        """At least `share` of the samples are hits."""
        found, detail = self._of(hits, samples, detail)
        self._within(share_bounds(samples, share, dispersion, level(), -1)[0], found, 1, detail)

    def same(self, hits, samples, other_hits, other_samples, dispersion=DISPERSION, detail=""):
        """A share that a peer measured for the same target over the same interval."""
        found, detail = self._of(hits, samples, detail)
        other, detail = self._of(other_hits, other_samples, f"against {detail}")
        low, high = difference_bounds(hits, samples, other_hits, other_samples, dispersion, level())
        self._within(low, found, high, f"the peer has {other:.5f}: {detail}")

    def total(self, samples, cpu_s, frequency, edges, clock_s=0.0, detail=""):
        """The number of samples for this much CPU time. A timer's samples are periodic, so it varies only by edges, the resolution of the clock of
        cpu_s, merged expirations and stolen time."""
        expected, slack = frequency * cpu_s, edges + frequency * clock_s
        self._within((1 - MERGED) * expected - slack, samples, (1 + STOLEN) * expected + slack, f"{cpu_s:.3f} s of CPU time at {frequency} Hz {detail}")

    def same_total(self, samples, others, edges, detail=""):
        """The number of samples that a peer took of the same target over the same interval. The timers of both may be late."""
        self._within((1 - MERGED) * others - edges, samples, others / (1 - MERGED) + edges, f"the peer has {others} samples {detail}")

    def same_each(self, counts, detail=""):
        """(our samples, a peer's) for each of many processes over one interval, with few samples each."""
        found, members = distance(counts)
        assert members > 0, f"{self.what}: no samples ({detail})"
        self._within(0, found, distance_bound(members, level()), f"{members} members {detail}")


def progress():
    """The number of comparisons that each check has made."""
    return [check.done for check in Check.all]


def forget(done):
    """Returns to an earlier progress(): the comparisons since then used a disturbed recording."""
    for check, number in zip(Check.all, done):
        check.done = number


if __name__ == "__main__":  # For tests in other languages: SAMPLES SHARE -> the bounds of a share that is known by construction.
    print(*share_bounds(int(sys.argv[1]), float(sys.argv[2]), DISPERSION, level()))
