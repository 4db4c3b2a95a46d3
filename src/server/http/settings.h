// Where symbols and sources are looked for: what --binary, --source-dir, --path-map, --sysroot and --inline set and
// PATCH /api/config changes. Thread-safe.
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
    std::string module_directory{};            // where files that agents sent are; set once
    std::string upload_directory{};            // the same for those that people sent for a module
    std::vector<std::string> debuginfod{};     // servers to ask for debug info; empty: nobody is asked
    std::string debuginfod_directory{};        // what they sent; set once
    std::string debuginfod_cache_size{"4G"};   // as it was given
    std::uint64_t debuginfod_cache_bytes = 0;  // of it, at most; set with the directory
    std::string toolchain_prefix{};            // what the sysroot was taken from, when it was; only shown
};

// {FROM, TO}; invalid with a sentence otherwise.
Result<std::pair<std::string, std::string>> parse_path_map(std::string_view text);
// "app.map", or "libapp.so=build/app.map"; the file must be there when there is a module before it.
Result<symbol::MapFile> parse_map(const std::string& text);
// invalid with a sentence when a file or a directory is not there.
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
