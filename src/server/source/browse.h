// Lists the folders of this machine in which a page may choose a binary, a source folder or a sysroot. It reveals
// nothing outside the allowed roots, whatever "..", links or concurrent renames do. It opens each path with O_PATH
// first; the path that the kernel reports for that descriptor decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::server {

// Facts of an ELF file that help a person to choose it.
struct ElfSummary {
    std::string arch;      // "aarch64", "arm", …; "machine N" for an e_machine without a name here
    std::string build_id;  // hexadecimal; empty if there is none
    bool symbols = false, debug_info = false;
    bool operator==(const ElfSummary&) const = default;
};

enum class EntryKind : std::uint8_t { folder, file, other };

struct BrowseEntry {
    std::string name{};
    EntryKind kind = EntryKind::other;
    std::uint64_t size_bytes = 0;  // of files
    bool link = false;
    bool outside = false;  // the link leads out of the roots; the other fields stay empty
    std::optional<ElfSummary> elf{};
    bool operator==(const BrowseEntry&) const = default;
};

struct Listing {
    std::string path;                  // the folder with links resolved; empty: the list of roots
    std::string parent;                // empty: no parent that may be shown
    std::vector<BrowseEntry> entries;  // folders first, then by name
    std::uint64_t left_out = 0;        // entries over the limit, or with names that are not UTF-8
};

// A folder that may be listed: its path as given, and its real path.
struct BrowseRoot {
    std::string given, real;
    bool operator==(const BrowseRoot&) const = default;
};

inline constexpr std::size_t max_browse_entries = 1000;

// Removes duplicates and paths that are not folders. A folder inside another root is removed too, unless it was given
// by a path with links.
std::vector<BrowseRoot> browse_roots(const std::vector<std::string>& folders);

// Lists the folder `path` (for a file: its folder). Keeps entries whose name contains `find`, ignoring ASCII case. An
// empty path lists the roots. permission, not_found and invalid: the message says what to do.
Result<Listing> browse(const std::vector<BrowseRoot>& roots, std::string_view path, std::string_view find = {});

// Whether a path, links resolved, is inside one of the roots. permission: the same message as browse(). If the path
// does not exist, its existing part is resolved.
Result<bool> check_inside(const std::vector<BrowseRoot>& roots, const std::string& path);

// For example, "x86_64" for e_machine 62.
std::string machine_name(std::uint16_t machine, bool is_64);

}  // namespace flamewire::server
