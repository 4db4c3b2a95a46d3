// The callers of code that runs on another stack than they do: of C that a goroutine called. The copied stack does not
// contain them, and the kernel's chain does not reach them if that code uses the frame pointer for something else. The
// walk restores it at the switch, so they are found in the process's memory.
//
// The process is not stopped, and the thread may have returned since the sample. So callers count only if a return
// address of the copy is still in place, and if the memory has hardly ever shown others in their place.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "unwind/walk/unwinder.h"

namespace flamewire::agent {

class OtherStacks {
public:
    OtherStacks(std::string proc_root, unwind::Unwinder& unwinder)
        : proc_root_(std::move(proc_root)), unwinder_(unwinder) {}

    // Appends the callers of the outermost frame, where a walk ended with StopReason::other_stack. `space` is the
    // generation of the address space. False: they are unknown.
    bool append_callers(std::uint64_t space, std::uint32_t pid, unwind::Arch arch, unwind::CodeMap& map,
                        std::uint64_t now_ns, std::size_t max_depth, std::vector<unwind::Frame>& frames);

private:
    // What the memory showed most often, and how often it did and did not. The first frame is their callee.
    struct Callers {
        std::vector<unwind::Frame> frames;
        std::uint64_t read_ns = 0;
        std::uint32_t seen = 0, others = 0;
        [[nodiscard]] bool certain() const;
    };
    void read(std::uint32_t pid, unwind::Arch arch, unwind::CodeMap& map, const unwind::Frame& inner,
              const unwind::Frame& outermost, Callers& callers);

    std::string proc_root_;
    unwind::Unwinder& unwinder_;
    std::unordered_map<std::uint64_t, Callers> known_;  // by a hash of the address space, the place and the code called
    std::uint64_t window_ns_ = 0;                       // start of the second for which reads_ counts
    unsigned reads_ = 0;
    std::vector<unwind::Frame> scratch_;
};

}  // namespace flamewire::agent
