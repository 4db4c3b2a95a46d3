// Where to search for symbols and sources: the values of --binary, --source-dir, --path-map, --sysroot and --inline.
// PATCH /api/config changes them. Thread-safe.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/source/source_lookup.h"
#include "symbol/types/config.h"

namespace flamewire::server {

struct SettingsValues {
    std::vector<std::string> binaries{};
    std::string source_dir = ".";
    std::vector<std::string> path_map{};  // FROM=TO
    std::string sysroot{};
    std::vector<std::string> maps{};  // FILE or MODULE=FILE
    bool inlines = true;
    std::string data_directory{};              // the server's own; set once
    std::string module_directory{};            // files that agents sent; set once
    std::string upload_directory{};            // files that people uploaded for a module; set once
    std::vector<std::string> debuginfod{};     // servers for debug info; empty: none
    std::string debuginfod_directory{};        // files from those servers; set once
    std::string debuginfod_cache_size{"4G"};   // as given on the command line
    std::uint64_t debuginfod_cache_bytes = 0;  // parsed limit; set together with the directory
    std::string toolchain_prefix{};            // the prefix that the sysroot came from, or empty; only displayed
};

// Returns {FROM, TO}. invalid: the message is one sentence.
Result<std::pair<std::string, std::string>> parse_path_map(std::string_view text);
// "app.map", or "libapp.so=build/app.map". If a module is given, the file must exist.
Result<symbol::MapFile> parse_map(const std::string& text);
// invalid: a file or a directory does not exist; the message is one sentence.
Result<bool> check(const SettingsValues& values);
symbol::Config symbol_config(const SettingsValues& values);
SourceConfig source_config(const SettingsValues& values);

class Settings {
public:
    explicit Settings(SettingsValues values) : values_(std::move(values)) {}
    [[nodiscard]] SettingsValues get() const {
        const std::lock_guard lock(mutex_);
        return values_;
    }
    void set(SettingsValues values) {
        const std::lock_guard lock(mutex_);
        values_ = std::move(values);
    }

private:
    mutable std::mutex mutex_;
    SettingsValues values_;
};

}  // namespace flamewire::server
