#include "server/link/dial_info.h"

#include <asio/error.hpp>
#include <fmt/format.h>

#include "server/limits.h"

namespace flamewire::server {

std::string explain_dial(const std::string& host, std::uint16_t port, const std::error_code& error, bool timed_out) {
    if (timed_out)
        return fmt::format(
            "no answer from {}:{} within {} s: check the address, that the board is on, and that no "
            "firewall is in between",
            host, port, limits::dial_time.count());
    if (error == asio::error::connection_refused)
        return fmt::format(
            "{}:{} refuses connections: run flamewire-agent --listen --port {} there, or "
            "check the port",
            host, port, port);
    if (error == asio::error::host_not_found || error == asio::error::host_not_found_try_again ||
        error == asio::error::no_data)
        return fmt::format("the name {} is not known here: check its spelling, or give the IP address", host);
    if (error == asio::error::network_unreachable || error == asio::error::host_unreachable)
        return fmt::format("no route to {}: check the network and the address", host);
    return fmt::format("{}:{}: {}", host, port, error.message());
}

}  // namespace flamewire::server
