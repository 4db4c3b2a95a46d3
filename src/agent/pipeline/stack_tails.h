// The frames between libc's start of a program or thread and the root, which frame pointers do not reach: completes a
// chain that ends where the last function that keeps a frame pointer returns to.
//
// These frames are the same in every stack of a thread for as long as it lives, so they are found once for each such
// return address: from a stack that was walked whole, or from the thread's stack in memory, where the return address
// lies near the upper end. What is read there counts only when a walk from it reaches the root within a few frames.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "unwind/walk/unwinder.h"

namespace flamewire::agent {

class StackTails {
public:
    StackTails(std::string proc_root, unwind::Unwinder& unwinder)
        : proc_root_(std::move(proc_root)), unwinder_(unwinder) {}

    // A stack that reached its root, in an address space of this content (`space`).
    void learn(std::uint64_t space, const std::vector<unwind::Frame>& frames);

    enum class Answer { found, none, later };
    // Appends what lies outside of `return_address`. `stack_pointer` of the thread tells which memory is its stack; 0:
    // not known. `later`: too many were looked for just now.
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
    // Empty: none; a return address with two different continuations has none either.
    struct Tail {
        std::vector<std::uint64_t> addresses;
        bool ambiguous = false;
    };

    std::vector<std::uint64_t> read(std::uint32_t pid, unwind::Arch arch, std::uint64_t return_address,
                                    std::uint64_t stack_pointer, unwind::CodeMap& map);

    std::string proc_root_;
    unwind::Unwinder& unwinder_;
    std::unordered_map<Key, Tail, KeyHash> tails_;
    std::uint64_t window_ns_ = 0;  // start of the second in which looks are counted
    unsigned looks_ = 0;
    std::vector<unwind::Frame> scratch_;
};

}  // namespace flamewire::agent
