#pragma once

#include <cstdint>

namespace flamewire::server {

// Bytes that a TCP socket has received so far, including TLS overhead (Linux 4.1 and later). Returns the maximum of the
// type if the kernel does not report it.
std::uint64_t tcp_bytes_received(int socket);
// Bytes that were sent and that the other end has acknowledged.
std::uint64_t tcp_bytes_acknowledged(int socket);

}  // namespace flamewire::server
