// Memory of the rule cache: one zeroed block. Only pages that hold rules are touched.
#include "unwind/tables/rule_cache.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <exception>
#include <utility>

namespace flamewire::unwind {

void RuleCache::Free::operator()(void* memory) const { std::free(memory); }

RuleCache::RuleCache(std::size_t memory_bytes)
    : count_(std::bit_floor(std::max<std::size_t>(memory_bytes / sizeof(Entry), 64))),
      shift_(65 - static_cast<unsigned>(std::countr_zero(count_))),
      // Zero bytes are empty entries. calloc takes large blocks from the kernel, which zeroes them on first use.
      memory_(std::calloc(count_ + 1, sizeof(Entry))) {
    if (!memory_) std::terminate();  // as operator new does in a program without exceptions
    void* aligned = memory_.get();
    std::size_t space = (count_ + 1) * sizeof(Entry);
    entries_ = static_cast<Entry*>(std::align(alignof(Entry), count_ * sizeof(Entry), aligned, space));
}

void RuleCache::forget(ModuleId module) {
    for (std::size_t i = 0; i < count_; ++i)
        if (entries_[i].key.module() == module) entries_[i] = {};
}

RowTable::RowTable(std::size_t rows) : capacity_(std::clamp<std::size_t>(rows, 4, 256)) {}

const FrameRow* RowTable::find(std::uint16_t slot, const RuleKey& key) {
    if (slot >= entries_.size() || entries_[slot].key != key) return nullptr;
    entries_[slot].used = ++clock_;
    return &entries_[slot].row;
}

std::uint16_t RowTable::put(const RuleKey& key, FrameRow row) {
    if (entries_.size() < capacity_) {
        entries_.push_back({key, ++clock_, std::move(row)});
        return static_cast<std::uint16_t>(entries_.size() - 1);
    }
    const auto oldest = std::ranges::min_element(entries_, {}, &Entry::used);
    *oldest = {key, ++clock_, std::move(row)};
    return static_cast<std::uint16_t>(oldest - entries_.begin());
}

void RowTable::forget(ModuleId module) {
    for (Entry& entry : entries_)
        if (entry.key.module() == module) entry = {};
}

std::size_t RowTable::memory_bytes() const {
    std::size_t bytes = entries_.capacity() * sizeof(Entry);
    for (const Entry& entry : entries_) bytes += entry.row.expressions.capacity();
    return bytes;
}

}  // namespace flamewire::unwind
