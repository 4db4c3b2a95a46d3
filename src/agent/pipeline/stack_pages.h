// Makes stack pages present that the kernel does not copy with a sample. A copy ends at the first page that is not
// present: one that the thread skipped (in a mostly unused array), or one that is swapped out.
#pragma once

#include <cstdint>

namespace flamewire::agent {

class StackPages {
public:
    // The copy of a sample at `time_ns` ended at `address`, `bytes` short of its size. Reads a word of each page there.
    // This makes the pages present, so copies of later samples continue past them. (A page that was never written reads
    // as zeros and takes no memory.) False: no stack is there, it is not readable, or the limit per second is reached.
    bool make_present(std::uint32_t pid, std::uint64_t address, std::uint64_t bytes, std::uint64_t time_ns);

private:
    std::uint64_t window_ns_ = 0;  // start of the second for which reads are counted
    unsigned reads_ = 0;
};

}  // namespace flamewire::agent
