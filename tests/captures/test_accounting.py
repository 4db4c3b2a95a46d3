"""Exact accounting: shown samples plus reported losses equal the kernel's samples."""
import bounds
import flamewire

SAMPLED = bounds.Check("samples and losses of the program's CPU time", times=1)


def test_a_stopped_agent_with_one_page_rings(replayed, served):
    """The kernel overflows the rings meanwhile, and every lost sample is reported."""
    replay, (_, session) = replayed("stopped"), served("stopped")
    assert session["samples"] == replay.truth["samples"]
    ring = sum(loss["count"] for loss in session["losses"] if loss["reason"] == "ring_full")
    # 1 s of CPU time at 999 Hz does not fit into one page per thread.
    assert flamewire.lost(session) == ring > 500, session["losses"]
    # Two threads start and end, and the first one runs for up to 10 ms before its own function begins.
    SAMPLED.total(session["samples"] + ring, replay.truth["cpu_ns"] / 1e9, 999, edges=4)
