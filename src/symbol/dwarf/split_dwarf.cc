#include "symbol/dwarf/split_dwarf.h"

#include <sys/stat.h>

#include "base/path.h"
#include "base/rooted_path.h"
#include "symbol/files/locate.h"

namespace flamewire::symbol {
namespace {

bool is_file(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

SplitSections sections_of(const ObjectFile& file) {
    return {file.section(".debug_info.dwo"),        file.section(".debug_abbrev.dwo"),
            file.section(".debug_str_offsets.dwo"), file.section(".debug_str.dwo"),
            file.section(".debug_rnglists.dwo"),    file.header().big_endian};
}

}  // namespace

std::shared_ptr<ObjectFile> SplitDwarf::open_file(const std::string& path) const {
    if (!is_file(path)) return nullptr;
    auto file = ObjectFile::open(path);
    if (!file && file.error().code == ErrorCode::too_large && refused_.empty()) refused_ = file.error().message;
    return file ? std::make_shared<ObjectFile>(std::move(*file)) : nullptr;
}

SplitDwarf::SplitDwarf(const Config& config, std::vector<std::string> files)
    : files_(std::move(files)), binaries_(config.binaries), path_maps_(config.path_maps), sysroot_(config.sysroot) {
    std::erase(files_, std::string());
    std::vector<std::string> names;
    for (const std::string& file : files_) {
        names.push_back(file + ".dwp");
        constexpr std::string_view mark = ".debug";
        if (file.ends_with(mark)) names.push_back(file.substr(0, file.size() - mark.size()) + ".dwp");
    }
    for (const std::string& binary : binaries_)
        if (binary.ends_with(".dwp")) names.push_back(binary);
    for (const std::string& name : names)
        if (auto file = open_file(name)) {
            Package package{file, file->section(".debug_cu_index"), sections_of(*file)};
            packages_.push_back(std::move(package));
        }
}

std::vector<std::string> SplitDwarf::places(const SplitName& name) const {
    std::vector<std::string> places;
    if (name.name.empty()) return places;
    const std::string bare = file_name(name.name);
    for (const std::string& binary : binaries_)
        if (file_name(binary) == bare) places.push_back(binary);
    const std::string path = name.name.starts_with('/') ? name.name : name.directory + "/" + name.name;
    for (const PathMap& map : path_maps_)
        if (std::string mapped = apply_path_map(map, path); !mapped.empty()) places.push_back(std::move(mapped));
    if (!sysroot_.empty()) places.push_back(path_in_root(sysroot_, path));
    places.push_back(path);
    for (const std::string& file : files_) {
        places.push_back(folder_of(file) + "/" + bare);
        if (!name.name.starts_with('/')) places.push_back(folder_of(file) + "/" + name.name);
    }
    return places;
}

std::optional<SplitDwarf::Opened> SplitDwarf::open(const SplitName& name) const {
    for (const Package& package : packages_)
        if (const auto sections = cut_of_package(package.sections, package.index, name.id))
            if (auto unit = find_split_unit(*sections, name.id)) return Opened{package.file, std::move(*unit)};
    for (const std::string& place : places(name))
        if (auto file = open_file(place))
            if (auto unit = find_split_unit(sections_of(*file), name.id))
                return Opened{std::move(file), std::move(*unit)};
    return std::nullopt;
}

bool SplitDwarf::is_there(const SplitName& name) const {
    for (const Package& package : packages_)
        if (cut_of_package(package.sections, package.index, name.id)) return true;
    for (const std::string& place : places(name))
        if (is_file(place)) return true;
    return false;
}

}  // namespace flamewire::symbol
