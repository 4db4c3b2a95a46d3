// Numbers for what a format lists in a table of its own.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "profile/store/model.h"

namespace flamewire::profile {

// Entries in the order in which they were first asked for.
template <class Key>
class Numbered {
public:
    std::uint32_t of(const Key& key) {
        const auto [entry, added] = numbers_.try_emplace(key, narrow32(order.size()));
        if (added) order.push_back(key);
        return entry->second;
    }
    std::vector<Key> order;

private:
    std::map<Key, std::uint32_t> numbers_;
};

}  // namespace flamewire::profile
