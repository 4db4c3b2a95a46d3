// Who tried wrong keys lately. After three failures within a minute an address has to wait for half a minute. Pure: the
// caller gives the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace flamewire::secure {

class Attempts {
public:
    static constexpr unsigned allowed_failures = 3;
    static constexpr std::uint64_t window_ns = 60'000'000'000, wait_ns = 30'000'000'000;
    // Addresses that are remembered; beyond, the one that failed longest ago is forgotten.
    static constexpr std::size_t max_addresses = 1024;

    // An address without its port.
    void failed(const std::string& address, std::uint64_t now_ns);
    void succeeded(const std::string& address) { failures_.erase(address); }
    // How long it has to wait; 0: it may try.
    [[nodiscard]] std::uint64_t wait_left_ns(const std::string& address, std::uint64_t now_ns) const;

private:
    struct Failures {
        unsigned count = 0;
        std::uint64_t first_ns = 0, last_ns = 0;
    };
    std::map<std::string, Failures> failures_;
};

}  // namespace flamewire::secure
