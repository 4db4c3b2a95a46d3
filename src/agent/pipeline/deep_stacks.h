// Stacks deeper than their copies, of live processes: tells the joiner what memory holds. Between two rounds of samples
// it reads where a remembered stack has its return addresses, whether they are still the same; and where nothing is
// remembered, it walks on from where the copy ended.
//
// Reading takes no lock on the target, which goes on meanwhile: nothing of it is drawn, it only tells the joiner what
// to believe.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/process/process_table.h"
#include "unwind/join/joiner.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::agent {

class DeepStacks {
public:
    DeepStacks(std::string proc_root, ProcessTable& processes, unwind::Unwinder& unwinder, unwind::Joiner& joiner)
        : proc_root_(std::move(proc_root)), processes_(processes), unwinder_(unwinder), joiner_(joiner) {}

    // The unwinder's last walk ended with these frames at the end of the copy. `known`: it was completed.
    void note(ThreadHandle thread, ProcessHandle process, std::uint32_t pid, unwind::Arch arch, bool known,
              const std::vector<unwind::Frame>& frames);
    // Call before samples that may be newer are given to the joiner.
    void look();
    // Looking again soon would tell more: at the start, and while stacks wait to be believed.
    [[nodiscard]] bool wants_looks() const;

private:
    struct Thread {
        ProcessHandle process = 0;
        std::uint32_t pid = 0;
        unwind::Arch arch = unwind::Arch::x86_64;
        // Of a stack that nothing is remembered for; empty: it is known, or was walked on.
        std::vector<unwind::Frame> frames;
        unwind::Registers outermost;
    };
    bool look_at(std::uint64_t id, const Thread& thread);
    void walk_on(std::uint64_t id, Thread& thread);

    std::string proc_root_;
    ProcessTable& processes_;
    unwind::Unwinder& unwinder_;
    unwind::Joiner& joiner_;
    unsigned rounds_ = 0;
    std::unordered_map<ThreadHandle, Thread> threads_;
    std::vector<ThreadHandle> unknown_;  // those with frames
    std::vector<unwind::Joiner::Place> places_;
    std::vector<unwind::Frame> scratch_;
};

}  // namespace flamewire::agent
