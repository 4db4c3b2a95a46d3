#include "agent/health/io.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "agent/process/proc_text.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t buffer_bytes = 4096;
constexpr std::uint64_t sector_bytes = 512;  // in diskstats, regardless of the disk's sector size

// The next `count` numbers of a line. Empty if there are fewer.
template <std::size_t count>
std::optional<std::array<std::uint64_t, count>> take_numbers(std::string_view line) {
    std::array<std::uint64_t, count> values{};
    for (std::uint64_t& value : values) {
        std::string_view field = take_field(line);
        const auto number = take_number(field, 10);
        if (!number) return std::nullopt;
        value = *number;
    }
    return values;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool all_digits(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

// For example sda1 of sda, nvme0n1p2 of nvme0n1.
bool is_partition_of(std::string_view name, std::string_view disk) {
    if (!name.starts_with(disk)) return false;
    std::string_view rest = name.substr(disk.size());
    if (!disk.empty() && is_digit(disk.back())) return take_char(rest, 'p') && all_digits(rest);
    return all_digits(rest);
}

bool is_made_of_something_else(std::string_view name) {
    for (const std::string_view kind : {"loop", "ram", "zram", "dm-", "md", "sr", "fd"})
        if (name.starts_with(kind) && (name.size() == kind.size() || is_digit(name[kind.size()]))) return true;
    // The boot areas of an eMMC are listed as separate disks: mmcblk0boot0.
    return name.starts_with("mmcblk") && name.find("boot") != std::string_view::npos;
}

}  // namespace

std::vector<NetworkInterface> read_interfaces(const std::string& proc_root, std::size_t most) {
    std::vector<NetworkInterface> interfaces;
    auto reader = LineReader::open(proc_root + "/net/dev", buffer_bytes);
    if (!reader) return interfaces;
    std::string_view line;
    while (interfaces.size() < most && reader->next(line)) {
        const std::size_t colon = line.find(':');  // numbers may follow it without a space
        if (colon == std::string_view::npos) continue;
        std::string_view before = line.substr(0, colon);
        const std::string_view name = take_field(before);
        if (name.empty() || name == "lo") continue;
        // received: bytes packets errs drop fifo frame compressed multicast, then transmitted: bytes packets errs …
        const auto values = take_numbers<11>(line.substr(colon + 1));
        if (!values) continue;
        const auto& v = *values;
        interfaces.push_back({std::string(name), v[0], v[1], v[2], v[3], v[8], v[9], v[10]});
    }
    return interfaces;
}

std::vector<Disk> read_disks(const std::string& proc_root, std::size_t most) {
    std::vector<Disk> disks;
    auto reader = LineReader::open(proc_root + "/diskstats", buffer_bytes);
    if (!reader) return disks;
    std::string_view line;
    while (disks.size() < most && reader->next(line)) {
        take_field(line);  // major
        take_field(line);  // minor
        const std::string_view name = take_field(line);
        const bool partition =
            std::any_of(disks.begin(), disks.end(), [&](const Disk& disk) { return is_partition_of(name, disk.name); });
        if (name.empty() || partition || is_made_of_something_else(name)) continue;
        // reads, merged, sectors, ms; writes, merged, sectors, ms
        const auto values = take_numbers<8>(line);
        if (!values) continue;
        const auto& v = *values;
        disks.push_back({std::string(name), v[0], v[2] * sector_bytes, v[3], v[4], v[6] * sector_bytes, v[7]});
    }
    return disks;
}

}  // namespace flamewire::agent
