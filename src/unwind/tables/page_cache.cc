#include "unwind/tables/page_cache.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace flamewire::unwind {
namespace {

constexpr std::uint32_t none = 0xffffffff;

}  // namespace

// Entries are stored in a vector and are in two linked lists: by last use, and within their bucket. Freed entries are
// reused for later pages.
struct PageCache::State {
    struct Entry {
        std::uint64_t number = 0;
        std::string bytes;
        ModuleId module = 0;
        std::uint32_t newer = none, older = none;  // `older` also links the free entries
        std::uint32_t next = none;                 // of the same bucket
    };
    // Approximate overhead of the allocator per page.
    static constexpr std::size_t allocation_overhead = 16;

    std::vector<Entry> entries;
    std::vector<std::uint32_t> buckets = std::vector<std::uint32_t>(64, none);
    std::uint32_t newest = none, oldest = none, free = none;
    std::size_t used = 0, page_bytes = 0, limit = 0;

    std::uint32_t& bucket_of(ModuleId module, std::uint64_t number) {
        const std::uint64_t mixed = (number + (std::uint64_t{module} << 32)) * 0x9e3779b97f4a7c15;
        return buckets[static_cast<std::size_t>(mixed >> 32) & (buckets.size() - 1)];
    }

    [[nodiscard]] std::uint32_t find(ModuleId module, std::uint64_t number) {
        std::uint32_t at = bucket_of(module, number);
        while (at != none && (entries[at].number != number || entries[at].module != module)) at = entries[at].next;
        return at;
    }

    void unlink(std::uint32_t at) {
        const Entry& entry = entries[at];
        (entry.newer == none ? newest : entries[entry.newer].older) = entry.older;
        (entry.older == none ? oldest : entries[entry.older].newer) = entry.newer;
    }

    void link_as_newest(std::uint32_t at) {
        entries[at].newer = none;
        entries[at].older = newest;
        (newest == none ? oldest : entries[newest].newer) = at;
        newest = at;
    }

    static std::size_t cost(const std::string& bytes) {
        return bytes.empty() ? 0 : bytes.capacity() + 1 + allocation_overhead;
    }

    void remove(std::uint32_t at) {
        unlink(at);
        std::uint32_t* link = &bucket_of(entries[at].module, entries[at].number);
        while (*link != at) link = &entries[*link].next;
        *link = entries[at].next;
        page_bytes -= cost(entries[at].bytes);
        entries[at].bytes = std::string();
        entries[at].older = std::exchange(free, at);
        --used;
    }

    void rehash() {
        buckets.assign(buckets.size() * 2, none);
        for (std::uint32_t at = newest; at != none; at = entries[at].older) {
            std::uint32_t& bucket = bucket_of(entries[at].module, entries[at].number);
            entries[at].next = std::exchange(bucket, at);
        }
    }

    [[nodiscard]] std::size_t memory() const {
        return page_bytes + entries.capacity() * sizeof(Entry) + buckets.capacity() * sizeof(std::uint32_t);
    }

    // The newest page is never removed: the caller is about to use it.
    void shrink() {
        while (used > 1 && page_bytes + used * (sizeof(Entry) + 2 * sizeof(std::uint32_t)) > limit) remove(oldest);
    }

    std::uint32_t add(ModuleId module, std::uint64_t number, std::string bytes) {
        std::uint32_t at = free;
        if (at != none) {
            free = entries[at].older;
        } else {
            at = static_cast<std::uint32_t>(entries.size());
            if (entries.size() == buckets.size()) rehash();
            entries.emplace_back();
        }
        page_bytes += cost(bytes);
        ++used;
        Entry& entry = entries[at];
        entry.number = number;
        entry.module = module;
        entry.bytes = std::move(bytes);
        entry.next = std::exchange(bucket_of(module, number), at);
        link_as_newest(at);
        shrink();
        return at;
    }
};

PageCache::PageCache(std::size_t limit_bytes) : state_(std::make_unique<State>()) { state_->limit = limit_bytes; }
PageCache::~PageCache() = default;

Bytes PageCache::page(ModuleId module, const elf::ByteSource& source, std::uint64_t number) {
    State& state = *state_;
    std::uint32_t at = state.newest;  // consecutive reads often need the same page
    if (at == none || state.entries[at].number != number || state.entries[at].module != module)
        at = state.find(module, number);
    if (at == none) {
        std::string bytes;
        if (number < (std::uint64_t{1} << 62) / page_size)
            if (auto read = source(number * page_size, page_size)) bytes = std::move(*read);
        if (bytes.size() > page_size) bytes.resize(page_size);
        at = state.add(module, number, std::move(bytes));
    } else if (at != state.newest) {
        state.unlink(at);
        state.link_as_newest(at);
    }
    return as_bytes_view(state.entries[at].bytes);
}

void PageCache::forget(ModuleId module) {
    for (std::uint32_t at = state_->newest; at != none;) {
        const std::uint32_t older = state_->entries[at].older;
        if (state_->entries[at].module == module) state_->remove(at);
        at = older;
    }
}

void PageCache::set_limit(std::size_t limit_bytes) {
    state_->limit = limit_bytes;
    state_->shrink();
}

std::size_t PageCache::memory_bytes() const { return state_->memory(); }

}  // namespace flamewire::unwind
