// The frames of libc's startup code up to the root, which frame pointers do not reach. Completes a chain that ends at
// the return address of the last function that keeps a frame pointer.
//
// These frames are the same in every stack of a thread while it lives, so they are found once for each such return
// address: from a complete walk, or from the thread's stack in memory, near whose upper end the return address is. A
// return address in memory counts only if a walk from it reaches the root within a few frames.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "unwind/walk/unwinder.h"

namespace flamewire::agent {

class ThreadRootFrames {
public:
    ThreadRootFrames(std::string proc_root, unwind::Unwinder& unwinder)
        : proc_root_(std::move(proc_root)), unwinder_(unwinder) {}

    // Adds a stack that reached its root. `space` is the generation of its address space.
    void record(std::uint64_t space, const std::vector<unwind::Frame>& frames);

    enum class Answer { found, none, later };
    // Appends the frames outside `return_address`. The thread's `stack_pointer` identifies its stack memory; 0:
    // unknown. `later`: the limit of reads per second is reached.
    Answer find(std::uint64_t space, std::uint32_t pid, unwind::Arch arch, std::uint64_t return_address,
                std::uint64_t stack_pointer, unwind::CodeMap& map, std::uint64_t now_ns,
                std::vector<unwind::Frame>& frames);

private:
    struct Key {
        std::uint64_t space = 0, return_address = 0;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const;
    };
    // Empty: no tail. A return address with two different continuations does not have one either.
    struct Tail {
        std::vector<std::uint64_t> addresses;
        bool ambiguous = false;
    };

    std::vector<std::uint64_t> read(std::uint32_t pid, unwind::Arch arch, std::uint64_t return_address,
                                    std::uint64_t stack_pointer, unwind::CodeMap& map);

    std::string proc_root_;
    unwind::Unwinder& unwinder_;
    std::unordered_map<Key, Tail, KeyHash> root_frames_;
    std::uint64_t window_ns_ = 0;  // start of the second for which reads_ counts reads
    unsigned reads_ = 0;
    std::vector<unwind::Frame> scratch_;
};

}  // namespace flamewire::agent
