// Network interfaces and disks: counters since boot, from /proc/net/dev and /proc/diskstats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flamewire::agent {

struct NetworkInterface {
    std::string name;
    std::uint64_t rx_bytes = 0, rx_packets = 0, rx_errors = 0, rx_drops = 0;
    std::uint64_t tx_bytes = 0, tx_packets = 0, tx_errors = 0;
};
// In order of creation, so that physical interfaces come before those of containers. Leaves out the loopback interface.
// Returns at most `most`.
std::vector<NetworkInterface> read_interfaces(const std::string& proc_root, std::size_t most);

struct Disk {
    std::string name;
    std::uint64_t reads = 0, read_bytes = 0, read_ms = 0;
    std::uint64_t writes = 0, write_bytes = 0, write_ms = 0;
};
// Whole physical disks. Leaves out partitions, memory-backed and loop devices (loop, ram, zram), devices on top of
// other disks (dm, md), which would count twice, and drives of removable discs (sr, fd).
std::vector<Disk> read_disks(const std::string& proc_root, std::size_t most);

}  // namespace flamewire::agent
