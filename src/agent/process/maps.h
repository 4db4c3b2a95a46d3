// One line of /proc/PID/maps. Source of the format: proc(5) and the kernel's fs/proc/task_mmu.c, show_map_vma.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flamewire::agent {

struct MapsEntry {
    std::uint64_t start = 0, end = 0, file_offset = 0;
    bool executable = false;
    std::uint64_t inode = 0;
    std::uint32_t device_major = 0, device_minor = 0;
    std::string path;  // without " (deleted)"
    bool deleted = false;
};

// Nothing if the line is not from /proc/PID/maps, or its range is empty.
std::optional<MapsEntry> parse_maps_line(std::string_view line);

// Removes the kernel's " (deleted)" from the end of a path; true if it was present.
bool strip_deleted(std::string& path);

}  // namespace flamewire::agent
