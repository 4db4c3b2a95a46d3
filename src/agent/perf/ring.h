// A ring that the kernel writes and this process reads: mapping, head, tail. Source: struct perf_event_mmap_page in
// linux/perf_event.h.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>

#include "agent/perf/kernel.h"
#include "base/result.h"

namespace flamewire::agent {

class Ring {
public:
    // Maps `pages` (a power of two) of data for the event `fd`. permission: the mapping exceeds
    // kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK; the caller halves the size.
    static Result<Ring> map(int fd, std::uint32_t pages, const Kernel& kernel);
    Ring(Ring&& other) noexcept;
    Ring& operator=(Ring&& other) noexcept;
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;
    ~Ring();

    [[nodiscard]] const std::byte* data() const { return data_; }
    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] std::uint64_t mapped_bytes() const { return mapped_; }

    // See Kernel::head.
    [[nodiscard]] std::uint64_t head(const Kernel& kernel) const { return kernel.head(*page_); }
    [[nodiscard]] std::uint64_t tail() const {
        // Only this process writes it.
        return __atomic_load_n(&page_->data_tail, __ATOMIC_RELAXED);
    }
    void release_to(std::uint64_t tail) {
        // Release order pairs with the kernel's check of data_tail before it writes: all reads of the bytes below are
        // done before the kernel may overwrite them.
        __atomic_store_n(&page_->data_tail, tail, __ATOMIC_RELEASE);
    }

private:
    Ring(perf_event_mmap_page* page, std::uint64_t mapped, std::uint64_t page_size);
    void unmap();

    perf_event_mmap_page* page_ = nullptr;
    const std::byte* data_ = nullptr;
    std::uint64_t size_ = 0;
    std::uint64_t mapped_ = 0;
};

}  // namespace flamewire::agent
