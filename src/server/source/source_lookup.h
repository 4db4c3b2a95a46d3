// Finds the source file that debug info names among the files of this machine. Each candidate is resolved to its real
// path (symbolic links followed) and must be below the real path of its root. No component below the root may be hidden
// (".ssh"), and the server's own data is excluded. Roots are --source-dir, --sysroot and the targets of --path-map.
//
// Order: the path map; the name as is (absolute names inside a root, relative names below source-dir); sysroot + name;
// the file below source-dir that shares the longest suffix with the name. If several files share it equally, `note`
// reports that.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace flamewire::server {

struct SourceConfig {
    std::string source_dir = ".";
    std::string sysroot;                                         // empty: none
    std::vector<std::pair<std::string, std::string>> path_maps;  // from, to; the first match wins
    std::string private_dir{};                                   // the server's own data directory: never a source
};

struct SourceMatch {
    bool found = false;
    std::string path;                // real path of the file; empty if not found
    std::string note;                // one sentence, or empty (ambiguous match, incomplete index)
    std::vector<std::string> tried;  // places searched, in order
    std::string suggestion;          // if not found: a ready `--path-map FROM=TO`, or empty
    std::string outside;             // if not found: the local --source-dir that would allow it, or empty.
                                     // Show it only to clients that may know that this folder exists.
};

// Paths below a directory, indexed by file name. build() walks the tree once, follows no directory links and skips
// hidden directories.
class SourceIndex {
public:
    static constexpr std::size_t max_files = 200'000;

    static SourceIndex build(const std::string& root);

    // Paths relative to the root that share the most trailing components with `name` (at least the file name). Several
    // paths mean that the match is ambiguous.
    [[nodiscard]] std::vector<std::string> longest_suffix(std::string_view name) const;
    [[nodiscard]] bool complete() const { return complete_; }
    [[nodiscard]] std::size_t size() const { return size_; }

private:
    std::unordered_map<std::string, std::vector<std::string>> by_file_name_;
    std::size_t size_ = 0;
    bool complete_ = true;
};

// Thread-safe. The first lookup that needs the index builds it. A later lookup that finds no match rebuilds it if it is
// older than 10 s.
class SourceLookup {
public:
    explicit SourceLookup(SourceConfig config);

    void set_config(SourceConfig config);
    [[nodiscard]] SourceConfig config() const;

    SourceMatch find(std::string_view file);

private:
    // Looks below the source folder for files whose path ends like `file`.
    void find_by_suffix(std::string_view file, const SourceConfig& config, SourceMatch& match);
    std::vector<std::string> suffix_matches(const std::string& root, std::string_view file, bool& complete);

    mutable std::mutex mutex_;  // config and index
    SourceConfig config_;
    SourceIndex index_;
    std::string indexed_root_;  // empty: no index yet
    std::chrono::steady_clock::time_point indexed_at_;
};

// Text of a source file. too_large: over 16 MiB. invalid: the file contains NUL bytes, so it is not text.
Result<std::string> read_source(const std::string& path);

}  // namespace flamewire::server
