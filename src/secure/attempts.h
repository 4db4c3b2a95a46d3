// Counts failed handshakes per address. A 128-bit key cannot be guessed, so no address is locked out. But each handshake
// costs work, so an address may fail 20 times at once, and then twice per second. The caller delays the handshakes of
// an address that exceeds this. Pure: the caller passes the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace flamewire::secure {

class Attempts {
public:
    static constexpr unsigned allowed_failures = 20;
    static constexpr std::uint64_t pause_ns = 500'000'000;  // after which one more failure is allowed
    // Addresses in the table. If it is full, the address whose failures expire first is removed.
    static constexpr std::size_t max_addresses = 1024;

    // `address` has no port.
    void failed(const std::string& address, std::uint64_t now_ns);
    // The address has failed more often than allowed.
    [[nodiscard]] bool exceeded(const std::string& address, std::uint64_t now_ns) const;

private:
    std::map<std::string, std::uint64_t> forgotten_ns_;  // by address: when all of its failures expire
};

}  // namespace flamewire::secure
