#include "agent/health/io.h"

#include <catch2/catch.hpp>

#include "../agent_process/fake_proc.h"

using namespace flamewire::agent;
using flamewire::agent::test::FakeProc;

TEST_CASE("interfaces, without the loopback") {
    FakeProc proc;
    CHECK(read_interfaces(proc.root(), 64).empty());
    proc.write(
        "proc/net/dev",
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls "
        "carrier compressed\n"
        "    lo: 900 9 0 0 0 0 0 0 900 9 0 0 0 0 0 0\n"
        "  eth0: 5000000000 101 102 103 104 105 106 107 6000000000 201 202 203 204 205 206 207\n"
        "wlan0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
        "short: 1 2 3\n"
        "odd: a b c d e f g h i j k l\n");
    const auto all = read_interfaces(proc.root(), 64);
    REQUIRE(all.size() == 2);
    CHECK(all[0].name == "eth0");
    CHECK(all[0].rx_bytes == 5'000'000'000);
    CHECK(all[0].rx_packets == 101);
    CHECK(all[0].rx_errors == 102);
    CHECK(all[0].rx_drops == 103);
    CHECK(all[0].tx_bytes == 6'000'000'000);
    CHECK(all[0].tx_packets == 201);
    CHECK(all[0].tx_errors == 202);
    CHECK(all[1].name == "wlan0");
    CHECK(all[1].rx_bytes == 1);
    CHECK(all[1].tx_errors == 11);
    CHECK(read_interfaces(proc.root(), 1).size() == 1);
}

TEST_CASE("whole disks and nothing else") {
    FakeProc proc;
    CHECK(read_disks(proc.root(), 8).empty());
    const std::string numbers = " 10 11 20 13 30 31 40 33 0 50 60\n";
    std::string text;
    for (const char* name : {"loop0", "ram1", "zram0", "sr0", "fd0", "dm-0", "md127", "md127p1", "sda", "sda1", "sda12",
                             "sdaa", "nvme0n1", "nvme0n1p1", "nvme0n10", "mmcblk0", "mmcblk0p2", "mmcblk0boot0", "vdb"})
        text += std::string("   8       0 ") + name + numbers;
    text += "   8       1 sdz 1 2 3 4\n   8\n";  // a partition of an old kernel, and a torn line
    proc.write("proc/diskstats", text);
    std::vector<std::string> names;
    for (const Disk& disk : read_disks(proc.root(), 8)) names.push_back(disk.name);
    CHECK(names == std::vector<std::string>{"sda", "sdaa", "nvme0n1", "nvme0n10", "mmcblk0", "vdb"});
    const Disk disk = read_disks(proc.root(), 1).at(0);
    CHECK(disk.reads == 10);
    CHECK(disk.read_bytes == 20 * 512);
    CHECK(disk.read_ms == 13);
    CHECK(disk.writes == 30);
    CHECK(disk.write_bytes == 40 * 512);
    CHECK(disk.write_ms == 33);
    CHECK(read_disks(proc.root(), 1).size() == 1);
}
