#include "server/source/settings.h"

#include <fmt/format.h>
#include <system_error>

#include <filesystem>

#include "symbol/files/map_lookup.h"

namespace flamewire::server {
namespace fs = std::filesystem;

Result<std::pair<std::string, std::string>> parse_path_map(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
        return fail(ErrorCode::invalid, fmt::format("a path map is FROM=TO, not {:.200}", text));
    return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

Result<symbol::MapFile> parse_map(const std::string& text) {
    std::error_code ignored;
    if (fs::is_regular_file(text, ignored)) return symbol::MapFile{"", text};
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        return fail(ErrorCode::invalid, fmt::format("map {:.500} is not a file on this machine", text));
    symbol::MapFile map{text.substr(0, equals), text.substr(equals + 1)};
    if (!fs::is_regular_file(map.file, ignored))
        return fail(ErrorCode::invalid, fmt::format("map {:.500} is not a file on this machine", map.file));
    return map;
}

Result<bool> check(const SettingsValues& values) {
    std::error_code ignored;
    for (const std::string& binary : values.binaries)
        if (!fs::is_regular_file(binary, ignored))
            return fail(ErrorCode::invalid, fmt::format("binary {:.500} is not a file on this machine", binary));
    if (!values.source_dir.empty() && !fs::is_directory(values.source_dir, ignored))
        return fail(ErrorCode::invalid,
                    fmt::format("source directory {:.500} is not a directory on this machine", values.source_dir));
    if (!values.sysroot.empty() && !fs::is_directory(values.sysroot, ignored))
        return fail(ErrorCode::invalid,
                    fmt::format("sysroot {:.500} is not a directory on this machine", values.sysroot));
    for (const std::string& map : values.path_map) (void)TRY(parse_path_map(map));
    for (const std::string& text : values.maps) {
        const symbol::MapFile map = TRY(parse_map(text));
        if (auto read = symbol::read_linker_map(map.file); !read)
            return fail(ErrorCode::invalid, fmt::format("map {:.500}: {}", map.file, read.error().message));
    }
    return true;
}

symbol::Config symbol_config(const SettingsValues& values) {
    symbol::Config config;
    config.binaries = values.binaries;
    config.sysroot = values.sysroot;
    config.inlines = values.inlines;
    config.module_directory = values.module_directory;
    config.upload_directory = values.upload_directory;
    config.debuginfod_directory = values.debuginfod_directory;
    for (const std::string& text : values.maps)
        if (auto map = parse_map(text)) config.maps.push_back(std::move(*map));
    for (const std::string& text : values.path_map)
        if (auto map = parse_path_map(text)) config.path_maps.push_back({map->first, map->second});
    return config;
}

SourceConfig source_config(const SettingsValues& values) {
    SourceConfig config;
    config.source_dir = values.source_dir;
    config.sysroot = values.sysroot;
    config.private_dir = values.data_directory;
    for (const std::string& text : values.path_map)
        if (auto map = parse_path_map(text)) config.path_maps.push_back(std::move(*map));
    return config;
}

}  // namespace flamewire::server
