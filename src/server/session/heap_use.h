// How much heap memory a piece of work holds, counted where it is taken: operator new and delete of the thread that does
// the work. What C libraries take by malloc() alone, such as zstd's window, is not counted.
#pragma once

#include <cstdint>

namespace flamewire::server {

// Counts from its construction to its destruction, on the thread of both; one at a time on a thread. What other threads
// free or take does not count. The cost for other threads is a test of a thread-local flag.
class HeapUse {
public:
    HeapUse();
    ~HeapUse();
    HeapUse(const HeapUse&) = delete;
    HeapUse& operator=(const HeapUse&) = delete;

    // Bytes taken and not freed, as malloc() rounds them up. Below 0 if more of what was there before is freed.
    [[nodiscard]] std::int64_t bytes() const;
    // The most that bytes() has been.
    [[nodiscard]] std::int64_t peak_bytes() const;
};

}  // namespace flamewire::server
