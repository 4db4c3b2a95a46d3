// No sample twice, no thread missed. Pure.
//
// The problem. A target's threads are found in /proc and each is opened with a *set* of events, one a (event, CPU).
// Children inherit the sets of the thread that made them. While we attach, the target goes on creating threads, so a
// thread can end up with
//   - one set, inherited or its own: the usual case;
//   - two or more: it inherited its parent's, and we found it in /proc and opened it too (every sample comes twice);
//   - part of a set: clone() copied the parent's events while we were in the middle of opening the parent.
//
// No sample twice: ThreadOwners. Every event of a thread samples it at the full rate, whichever set it is from. So for
// each (thread, event, CPU) one set is the owner, and samples with another set's id are left out. The owner is simply
// the first that is seen: it cannot run dry, since a thread keeps its events until it exits or they all go, and a
// thread with parts of two sets is counted whole, as each (event, CPU) finds an owner that delivers. This needs no FORK
// record to be right, so it also holds when those were lost. A thread's owners are forgotten at its EXIT, at the FORK
// of another with its tid, and at exec (where a thread can take over its leader's tid).
//
// No thread missed: Coverage decides which threads found must be opened, so that attaching ends although the target
// never stops making threads. C, born of P, is *covered* when it certainly inherited a whole set:
//   - P is covered itself: it had the whole set from birth; or
//   - we had opened P completely before its clone() began. The FORK record tells only when that clone() ended.
//     But a thread is in one clone() at a time, so among the FORKs of P after its opening was complete only the first can belong to a clone() that began before.
//
//        open P     complete             FORK C1               FORK C2
//     ─────┼──────────┼────────────────────┼─────────────────────┼────►
//              └──── clone C1? ────────────┘└──── clone C2 ──────┘
//                    may have copied a part      began after complete: covered
//
// All others are doubtful, and opened. In a chain, where each thread makes one other and ends, every FORK is such a
// first one. Such a chain is followed for three generations only: it goes on uncovered only if each of three openings
// met a clone() in its middle, and every opening adds a set that the whole chain inherits. A thread whose FORK came
// before we listened to its parent was in /proc before that (the kernel publishes a thread first, then writes the
// record), so the scan after the parent's opening finds it: scan and open until two scans bring nothing new. What is
// still in clone() then has its FORK later, and is opened when that arrives.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/perf/decode.h"
#include "agent/perf/record.h"

namespace flamewire::agent {

class ThreadOwners {
public:
    // True when `set` is the owner of (tid, slot), and therefore its sample counts. A slot is an (event, CPU).
    bool accept(std::uint32_t tid, std::uint32_t slot, std::uint32_t set);
    void forget(std::uint32_t tid);
    // After records of forks and exits were lost.
    void forget_all();
    // Threads that are remembered.
    [[nodiscard]] std::size_t size() const { return threads_.size(); }

private:
    // (slot, set), in the order of first sight: a thread runs on few CPUs, so a search from the front ends soon.
    using Slots = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

    std::unordered_map<std::uint32_t, Slots> threads_;
    // Samples of one thread come in runs. Elements of an unordered_map do not move.
    std::uint32_t last_tid_ = 0;
    Slots* last_slots_ = nullptr;
};

class Coverage {
public:
    // All events of `tid` were opened; the last one at `complete_ns`.
    void opened(std::uint32_t tid, std::uint64_t complete_ns);
    // `tid` needs no opening (any more): it is gone, or cannot be opened.
    void skipped(std::uint32_t tid);
    // A FORK record. True when the child must be opened.
    bool forked(std::uint32_t parent_tid, std::uint32_t child_tid, std::uint64_t time_ns);
    void exited(std::uint32_t tid);

    // Opened, covered, or skipped.
    [[nodiscard]] bool known(std::uint32_t tid) const { return threads_.contains(tid); }
    void clear();

private:
    static constexpr std::uint32_t max_generation = 3;

    struct Thread {
        std::uint64_t complete_ns = 0;  // its children are covered when their clone() began after this; 0: from birth
        std::uint32_t first_child = 0;  // of the first FORK after complete_ns
        std::uint32_t generation = 0;   // of doubtful births before this opening
    };
    bool doubtful(std::uint32_t child_tid, std::uint32_t parent_generation);

    std::unordered_map<std::uint32_t, Thread> threads_;
    std::unordered_map<std::uint32_t, std::uint32_t> doubtful_;  // to be opened -> its generation
};

// A thread with several sets writes each of its process and map records several times, one after the other into the
// same ring. Tells the copies by their ids: they repeat the record before them under another set's id.
class SidebandCopies {
public:
    bool is_copy(const Record& record, const RecordOrigin& origin);

private:
    struct Key {
        std::size_t kind = 0;
        std::uint32_t pid = 0, tid = 0;
        std::uint64_t detail = 0;  // address of a mapping, exec, exit
        bool operator==(const Key&) const = default;
    };
    static Key key_of(const Record& record);

    Key last_;
    std::uint64_t first_id_ = 0;  // that wrote the first of the records with this key
};

}  // namespace flamewire::agent
