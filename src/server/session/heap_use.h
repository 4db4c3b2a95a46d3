// Measures the heap memory that a piece of work holds. It counts operator new and delete of the thread that does the
// work. Memory that C libraries get from malloc() alone, such as zstd's window, is not counted.
#pragma once

#include <cstdint>

namespace flamewire::server {

// Counts from construction to destruction, both on the same thread, and at most one instance per thread. Allocations of
// other threads do not count. Other threads pay for a test of a thread-local flag.
class HeapUse {
public:
    HeapUse();
    ~HeapUse();
    HeapUse(const HeapUse&) = delete;
    HeapUse& operator=(const HeapUse&) = delete;

    // Bytes allocated and not freed, rounded up as malloc() does. Negative if the work frees more than it allocates.
    [[nodiscard]] std::int64_t bytes() const;
    // The maximum of bytes().
    [[nodiscard]] std::int64_t peak_bytes() const;
};

}  // namespace flamewire::server
