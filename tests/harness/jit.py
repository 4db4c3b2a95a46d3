"""JIT code in a flame graph: names and samples of functions."""
import collections
import re

JIT, UNKNOWN = 2, 4
# A bucket is 10 ms long, and a file's time stamp has a resolution of 4 ms.
EDGE_MS = 30

# One function per second of CPU time. Each is discarded and its memory reused for the next one. Each is compiled twice, because the type of
# its argument changes.
MOVING = """
const sleep = [];
for (let phase = 0; phase < 4; phase++) {
    let f = new Function('n', 'step', `return (function phase_${phase}(n, step) { let s = 0; for (let i = 0; i < n; i++) s += i % 7 * step; return s; })(n, step)`);
    const ms = () => process.hrtime.bigint() / 1000000n;
    const used = () => process.cpuUsage().user / 1000;
    const begin = ms(), before = used();
    let x = 0;
    while (used() < before + 500) x += f(100000, 1);
    while (used() < before + 1000) x += f(100000, 0.5);
    console.log(phase, String(begin), String(ms()), x > 1);
    f = null;
    for (let i = 0; i < 3; i++) gc();
}
"""


def self_shares(tree):
    """Function -> share of the samples whose innermost frame it is."""
    shares = collections.Counter()
    for name, weight in zip(tree.names, tree.self_weight):
        shares[name] += weight / tree.weight
    return shares


def unknown_jit_share(tree):
    """The share of all samples in JIT code without a name."""
    return sum(weight for weight, kind, module in zip(tree.self_weight, tree.kind, tree.modules) if kind == UNKNOWN and module == "[jit]") / tree.weight


def samples_of(tree):
    return tree.answer["total"]["samples"]


def is_of(name, function):
    """Matches V8's names: "JS:*hot /dir/program.js:2:13", newer "JS:*'hot …", older "LazyCompile:*hot …"."""
    return re.search(rf"[:*~^+']{function}\b", name) is not None


def of_function(shares, function):
    return sum(share for name, share in shares.items() if is_of(name, function))
