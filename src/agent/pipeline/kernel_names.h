// Tracks which kernel addresses of a recording have no name yet. At most 65,536 addresses per recording.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/id_table.h"

namespace flamewire::agent {

class KernelNames {
public:
    void saw(std::uint64_t address) {
        if (addresses_.size() >= max_addresses) return;
        const std::size_t before = seen_.size();
        seen_.find_or_add({address}, 1);
        if (seen_.size() != before) addresses_.push_back(address);
    }
    // [address, address + size) now has a name. Addresses are relative to _text and may wrap below it, so the map's
    // order is only good for lookups.
    void named(std::uint64_t address, std::uint64_t size) {
        if (named_.size() < max_addresses) named_[address] = std::max(named_[address], size);
    }
    // The receiver does not have the names sent so far.
    void forget_names() { named_.clear(); }

    [[nodiscard]] std::vector<std::uint64_t> unnamed() const {
        std::vector<std::uint64_t> rest;
        for (const std::uint64_t address : addresses_)
            if (!is_named(address)) rest.push_back(address);
        return rest;
    }

private:
    static constexpr std::size_t max_addresses = 65'536;
    struct Key {
        std::uint64_t address = 0;
        bool operator==(const Key&) const = default;
        [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const { return mix_in(seed, address); }
    };

    [[nodiscard]] bool is_named(std::uint64_t address) const {
        const auto above = named_.upper_bound(address);
        if (above == named_.begin()) return false;
        const auto function = std::prev(above);
        return address - function->first < function->second;
    }

    IdTable<Key> seen_;
    std::vector<std::uint64_t> addresses_;
    std::map<std::uint64_t, std::uint64_t> named_;
};

}  // namespace flamewire::agent
