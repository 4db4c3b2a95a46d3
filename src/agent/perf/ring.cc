#include "agent/perf/ring.h"

#include <sys/mman.h>

#include <utility>

namespace flamewire::agent {

Ring::Ring(perf_event_mmap_page* page, std::uint64_t mapped, std::uint64_t page_size)
    : page_(page),
      data_(static_cast<const std::byte*>(static_cast<const void*>(page)) + page_size),
      size_(mapped - page_size),
      mapped_(mapped) {}

Result<Ring> Ring::map(int fd, std::uint32_t pages, const Kernel& kernel) {
    // One page of positions precedes the data.
    const std::uint64_t bytes = (std::uint64_t{pages} + 1) * kernel.page_size;
    int error = 0;
    void* address = kernel.map(fd, static_cast<std::size_t>(bytes), error);
    if (!address) return fail_errno("map a perf ring", -error);
    return Ring(static_cast<perf_event_mmap_page*>(address), bytes, kernel.page_size);
}

Ring::Ring(Ring&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)), data_(other.data_), size_(other.size_), mapped_(other.mapped_) {}

Ring& Ring::operator=(Ring&& other) noexcept {
    if (this != &other) {
        unmap();
        page_ = std::exchange(other.page_, nullptr);
        data_ = other.data_;
        size_ = other.size_;
        mapped_ = other.mapped_;
    }
    return *this;
}

Ring::~Ring() { unmap(); }

void Ring::unmap() {
    if (page_) ::munmap(page_, static_cast<std::size_t>(mapped_));
    page_ = nullptr;
}

}  // namespace flamewire::agent
