"""Measures the variance inflation factor of shares of samples, for DISPERSION in bounds.py:

    python3 tests/harness/dispersion.py [SECONDS] [WORKLOAD ARGUMENT...]

It records a workload of known shares and cuts the recording into blocks of several lengths. It divides the variance of each function's
share between the blocks by that of independent samples."""
import pathlib
import statistics
import sys
import tempfile
import time


def factor(blocks):
    """blocks: (hits, samples) each. 1 for independent samples, less for evenly spread ones, more if equal samples are clustered."""
    share = sum(hits for hits, _ in blocks) / sum(samples for _, samples in blocks)
    # Blocks differ in size, so each deviation is counted in units of its own standard deviation.
    squares = sum((hits - samples * share) ** 2 / (samples * share * (1 - share)) for hits, samples in blocks)
    return squares / (len(blocks) - 1)


def upper_limit(value, blocks, confidence=0.99):
    """Upper limit of a factor measured with this many blocks, by Wilson and Hilferty's approximation of the chi-squared distribution."""
    freedom = blocks - 1
    z = statistics.NormalDist().inv_cdf(1 - confidence)
    return value / (1 - 2 / (9 * freedom) + z * (2 / (9 * freedom)) ** 0.5) ** 3


def measure(seconds, workload):
    import flamewire

    functions = {"shares": ["burn_10", "burn_20", "burn_30", "burn_40"], "demo": ["stage_traffic", "stage_weather", "stage_render"]}[workload]
    with tempfile.TemporaryDirectory() as folder:
        server = flamewire.Server(folder)
        program = flamewire.workload(folder, workload, 3600)
        agent = flamewire.Agent(folder, "--server", "127.0.0.1", "--port", server.port, "--pid", program.pid, "--frequency", 999, "--events", "cpu-clock")
        with flamewire.ended(server, program, agent):
            time.sleep(seconds)
            assert agent.stop() == 0, agent.err
            session = server.wait_ended()
            begin = 100
            for length in (200, 1000, 4000):
                blocks = {function: [] for function in functions}
                for start in range(begin, int(session["duration_ms"]) - length, length):
                    tree = flamewire.Tree(server.get("/api/flamegraph", min_share=0, start=start, end=start + length))
                    shares, samples = tree.shares(), tree.answer["total"]["samples"]
                    for function in functions if samples else []:
                        # Names of lambdas contain the name of the enclosing function.
                        blocks[function].append((max((share for name, share in shares.items() if function in name), default=0) * samples, samples))
                for function, these in blocks.items():
                    value = factor(these)
                    print(f"{workload} {function}: blocks of {length} ms: {len(these)}, mean share {sum(h for h, _ in these) / sum(n for _, n in these):.4f}, "
                          f"factor {value:.2f}, at most {upper_limit(value, len(these)):.2f}")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 60, sys.argv[2] if len(sys.argv) > 2 else "shares")
