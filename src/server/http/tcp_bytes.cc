// A separate file: linux/tcp.h has the complete struct tcp_info, but conflicts with netinet/tcp.h, which asio includes.
#include "server/http/tcp_bytes.h"

#include <linux/tcp.h>
#include <sys/socket.h>

#include <cstddef>
#include <limits>
#include <netinet/in.h>

namespace flamewire::server {
namespace {

// The same kernel version added both fields.
bool read_info(int socket, tcp_info& info) {
    socklen_t size = sizeof info;
    return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           size >= offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
}

}  // namespace

std::uint64_t tcp_bytes_received(int socket) {
    tcp_info info{};
    return read_info(socket, info) ? info.tcpi_bytes_received : std::numeric_limits<std::uint64_t>::max();
}

std::uint64_t tcp_bytes_acknowledged(int socket) {
    tcp_info info{};
    return read_info(socket, info) ? info.tcpi_bytes_acked : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace flamewire::server
