"""The bounds of live checks against closed forms, exact enumeration, published tables and simulation."""
import ast
import fractions
import math
import pathlib
import random
import re
import statistics

import bounds
import dispersion as measured
import pytest

TESTS = pathlib.Path(bounds.__file__).resolve().parents[1]


def exact_tail(n, k, p):
    """P(X >= k) as a fraction."""
    p = fractions.Fraction(p)
    return sum(math.comb(n, i) * p ** i * (1 - p) ** (n - i) for i in range(k, n + 1))


@pytest.mark.parametrize("n, p", [(1, "1/2"), (7, "1/10"), (40, "3/10"), (60, "1/100"), (60, "97/100")])
def test_tails_equal_enumeration(n, p):
    value = float(fractions.Fraction(p))
    for k in range(math.floor((n + 1) * value) + 1, n + 1):
        ours = bounds.tail(lambda i: bounds.binomial_log_pmf(i, n, value), k, n, 1)
        assert ours == pytest.approx(float(exact_tail(n, k, p)), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("n, p, level", [(20, "1/2", 0.05), (50, "1/10", 0.01), (50, "9/10", 1e-4), (100, "1/100", 1e-5)])
def test_bounds_are_the_tightest_of_their_level(n, p, level):
    low, high = (round(n * bound) for bound in bounds.share_bounds(n, float(fractions.Fraction(p)), 1.0, level))
    below = lambda k: 1 - exact_tail(n, k, p)  # noqa: E731: P(X < k)
    assert below(low) <= level / 2 and (low == 0 or below(low + 1) > level / 2)
    assert exact_tail(n, high + 1, p) <= level / 2 and exact_tail(n, high, p) > level / 2


def test_published_values():
    # Two-sided sign test at 5 %, from published tables: 20 pairs are significant below 6 and above 14, 25 below 8 and above 17.
    assert bounds.share_bounds(20, 0.5, 1.0, 0.05) == (6 / 20, 14 / 20)
    assert bounds.share_bounds(25, 0.5, 1.0, 0.05) == (8 / 25, 17 / 25)
    # The probability of no event in n trials is 5 % at the rate 1 - 0.05 ** (1 / n), about 3 / n. At higher rates, zero events are too few.
    rate = 1 - 0.05 ** (1 / 1000)
    assert bounds.share_bounds(1000, 0.999 * rate, 1.0, 0.05, -1)[0] == 0
    assert bounds.share_bounds(1000, 1.001 * rate, 1.0, 0.05, -1)[0] == 1 / 1000


def test_many_samples_follow_the_normal_distribution():
    for share, level in ((0.4, 1e-5), (0.1, 1e-3), (0.97, 1e-6)):
        low, high = bounds.share_bounds(1_000_000, share, 1.0, level)
        width = statistics.NormalDist().inv_cdf(1 - level / 2) * math.sqrt(share * (1 - share) / 1_000_000)
        assert high - share == pytest.approx(width, rel=0.02) and share - low == pytest.approx(width, rel=0.02)


def test_dispersion_widens_by_its_root():
    narrow, wide = (bounds.share_bounds(400_000, 0.3, dispersion, 1e-4) for dispersion in (1.0, 4.0))
    assert (wide[1] - wide[0]) / (narrow[1] - narrow[0]) == pytest.approx(2, rel=0.02)


def test_fisher_bounds_equal_enumeration():
    # 12 of 30 samples and 9 of 20 samples: enumerate all tables with the same sums.
    n, m, marked, level = 30, 20, 21, 0.01
    chance = {k: fractions.Fraction(math.comb(marked, k) * math.comb(n + m - marked, n - k), math.comb(n + m, n)) for k in range(max(0, marked - m), min(marked, n) + 1)}
    assert sum(chance.values()) == 1
    low = min(k for k in chance if sum(chance[i] for i in chance if i <= k) > level / 2)
    high = max(k for k in chance if sum(chance[i] for i in chance if i >= k) > level / 2)
    assert bounds.difference_bounds(12, n, 9, m, 1.0, level) == (low / n, high / n)


def test_false_alarms_in_simulation():
    """Samples of a renewal process in runs of three have a dispersion of three. The rate of alarms matches the level."""
    chance = random.Random(20_240_517)
    level, alarms, rounds = 0.02, {1.0: 0, 3.0: 0}, 3000
    for _ in range(rounds):
        hits = 3 * sum(chance.random() < 0.3 for _ in range(100))
        for dispersion in alarms:
            low, high = bounds.share_bounds(300, 0.3, dispersion, level)
            alarms[dispersion] += not low <= hits / 300 <= high
    # At most the level, with four standard errors of the simulation. Treating the samples as independent gives far more alarms.
    assert alarms[3.0] / rounds <= level + 4 * math.sqrt(level * (1 - level) / rounds)
    assert alarms[1.0] / rounds > 5 * level


def test_counts_of_many_in_simulation():
    """Samples of 200 processes, eight each: the rate of alarms matches the level, and attributing one in ten samples to a neighbor raises an alarm."""
    # chi2.ppf(0.999, 200) in SciPy.
    assert bounds.distance_bound(200, 0.001) == pytest.approx(267.541, rel=1e-3)
    chance, level, rounds = random.Random(20_261_126), 0.05, 600
    alarms, seen = 0, 0
    for _ in range(rounds):
        both = [0] * 400
        for _ in range(2 * 1600):
            both[chance.randrange(400)] += 1
        ours, others = both[:200], both[200:]
        alarms += bounds.distance(zip(ours, others))[0] > bounds.distance_bound(200, level)
        for at in range(0, 40, 2):
            ours[at], ours[at + 1] = 0, ours[at] + ours[at + 1]
        seen += bounds.distance(zip(ours, others))[0] > bounds.distance_bound(200, level)
    assert alarms / rounds <= level + 4 * math.sqrt(level * (1 - level) / rounds)
    assert seen / rounds > 0.99


def test_power_in_simulation(monkeypatch):
    monkeypatch.setattr(bounds, "COMPARISONS", 10)
    wanted = bounds.samples_needed(0.2, 0.05, power=0.9)
    chance, seen, rounds = random.Random(7), 0, 400
    high = bounds.share_bounds(wanted, 0.2, 1.0, bounds.level())[1]
    for _ in range(rounds):
        seen += sum(chance.random() < 0.25 for _ in range(wanted)) / wanted > high
    assert 0.84 < seen / rounds < 0.96


def test_checks_alarm_and_count(monkeypatch):
    monkeypatch.setattr(bounds, "COMPARISONS", 10)
    check = bounds.Check("shares", times=18)
    check.share(400, 1000, 0.4)
    check.same_each([(8, 9)] * 199 + [(0, 9)])
    check.at_most(3, 1000, 0.01)
    check.at_least(995, 1000, 0.99)
    check.same(400, 1000, 820, 2000)
    check.total(995, 1.0, 999, edges=1)
    check.same_total(9910, 10_000, edges=1)
    check.same_total(10_101, 10_000, edges=1)
    for wrong in (lambda: check.same_each([(8, 9)] * 150 + [(0, 9)] * 50), lambda: check.share(500, 1000, 0.4), lambda: check.share(300, 1000, 0.4), lambda: check.at_most(40, 1000, 0.01),
                  lambda: check.at_least(950, 1000, 0.99), lambda: check.same(400, 1000, 1000, 2000), lambda: check.total(1021, 1.0, 999, edges=1), lambda: check.total(987, 1.0, 999, edges=1),
                  lambda: check.same_total(9898, 10_000, edges=1), lambda: check.same_total(10_103, 10_000, edges=1)):
        with pytest.raises(AssertionError, match="shares: .* is not within"):
            wrong()
    with pytest.raises(RuntimeError, match="more than the 18 comparisons"):
        check.share(400, 1000, 0.4)
    with pytest.raises(AssertionError, match="no samples"):
        bounds.Check("none", times=1).share(0, 0, 0.4)


def declared():
    """(file, times) of every Check that is declared at the top of a test file."""
    for path in sorted(TESTS.rglob("test_*.py")):
        if path.parent.name == "harness":
            continue
        for node in ast.parse(path.read_text()).body:
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "bounds.Check":
                    assert isinstance(node, ast.Assign), f"{path}: declare checks at the top of the file"
                    (times,) = [word.value for word in call.keywords if word.arg == "times"]
                    yield path.relative_to(TESTS), ast.literal_eval(times)
    for path in sorted((TESTS / "e2e").glob("*.test.mjs")):
        for times in re.findall(r"^const \w+ = new Check\(.*, \{ times: (\d+) \}\);$", path.read_text(), re.M):
            yield path.relative_to(TESTS), int(times)


def test_the_budget_is_divided_among_all_comparisons():
    found = list(declared())
    assert sum(times for _, times in found) == bounds.COMPARISONS, f"COMPARISONS in bounds.py is not the sum of {found}"
    assert bounds.level() * sum(times for _, times in found) <= bounds.BUDGET * (1 + 1e-12)


def test_measured_factor_of_known_processes():
    chance = random.Random(11)
    independent = [(sum(chance.random() < 0.3 for _ in range(200)), 200) for _ in range(400)]
    in_threes = [(3 * sum(chance.random() < 0.3 for _ in range(67)), 201) for _ in range(400)]
    even = [(60 + chance.choice((-1, 0, 1)), 200) for _ in range(400)]
    assert measured.factor(independent) == pytest.approx(1, abs=0.25)
    assert measured.factor(in_threes) == pytest.approx(3, abs=0.75)
    assert measured.factor(even) < 0.1


def test_upper_limit_of_a_factor():
    # From chi-squared tables: the 1 % quantile is 2.558 for 10 and 70.065 for 100 degrees of freedom.
    assert measured.upper_limit(1, 11) == pytest.approx(10 / 2.558, rel=0.02)
    assert measured.upper_limit(1, 101) == pytest.approx(100 / 70.065, rel=0.002)
