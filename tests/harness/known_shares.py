"""The known distribution of the CPU time of shares-workload among its functions (tests/workloads/shares.cc)."""
from flamewire import share_of

COMPARISONS = 4


def check_known_shares(check, tree):
    """burn_10 … burn_40 take 10 … 40 % of the time of the rounds of work. This makes COMPARISONS comparisons."""
    shares, samples = tree.shares(), tree.answer["total"]["samples"]
    rounds = share_of(shares, "round_of_work") * samples
    for percent in (10, 20, 30, 40):
        check.share(share_of(shares, f"burn_{percent}") * samples, rounds, percent / 100, detail=f"in burn_{percent}")
