#include "secure/attempts.h"

#include <algorithm>

namespace flamewire::secure {

void Attempts::failed(const std::string& address, std::uint64_t now_ns) {
    if (!failures_.contains(address) && failures_.size() >= max_addresses) {
        const auto earlier = [](const auto& one, const auto& other) {
            return one.second.last_ns < other.second.last_ns;
        };
        failures_.erase(std::ranges::min_element(failures_, earlier));
    }
    Failures& failures = failures_[address];
    if (failures.count == 0 || now_ns - failures.first_ns > window_ns) failures = {0, now_ns, now_ns};
    ++failures.count;
    failures.last_ns = now_ns;
}

std::uint64_t Attempts::wait_left_ns(const std::string& address, std::uint64_t now_ns) const {
    const auto found = failures_.find(address);
    if (found == failures_.end() || found->second.count < allowed_failures) return 0;
    const std::uint64_t until = found->second.last_ns + wait_ns;
    return until > now_ns ? until - now_ns : 0;
}

}  // namespace flamewire::secure
