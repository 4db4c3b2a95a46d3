// Reads the memory of live processes for stacks that are deeper than their copies, and passes the results to the
// stitcher. Between two rounds of samples, it checks whether the return addresses of a remembered stack are still the
// same. If no stack is remembered, it continues the walk where the copy ended.
//
// The target is not stopped while it is read. So the results never become frames of a sample directly; the stitcher only
// uses them to decide which remembered stacks to trust.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/process/process_table.h"
#include "unwind/join/stack_stitcher.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::agent {

class StackVerifier {
public:
    StackVerifier(std::string proc_root, ProcessTable& processes, unwind::Unwinder& unwinder,
                  unwind::StackStitcher& stitcher)
        : proc_root_(std::move(proc_root)), processes_(processes), unwinder_(unwinder), stitcher_(stitcher) {}

    // The unwinder's last walk reached the end of the copy with these frames. `known`: the stitcher completed it.
    void note(ThreadHandle thread, ProcessHandle process, std::uint32_t pid, unwind::Arch arch, bool known,
              const std::vector<unwind::Frame>& frames);
    // Call it before the stitcher gets samples that may be newer.
    void verify();
    // Whether to call verify() again soon: at the start, and while the stitcher has unconfirmed stacks.
    [[nodiscard]] bool needs_poll() const;

private:
    struct Thread {
        ProcessHandle process = 0;
        std::uint32_t pid = 0;
        unwind::Arch arch = unwind::Arch::x86_64;
        // Frames of a stack that the stitcher does not remember. Empty: it is remembered, or walk_on() ran.
        std::vector<unwind::Frame> frames;
        unwind::Registers outermost;
    };
    bool read_stack(std::uint64_t id, const Thread& thread);
    void walk_on(std::uint64_t id, Thread& thread);

    std::string proc_root_;
    ProcessTable& processes_;
    unwind::Unwinder& unwinder_;
    unwind::StackStitcher& stitcher_;
    unsigned rounds_ = 0;
    std::unordered_map<ThreadHandle, Thread> threads_;
    std::vector<ThreadHandle> unknown_;  // threads with frames
    std::vector<unwind::StackPlace> places_;
    std::vector<unwind::Frame> scratch_;
};

}  // namespace flamewire::agent
