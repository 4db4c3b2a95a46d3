#include "symbol/kernel/kernel_modules.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "elf/elf_file.h"
#include "symbol/files/compressed_file.h"
#include "symbol/files/object_file.h"
#include "symbol/files/symbol_table.h"

namespace flamewire::symbol {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t max_notes_bytes = 1u << 16;

// "/lib/modules/6.1.0/kernel/net/snd-pcm.ko.debug" or "….ko.xz" belongs to the module snd_pcm (the kernel's spelling).
// Empty if the file is not a module.
std::string module_of(const std::string& path) {
    std::string name(without_compression_suffix(path));
    name.erase(0, name.rfind('/') + 1);
    if (name.ends_with(".debug")) name.resize(name.size() - 6);
    if (!name.ends_with(".ko")) return {};
    name.resize(name.size() - 3);
    std::ranges::replace(name, '-', '_');
    return name;
}

}  // namespace

struct KernelModules::File {
    File(ObjectFile file, const Config& config, const std::string& path, StringPool& strings)
        : object(std::move(file)),
          split(config, {path}),
          dwarf(object, strings, config.demangle ? Names::readable : Names::linkage, split) {
        const SymbolTable table = SymbolTable::of_file(object);
        for (std::uint32_t i = 0; i < table.size(); ++i) {
            const auto [known, fresh] = functions.try_emplace(std::string(table.name(i)), table.range(i).address);
            if (!fresh) known->second.reset();
        }
    }

    ObjectFile object;
    SplitDwarf split;
    DwarfIndex dwarf;
    std::unordered_map<std::string, std::optional<std::uint64_t>> functions;  // nullopt: several have that name
    std::unordered_map<std::uint32_t, std::uint32_t> shown;                   // name -> "name [module]"
};

KernelModules::KernelModules(const Config& config, std::string release, std::string sys_modules, StringPool& strings)
    : config_(config), release_(std::move(release)), sys_modules_(std::move(sys_modules)), strings_(strings) {}
KernelModules::~KernelModules() = default;

// Files that a person gave, then debug info, then the files that the kernel loads.
void KernelModules::list_files() {
    listed_ = true;
    const auto note = [&](const std::string& path) {
        if (const std::string module = module_of(path); !module.empty()) places_[module].push_back(path);
    };
    for (const std::string& binary : config_.binaries) note(binary);
    if (release_.empty()) return;
    std::vector<std::string> folders;
    for (const std::string& root : {config_.sysroot, std::string()}) {
        for (const std::string& debug : config_.debug_directories)
            for (const char* above : {"/lib/modules/", "/usr/lib/modules/"})
                folders.push_back(root + debug + above + release_);
        for (const char* above : {"/lib/modules/", "/usr/lib/modules/"}) folders.push_back(root + above + release_);
        if (root.empty()) break;
    }
    for (const std::string& folder : folders) {
        std::error_code error;
        for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
            note(at->path().string());
    }
}

std::unique_ptr<KernelModules::File> KernelModules::open(const std::string& module) {
    if (!listed_) list_files();
    const auto places = places_.find(module);
    if (places == places_.end()) return nullptr;
    // Modules without a build-id have no such file. They are matched by name alone.
    std::string loaded;
    if (const auto notes = read_file(sys_modules_ + "/" + module + "/notes/.note.gnu.build-id", max_notes_bytes))
        loaded = elf::build_id_of_notes(as_bytes_view(*notes), std::endian::native == std::endian::big);
    for (const std::string& path : places->second) {
        std::error_code error;
        if (!fs::is_regular_file(path, error)) continue;
        auto object = ObjectFile::open(path);
        if (!object || object->quality() != Quality::debug_info) continue;
        if (!loaded.empty() && object->build_id().value_or("") != loaded) continue;
        auto file = std::make_unique<File>(std::move(*object), config_, path, strings_);
        if (file->dwarf.usable()) return file;
    }
    return nullptr;
}

bool KernelModules::find(const std::string& module, std::string_view function, std::uint64_t offset,
                         std::vector<IndexedFrame>& frames) {
    auto known = files_.find(module);
    if (known == files_.end()) known = files_.emplace(module, open(module)).first;
    File* const file = known->second.get();
    if (file == nullptr) return false;
    const auto begin = file->functions.find(std::string(function));
    if (begin == file->functions.end() || !begin->second) return false;
    const std::size_t first = frames.size();
    file->dwarf.find(*begin->second + offset, frames);
    if (frames.size() == first) return false;
    for (std::size_t i = first; i < frames.size(); ++i) {
        const auto [shown, fresh] = file->shown.try_emplace(frames[i].function, 0);
        if (fresh && frames[i].function != 0)
            shown->second = strings_.intern(std::string(strings_.at(frames[i].function)) + " [" + module + "]");
        frames[i].function = shown->second;
    }
    return true;
}

}  // namespace flamewire::symbol
