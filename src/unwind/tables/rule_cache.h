// Cache of compiled rules by module and address. All processes that run a module share its rules, wherever it is
// mapped. Each rule has two possible places: every frame needs a lookup, and with one place, two hot rules that collide
// would be compiled again and again. Rows that do not fit a compact rule are in a RowTable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "unwind/frame/frame_row.h"
#include "unwind/tables/code_map.h"
#include "unwind/tables/rule.h"

namespace flamewire::unwind {

// Key of a rule. `address` (ELF virtual) is what was looked up: a return address - 1, or the pc itself. Both can be the
// same number but mean different functions or places, so the key distinguishes them.
struct RuleKey {
    std::uint64_t address = 0;
    std::uint64_t module_and_kind = 0;  // 0: no key (module 0 has no rules)

    RuleKey() = default;
    RuleKey(ModuleId module, std::uint64_t looked_up, bool return_address)
        : address(looked_up), module_and_kind(std::uint64_t{module} << 1 | (return_address ? 1 : 0)) {}
    [[nodiscard]] ModuleId module() const { return static_cast<ModuleId>(module_and_kind >> 1); }
    [[nodiscard]] bool is_return_address() const { return (module_and_kind & 1) != 0; }
    bool operator==(const RuleKey&) const = default;
};

class RuleCache {
public:
    // Uses at most `memory_bytes` (but at least 64 entries). Pages that were never written cost no memory.
    explicit RuleCache(std::size_t memory_bytes);
    RuleCache(const RuleCache&) = delete;
    RuleCache& operator=(const RuleCache&) = delete;

    // nullptr if the key is not cached. Valid until the next put().
    [[nodiscard]] const Rule* find(const RuleKey& key) const {
        const Entry* entry = &entries_[place_of(key)];
        if (entry[0].key == key) return &entry[0].rule;
        return entry[1].key == key ? &entry[1].rule : nullptr;
    }
    const Rule& put(const RuleKey& key, const Rule& rule) {
        Entry* entry = &entries_[place_of(key)];
        if (entry[0].key != key) entry[1] = entry[0];
        entry[0] = {key, rule};
        return entry[0].rule;
    }
    void forget(ModuleId module);
    [[nodiscard]] std::size_t memory_bytes() const { return count_ * sizeof(Entry); }

private:
    // One cache line.
    struct alignas(64) Entry {
        RuleKey key;
        Rule rule;
    };
    static_assert(sizeof(Entry) == 64);
    struct Free {
        void operator()(void* memory) const;
    };

    // Index of the first of the two entries.
    [[nodiscard]] std::size_t place_of(const RuleKey& key) const {
        // Fibonacci hashing: the high bits of a product with 2^64 / golden ratio are distributed best.
        return static_cast<std::size_t>(((key.module_and_kind << 40) ^ key.address) * 0x9e3779b97f4a7c15u >> shift_) *
               2;
    }

    std::size_t count_;
    unsigned shift_;
    std::unique_ptr<void, Free> memory_;
    Entry* entries_;
};

// Whole rows, for the few addresses that need them. At most 256; the least recently used one is replaced.
class RowTable {
public:
    explicit RowTable(std::size_t rows);

    // The row that put() stored in `slot`, or nullptr if it was replaced.
    const FrameRow* find(std::uint16_t slot, const RuleKey& key);
    // Returns the slot.
    std::uint16_t put(const RuleKey& key, FrameRow row);
    void forget(ModuleId module);
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    struct Entry {
        RuleKey key;
        std::uint64_t used = 0;
        FrameRow row;
    };
    std::size_t capacity_;
    std::vector<Entry> entries_;
    std::uint64_t clock_ = 0;
};

}  // namespace flamewire::unwind
