// Maps an address to its host, for limits per host.
#pragma once

#include <asio/ip/address.hpp>

#include <algorithm>
#include <string>

namespace flamewire::secure {

// Returns an IPv4 address, also for an IPv4-mapped one, or the first 64 bits of an IPv6 address: a host that has one
// address of such a prefix can use all of them (RFC 6177).
inline std::string host_of(const asio::ip::address& address) {
    if (address.is_v4()) return address.to_string();
    const asio::ip::address_v6 long_address = address.to_v6();
    if (long_address.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, long_address).to_string();
    if (long_address.is_loopback()) return long_address.to_string();
    asio::ip::address_v6::bytes_type bytes = long_address.to_bytes();
    std::fill(bytes.begin() + 8, bytes.end(), 0);
    return asio::ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace flamewire::secure
