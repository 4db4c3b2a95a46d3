"""Exact accounting: what the kernel sampled is what is shown plus what is stated as lost."""
import bounds
import flamewire

SAMPLED = bounds.Check("samples and losses of the program's CPU time", times=1)


def test_a_stopped_agent_with_one_page_rings(replayed, served):
    """The kernel overflows the rings meanwhile, and every lost sample is stated."""
    replay, (_, session) = replayed("stopped"), served("stopped")
    assert session["samples"] == replay.truth["samples"]
    ring = sum(loss["count"] for loss in session["losses"] if loss["reason"] == "ring_full")
    # 1 s of CPU time at 999 Hz does not fit into a page for each thread.
    assert flamewire.lost(session) == ring > 500, session["losses"]
    # Two threads begin and end, and the first takes up to 10 ms before its own function begins.
    SAMPLED.total(session["samples"] + ring, replay.truth["cpu_ns"] / 1e9, 999, edges=4)
