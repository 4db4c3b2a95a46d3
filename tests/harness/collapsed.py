"""Collapsed exports as sums, without the server's code: a stack is a tuple of names with a number of samples, or a weight."""
import collections


def exported(server, session, value=None, **parameters):
    """Stack -> number, of all threads together."""
    stacks = collections.Counter()
    for line in server.get(f"/api/export/session/{session}", format="collapsed", value=value, **parameters).decode().splitlines():
        names, number = line.rsplit(" ", 1)
        stacks[tuple(names.split(";")[1:])] += int(number)  # the first is the thread's name
    return stacks


def totals(stacks):
    """Path from the root -> sum."""
    sums = collections.Counter()
    for stack, number in stacks.items():
        for depth in range(len(stack) + 1):
            sums[stack[:depth]] += number
    return sums
