// Network interfaces and disks: counters since boot, /proc/net/dev and /proc/diskstats.
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
// In the order in which they were made, so that what is plugged in comes before what containers make; the loopback is
// left out. At most `most`.
std::vector<NetworkInterface> read_interfaces(const std::string& proc_root, std::size_t most);

struct Disk {
    std::string name;
    std::uint64_t reads = 0, read_bytes = 0, read_ms = 0;
    std::uint64_t writes = 0, write_bytes = 0, write_ms = 0;
};
// Whole disks: no partitions, no memory (loop, ram, zram), nothing that is made of other disks (dm, md) and would count
// twice, no drives of removable discs (sr, fd).
std::vector<Disk> read_disks(const std::string& proc_root, std::size_t most);

}  // namespace flamewire::agent
