#include "agent/process/maps.h"

#include "agent/process/proc_text.h"

namespace flamewire::agent {
namespace {

// The kernel escapes only the newline in a path, not even the backslash.
std::string unescape(std::string_view text) {
    constexpr std::string_view newline = "\\012";
    std::string path;
    path.reserve(text.size());
    while (!text.empty()) {
        if (text.starts_with(newline)) {
            path += '\n';
            text.remove_prefix(newline.size());
        } else {
            path += text.front();
            text.remove_prefix(1);
        }
    }
    return path;
}

}  // namespace

bool strip_deleted(std::string& path) {
    constexpr std::string_view mark = " (deleted)";
    if (!path.ends_with(mark)) return false;
    path.resize(path.size() - mark.size());
    return true;
}

std::optional<MapsEntry> parse_maps_line(std::string_view line) {
    MapsEntry entry;
    const auto start = take_number(line, 16);
    if (!start || !take_char(line, '-')) return std::nullopt;
    const auto end = take_number(line, 16);
    if (!end || *end <= *start || !take_char(line, ' ')) return std::nullopt;
    const std::string_view permissions = take_field(line);
    if (permissions.size() < 4 || !take_char(line, ' ')) return std::nullopt;
    const auto offset = take_number(line, 16);
    if (!offset || !take_char(line, ' ')) return std::nullopt;
    const auto major = take_number(line, 16);
    if (!major || !take_char(line, ':')) return std::nullopt;
    const auto minor = take_number(line, 16);
    if (!minor || !take_char(line, ' ')) return std::nullopt;
    const auto inode = take_number(line, 10);
    if (!inode) return std::nullopt;
    const std::size_t path_begin = line.find_first_not_of(' ');
    if (path_begin != std::string_view::npos) entry.path = unescape(line.substr(path_begin));
    entry.start = *start;
    entry.end = *end;
    entry.file_offset = *offset;
    entry.executable = permissions[2] == 'x';
    entry.inode = *inode;
    entry.device_major = static_cast<std::uint32_t>(*major);
    entry.device_minor = static_cast<std::uint32_t>(*minor);
    entry.deleted = strip_deleted(entry.path);
    return entry;
}

}  // namespace flamewire::agent
