#pragma once

#include <cstdint>

namespace flamewire::server {

// Bytes that a TCP socket has received so far, of TLS too (Linux 4.1 on); nothing is known: as many as there can be.
std::uint64_t tcp_bytes_received(int socket);
// And those that were sent and have arrived at the other end.
std::uint64_t tcp_bytes_acknowledged(int socket);

}  // namespace flamewire::server
