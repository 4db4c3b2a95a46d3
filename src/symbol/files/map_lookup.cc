#include "symbol/files/map_lookup.h"

#include "base/file.h"
#include "base/path.h"

namespace flamewire::symbol {
namespace {

constexpr std::size_t max_map_bytes = std::size_t{256} << 20;

std::string_view without_suffix(std::string_view name) { return name.substr(0, name.rfind('.')); }

// True for app and app.elf with app.map, and for app.elf with app.elf.map.
bool named_as(std::string_view map_file, std::string_view module) {
    const std::string map = file_name(map_file);
    if (!map.ends_with(".map")) return false;
    const std::string_view stem = without_suffix(map);
    return stem == module || (module.find('.') != std::string_view::npos && stem == without_suffix(module));
}

}  // namespace

Result<LinkerMap> read_linker_map(const std::string& path) {
    const std::string text = TRY(read_file(path, max_map_bytes));
    return parse_linker_map(text);
}

std::optional<FoundMap> map_of(const ModuleIdentity& module, const std::string& file, std::span<const MapFile> maps) {
    const std::string name = file_name(module.path);
    const auto read = [](const std::string& path) -> std::optional<FoundMap> {
        auto map = read_linker_map(path);
        if (!map) return std::nullopt;
        return FoundMap{path, std::move(*map)};
    };
    if (!name.empty()) {
        for (const MapFile& map : maps)
            if (!map.module.empty() && (map.module == name || map.module == module.path))
                if (auto found = read(map.file)) return found;
        for (const MapFile& map : maps)
            if (map.module.empty() && named_as(map.file, name))
                if (auto found = read(map.file)) return found;
        for (const MapFile& map : maps) {
            if (!map.module.empty()) continue;
            if (auto found = read(map.file); found && file_name(found->map.output) == name) return found;
        }
    }
    return file.empty() ? std::nullopt : read(file + ".map");
}

}  // namespace flamewire::symbol
