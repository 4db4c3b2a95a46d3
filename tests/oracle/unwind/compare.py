"""Our frames of a perf.data file against `perf script`'s, sample by sample, as offsets in the mapped files. As a program, it prints the
differences. Usage: compare.py REPLAY PERF_DATA [all] [--as-perf-reads]"""

import collections
import re
import subprocess
import sys

HEADER = re.compile(r"^(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?P<seconds>\d+)\.(?P<fraction>\d{9}):")
FRAME = re.compile(r"^\s+(?P<address>[0-9a-f]+) \((?P<path>.*)\)$")

Ours = collections.namedtuple("Ours", "stop frames")


def of_perf(data):
    """(tid, time in ns) -> [frame], in the format of the replay program, innermost first."""
    command = ["perf", "script", "--ns", "--no-inline", "--max-stack", "4096", "-F", "comm,pid,tid,time,ip,dso", "-i", data]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    samples = {}
    frames = None
    for line in text.splitlines():
        if frame := FRAME.match(line):
            inside = frame["path"] if int(frame["address"], 16) < 1 << 63 else "kernel"
            frames.append(f"{frame['address']}:{inside}")
        elif header := HEADER.match(line):
            frames = samples.setdefault((int(header["tid"]), int(header["seconds"] + header["fraction"])), [])
    return samples


def of_replay(program, data, *arguments):
    text = subprocess.run([program, data, *arguments], check=True, capture_output=True, text=True).stdout
    samples = {}
    for line in text.splitlines():
        tid, time, stop, *frames = line.split("\t")
        samples[int(tid), int(time)] = Ours(stop, frames)
    return samples


# At the end of the copied bytes, perf 6.1 reads a zero: its reader reports "not available" with a number that libunwind takes for success. perf then
# prints the frame of the call before that return address: -1.
NOWHERE = "ffffffffffffffff:kernel"


class Comparison:
    def __init__(self, program, data, *arguments):
        self.perf = of_perf(data)
        self.nowhere = 0
        for frames in self.perf.values():
            if frames and frames[-1] == NOWHERE:
                self.nowhere += 1
                del frames[-1]
        self.ours = of_replay(program, data, *arguments)
        assert self.perf.keys() == self.ours.keys(), f"{len(self.perf)} samples against {len(self.ours)}"
        self.total = len(self.perf)
        self.frames = sum(len(frames) for frames in self.perf.values())
        self.different = [key for key, frames in self.perf.items() if self.ours[key].frames != frames]

    @property
    def equal_share(self):
        return 1 - len(self.different) / self.total

    def kind(self, key):
        """The difference and its place: the last frame on which both agree."""
        theirs, ours = self.perf[key], self.ours[key]
        common = 0
        while common < min(len(theirs), len(ours.frames)) and theirs[common] == ours.frames[common]:
            common += 1
        if common == len(theirs):
            what = "perf stops early"
        elif common == len(ours.frames):
            what = "we stop early"
        else:
            what = "other frames"
        last = theirs[common - 1] if common else "(none)"
        return f"{what}, after {last}, ours: {ours.stop}"

    def report(self, count=20):
        kinds = collections.Counter(self.kind(key) for key in self.different)
        lines = [f"{self.total - len(self.different)} of {self.total} samples equal ({100 * self.equal_share:.2f} %), {self.frames / self.total:.1f} frames each",
                 f"{self.nowhere} had a last frame of perf at no address",
                 "our stop reasons: " + ", ".join(f"{stop} {number}" for stop, number in collections.Counter(sample.stop for sample in self.ours.values()).most_common())]
        lines += [f"{number:6} {kind}" for kind, number in kinds.most_common(count)]
        return "\n".join(lines)


def main():
    comparison = Comparison(*(argument for argument in sys.argv[1:] if argument != "all"))
    print(comparison.report(1000))
    if "all" in sys.argv:
        for key in comparison.different:
            print("\n", *key, comparison.kind(key))
            theirs, ours = comparison.perf[key], comparison.ours[key].frames
            for i in range(max(len(theirs), len(ours))):
                left, right = (theirs[i] if i < len(theirs) else "-"), (ours[i] if i < len(ours) else "-")
                print(f"  {'  ' if left == right else '! '}{left:60} {right}")


if __name__ == "__main__":
    main()
