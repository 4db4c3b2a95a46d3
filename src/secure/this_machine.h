// Whether an address is this machine's loopback, where each local user can connect and listen.
#pragma once

#include <asio/ip/address.hpp>

namespace flamewire::secure {

inline bool on_this_machine(const asio::ip::address& address) {
    const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
    return mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback()
                  : address.is_loopback();
}

}  // namespace flamewire::secure
