// Assigns numbers to entries of a format's tables.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "profile/store/model.h"

namespace flamewire::profile {

// Numbers entries from 0 in the order of their first use.
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
