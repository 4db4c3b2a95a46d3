#include "profile/formats/perf_data/modules.h"

#include <sys/stat.h>

#include <memory>

#include "base/fd.h"
#include "base/file.h"
#include "process/mapping_name.h"

namespace flamewire::profile::perf_data {
namespace {

wire::ModuleKind kind_of(std::string_view path) {
    // No machine has a file at such a path. Most of this memory is JIT code.
    if (path.starts_with("/memfd:") || path.starts_with("/dev/ashmem")) return wire::ModuleKind::jit;
    switch (process::classify_mapping(path)) {
        case process::MappingName::file: return wire::ModuleKind::file;
        case process::MappingName::vdso: return wire::ModuleKind::vdso;
        case process::MappingName::anonymous: break;
    }
    return wire::ModuleKind::jit;
}

}  // namespace

std::string_view Modules::known_build_id(std::string_view path, bool kernel) const {
    for (; build_ids_seen_ < machine_.build_ids.size(); ++build_ids_seen_) {
        const KnownBuildId& known = machine_.build_ids[build_ids_seen_];
        // The kernel's build-id can also have the path of a vmlinux.
        const bool image = known.kernel && !known.path.ends_with(".ko") &&
                           known.path.find(".ko.") == std::string::npos &&
                           (!known.path.starts_with('[') || known.path.starts_with("[kernel"));
        build_ids_.emplace(image ? "[kernel]" : known.path, known.build_id);
    }
    const auto found = build_ids_.find(kernel ? std::string_view("[kernel]") : path);
    return found == build_ids_.end() ? std::string_view() : std::string_view(found->second);
}

Module& Modules::of_mapping(const perf::MmapRecord& map) {
    const wire::ModuleKind kind = kind_of(map.path);
    const std::string path(kind == wire::ModuleKind::jit ? std::string_view("[jit]") : map.path);
    std::string build_id(as_text(map.build_id));
    if (build_id.empty()) build_id = known_build_id(path, false);
    const std::uint64_t inode = kind == wire::ModuleKind::file && build_id.empty() ? map.inode : 0;
    auto [entry, added] = by_identity_.try_emplace({path, build_id, inode}, 0);
    if (added) {
        Module module;
        module.kind = kind;
        module.path = path;
        module.build_id = build_id;
        module.inode = inode;
        module.id = entry->second = static_cast<unwind::ModuleId>(modules_.size() + 1);
        modules_.push_back(std::move(module));
    }
    return at(entry->second);
}

void Modules::find_file(Module& module) {
    if (std::exchange(module.searched, true) || module.kind != wire::ModuleKind::file) return;
    symbol::ModuleIdentity identity;
    identity.path = module.path;
    identity.build_id = module.build_id;
    const std::string file = job_.module_file(identity);
    // Without a build-id, a file at the same path must also have the same inode.
    struct stat status{};
    if (module.build_id.empty() && module.inode != 0 && file == module.path &&
        (::stat(file.c_str(), &status) != 0 || status.st_ino != module.inode))
        return;
    module.file = symbol::read_code_file(file);
}

std::uint64_t Modules::virtual_address(Module& module, const process::Mapping& mapping, std::uint64_t address) {
    const std::uint64_t offset = mapping.file_offset + (address - mapping.start);
    if (virtual_addresses_) return offset;
    find_file(module);
    if (module.file)
        if (const auto found = module.file->address_of(offset)) return *found;
    if (module.kind == wire::ModuleKind::file && !module.file && mapping.start < symbol::fixed_programs_end)
        return address;
    return offset;
}

Result<elf::ByteSource> Modules::open(unwind::ModuleId id) {
    Module& module = at(id);
    find_file(module);
    if (!module.file) return fail(ErrorCode::not_found, module.path + " is not on this machine");
    // The file is closed with the last copy of the ByteSource.
    const auto fd = std::make_shared<UniqueFd>(TRY(open_read(module.file->path)));
    return [fd](std::uint64_t offset, std::size_t size) { return read_range(fd->get(), offset, size); };
}

std::vector<std::string> Modules::missing() const {
    std::vector<std::string> paths;
    for (const Module& module : modules_)
        if (module.searched && module.kind == wire::ModuleKind::file && !module.file) paths.push_back(module.path);
    return paths;
}

}  // namespace flamewire::profile::perf_data
