// Who tried wrong keys lately. A key of 128 bits cannot be guessed, so nobody is locked out; but each handshake costs
// work, so an address may fail 20 times at once, and then twice a second. Pure: the caller gives the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace flamewire::secure {

class Attempts {
public:
    static constexpr unsigned allowed_failures = 20;
    static constexpr std::uint64_t pause_ns = 500'000'000;  // after which one more is allowed
    // Addresses that are remembered; beyond, the one that failed longest ago is forgotten.
    static constexpr std::size_t max_addresses = 1024;

    // An address without its port.
    void failed(const std::string& address, std::uint64_t now_ns);
    // How long it has to wait; 0: it may try.
    [[nodiscard]] std::uint64_t wait_left_ns(const std::string& address, std::uint64_t now_ns) const;

private:
    std::map<std::string, std::uint64_t> forgotten_ns_;  // by address: when all of its failures are forgotten
};

}  // namespace flamewire::secure
