// Ensures that no sample counts twice and that no thread is missed. Pure.
//
// The problem. A target's threads are found in /proc, and each is opened with a *set* of events, one per (event, CPU).
// Children inherit the sets of the thread that creates them. While the agent attaches, the target continues to create
// threads, so a thread can end up with
// - one set, inherited or its own: the usual case;
// - two or more: it inherited its parent's, and the agent found it in /proc and opened it too (every sample arrives
//   twice);
// - part of a set: clone() copied the parent's events while the agent was in the middle of opening the parent.
//
// No sample twice: ThreadOwners. Every event of a thread samples it at the full rate, whichever set it belongs to. So
// for each (thread, event, CPU) one set is the owner, and samples with the ids of other sets are dropped. The owner is
// the first set seen. It cannot stop delivering early: a thread keeps its events until it exits or all of them are
// closed. A thread with parts of two sets is counted completely, because each (event, CPU) finds an owner that
// delivers. This does not depend on FORK records, so it also holds if they were lost. A thread's owners are removed at
// its EXIT, at a FORK that reuses its tid, and at exec (where a thread can take over its leader's tid).
//
// No thread missed: Coverage decides which of the threads found must be opened, so that attaching ends even if the
// target never stops creating threads. A thread C with parent P is *covered* if it certainly inherited a whole set:
// - P is covered itself: it had the whole set from birth; or
// - P was opened completely before its clone() began. The FORK record shows only when that clone() ended. But a thread
//   is in one clone() at a time. So among the FORKs of P after its opening was complete, only the first can belong to a
//   clone() that began before.
//
//        open P     complete             FORK C1               FORK C2
//     ─────┼──────────┼────────────────────┼─────────────────────┼────►
//              └──── clone C1? ────────────┘└──── clone C2 ──────┘
//                    may have copied a part      began after complete: covered
//
// All other threads are doubtful, and are opened. In a chain, where each thread creates another one and exits, every
// FORK is such a first one. The agent follows such a chain for only three generations: it stays uncovered only if each
// of three openings hit the middle of a clone(), and every opening adds a set that the whole chain inherits. If a FORK
// happened before the agent recorded its parent, the thread was already in /proc (the kernel publishes a thread first,
// then writes the record). So the scan after the parent's opening finds it: the agent scans and opens until two scans
// find nothing new. A thread still in clone() has its FORK later, and is opened when that record arrives.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/perf/record.h"

namespace flamewire::agent {

class ThreadOwners {
public:
    // True if `set` is the owner of (tid, slot), so its sample counts. A slot is an (event, CPU).
    bool accept(std::uint32_t tid, std::uint32_t slot, std::uint32_t set);
    void forget(std::uint32_t tid);
    // Call it after fork and exit records were lost.
    void forget_all();
    // Number of tracked threads.
    [[nodiscard]] std::size_t size() const { return threads_.size(); }

private:
    // (slot, set), in order of first appearance. A thread runs on few CPUs, so a linear search from the front is short.
    using Slots = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

    std::unordered_map<std::uint32_t, Slots> threads_;
    // Samples of one thread arrive in runs. Elements of an unordered_map do not move.
    std::uint32_t last_tid_ = 0;
    Slots* last_slots_ = nullptr;
};

class Coverage {
public:
    // All events of `tid` were opened; the last one at `complete_ns`.
    void opened(std::uint32_t tid, std::uint64_t complete_ns);
    // `tid` needs no opening (any more): it exited, or cannot be opened.
    void skipped(std::uint32_t tid);
    // Handles a FORK record. True if the child must be opened.
    bool forked(std::uint32_t parent_tid, std::uint32_t child_tid, std::uint64_t time_ns);
    void exited(std::uint32_t tid);

    // Opened, covered, or skipped.
    [[nodiscard]] bool known(std::uint32_t tid) const { return threads_.contains(tid); }
    void clear();

private:
    static constexpr std::uint32_t max_generation = 3;

    struct Thread {
        std::uint64_t complete_ns = 0;  // children are covered if their clone() began after this; 0: from birth
        std::uint32_t first_child = 0;  // of the first FORK after complete_ns
        std::uint32_t generation = 0;   // number of doubtful births before this opening
    };
    bool doubtful(std::uint32_t child_tid, std::uint32_t parent_generation);

    std::unordered_map<std::uint32_t, Thread> threads_;
    std::unordered_map<std::uint32_t, std::uint32_t> doubtful_;  // to be opened -> its generation
};

// A thread with several sets writes each of its process and map records several times, consecutively into the same
// ring. Detects the copies by id: they repeat the preceding record under another set's id.
class SidebandCopies {
public:
    // `id`: of the event that wrote the record.
    bool is_copy(const MmapRecord& map, std::uint64_t id) { return repeats({'m', map.pid, map.tid, map.start}, id); }
    bool is_copy(const CommRecord& comm, std::uint64_t id) { return repeats({'c', comm.pid, comm.tid, comm.exec}, id); }
    bool is_copy(const TaskRecord& task, std::uint64_t id) { return repeats({'t', task.pid, task.tid, task.exit}, id); }

private:
    struct Key {
        char kind = 0;
        std::uint32_t pid = 0, tid = 0;
        std::uint64_t detail = 0;  // address of a mapping, exec, exit
        bool operator==(const Key&) const = default;
    };
    bool repeats(const Key& key, std::uint64_t id);

    Key last_;
    std::uint64_t first_id_ = 0;  // id of the first record with this key
};

}  // namespace flamewire::agent
