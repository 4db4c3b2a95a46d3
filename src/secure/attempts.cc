#include "secure/attempts.h"

#include <algorithm>

namespace flamewire::secure {

void Attempts::failed(const std::string& address, std::uint64_t now_ns) {
    if (!forgotten_ns_.contains(address) && forgotten_ns_.size() >= max_addresses) {
        const auto earlier = [](const auto& one, const auto& other) { return one.second < other.second; };
        forgotten_ns_.erase(std::ranges::min_element(forgotten_ns_, earlier));
    }
    std::uint64_t& forgotten_ns = forgotten_ns_[address];
    // The cap limits the wait to one pause, however many attempts fail at the same moment.
    forgotten_ns = std::min(std::max(forgotten_ns, now_ns) + pause_ns, now_ns + allowed_failures * pause_ns);
}

std::uint64_t Attempts::wait_left_ns(const std::string& address, std::uint64_t now_ns) const {
    const auto found = forgotten_ns_.find(address);
    if (found == forgotten_ns_.end()) return 0;
    const std::uint64_t until = found->second - std::min(found->second, (allowed_failures - 1) * pause_ns);
    return until > now_ns ? until - now_ns : 0;
}

}  // namespace flamewire::secure
