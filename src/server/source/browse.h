// What lies in the folders of this machine that a page may look into, to choose a binary, a source folder or a sysroot.
// Nothing outside of the allowed roots is told, whatever "..", links or a race with somebody who moves folders say: each
// path is opened without effect first, and what the kernel says that descriptor is decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamewire::server {

// What a person needs to know of an ELF file to choose it.
struct ElfSummary {
    std::string arch;      // "aarch64", "arm", …; "machine 62" for one without a name here
    std::string build_id;  // hexadecimal; empty when there is none
    bool symbols = false, debug_info = false;
    bool operator==(const ElfSummary&) const = default;
};

enum class EntryKind : std::uint8_t { folder, file, other };

struct BrowseEntry {
    std::string name{};
    EntryKind kind = EntryKind::other;
    std::uint64_t size_bytes = 0;  // of files
    bool link = false;
    bool outside = false;  // a link that leads out of the roots: nothing more is said of it
    std::optional<ElfSummary> elf{};
    bool operator==(const BrowseEntry&) const = default;
};

struct Listing {
    std::string path;                  // the folder, links resolved; empty: the list of roots
    std::string parent;                // empty: none that may be shown
    std::vector<BrowseEntry> entries;  // folders first, then by name
    std::uint64_t left_out = 0;        // over the bound, or with names that are no UTF-8
};

// A folder that may be looked into: as it was named, and without links.
struct BrowseRoot {
    std::string given, real;
    bool operator==(const BrowseRoot&) const = default;
};

inline constexpr std::size_t max_browse_entries = 1000;

// Each once; those that are no folders are left out, and those inside of another one too.
std::vector<BrowseRoot> browse_roots(const std::vector<std::string>& folders);

// The folder `path` (of a file: the folder that it is in), entries whose name holds `find`, any letter case; an empty
// path lists the roots. permission, not_found and invalid with a sentence that says what to do.
Result<Listing> browse(const std::vector<BrowseRoot>& roots, std::string_view path, std::string_view find = {});

// Whether a path, links resolved, is in one of the roots; permission with the same sentence as browse(). What is not there is
// judged by its folder.
Result<bool> check_inside(const std::vector<BrowseRoot>& roots, const std::string& path);

// "x86_64" of e_machine 62.
std::string machine_name(std::uint16_t machine, bool is_64);

}  // namespace flamewire::server
