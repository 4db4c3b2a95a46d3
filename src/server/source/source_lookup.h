// Finds the source file that debug info names among the files of this machine. Nothing outside the configured roots is
// ever found: every candidate is resolved to its real path (symbolic links followed) and must lie below the real path
// of its root, without a hidden folder or file (".ssh") on the way, and not in the server's own data. Roots are --source-dir,
// --sysroot and the targets of --path-map.
//
// Order: path map, as is (absolute names inside a root; relative names below source-dir), sysroot + name, and last the
// file below source-dir that shares the longest suffix with the name; when several share it equally that is said.
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
    std::vector<std::pair<std::string, std::string>> path_maps;  // from, to; the first that fits wins
    std::string private_dir{};                                   // of the server itself: nothing in it is a source
};

struct SourceMatch {
    bool found = false;
    std::string path;                // real path of the file; empty when not found
    std::string note;                // one sentence when there is something to say (ambiguity, bounded index)
    std::vector<std::string> tried;  // places looked at, in order
    std::string suggestion;          // when not found: a ready `--path-map FROM=TO`, or empty
    std::string outside;             // when not found: the --source-dir that would show it, as it is here; or empty.
                                     // For those alone who may know that it is
};

// Names below a directory, by file name. Built in one walk that follows no directory links and skips hidden
// directories.
class SourceIndex {
public:
    static constexpr std::size_t max_files = 200'000;

    static SourceIndex build(const std::string& root);

    // Paths relative to the root that share most trailing components with `name` (at least the file name). More than
    // one: ambiguous.
    [[nodiscard]] std::vector<std::string> longest_suffix(std::string_view name) const;
    [[nodiscard]] bool complete() const { return complete_; }
    [[nodiscard]] std::size_t size() const { return size_; }

private:
    std::unordered_map<std::string, std::vector<std::string>> by_file_name_;
    std::size_t size_ = 0;
    bool complete_ = true;
};

// Thread-safe. The index is built at the first lookup that needs it, and again when a later lookup misses and it is
// older than 10 s.
class SourceLookup {
public:
    explicit SourceLookup(SourceConfig config);

    void set_config(SourceConfig config);
    [[nodiscard]] SourceConfig config() const;

    SourceMatch find(std::string_view file);

private:
    std::vector<std::string> suffix_matches(const std::string& root, std::string_view file, bool& complete);

    mutable std::mutex mutex_;  // config and index
    SourceConfig config_;
    SourceIndex index_;
    std::string indexed_root_;  // empty: no index yet
    std::chrono::steady_clock::time_point indexed_at_;
};

// Lines of text of a found file; too_large over 16 MiB, invalid when it holds NUL bytes (no text).
Result<std::string> read_source(const std::string& path);

}  // namespace flamewire::server
