#include "secure/attempts.h"

#include <algorithm>

namespace flamewire::secure {

void Attempts::failed(const std::string& address, std::uint64_t now_ns) {
    if (!forgotten_ns_.contains(address) && forgotten_ns_.size() >= max_addresses) {
        const auto earlier = [](const auto& one, const auto& other) { return one.second < other.second; };
        forgotten_ns_.erase(std::ranges::min_element(forgotten_ns_, earlier));
    }
    std::uint64_t& forgotten_ns = forgotten_ns_[address];
    // The cap: one pause after the last failure, one more is allowed, however many failed at the same moment.
    forgotten_ns = std::min(std::max(forgotten_ns, now_ns) + pause_ns, now_ns + allowed_failures * pause_ns);
}

bool Attempts::exceeded(const std::string& address, std::uint64_t now_ns) const {
    const auto found = forgotten_ns_.find(address);
    return found != forgotten_ns_.end() && found->second > now_ns + (allowed_failures - 1) * pause_ns;
}

}  // namespace flamewire::secure
