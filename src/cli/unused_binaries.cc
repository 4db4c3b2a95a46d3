#include "cli/unused_binaries.h"

#include <fmt/format.h>

#include <string_view>

#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "elf/elf_file.h"

namespace flamewire::cli {
namespace {

std::string build_id_of(const std::string& path) {
    const auto fd = open_read(path);
    if (!fd) return {};
    const elf::ByteSource source = elf::source_of_fd(fd->get());
    const auto header = elf::read_header(source);
    return header ? elf::read_build_id(source, *header).value_or(std::string()) : std::string();
}

// The kernel marks an unlinked file so.
bool is_named(const profile::Module& module, std::string_view name) {
    std::string_view path = module.identity.path;
    constexpr std::string_view deleted = " (deleted)";
    if (path.ends_with(deleted)) path.remove_suffix(deleted.size());
    return file_name(path) == name;
}

}  // namespace

std::vector<std::string> unused_binaries(std::span<const profile::Module> modules,
                                         const std::vector<std::string>& binaries) {
    std::vector<std::string> sentences;
    for (const std::string& path : binaries) {
        const std::string id = build_id_of(path);
        if (id.empty()) continue;
        const profile::Module* other = nullptr;  // of its name, another build
        bool used = false;
        for (const profile::Module& module : modules) {
            const bool named = is_named(module, file_name(path));
            // Without a build-id the name decides.
            used = used || module.identity.build_id == id || (named && module.identity.build_id.empty());
            if (named) other = &module;
        }
        if (used) continue;
        if (other != nullptr)
            sentences.push_back(fmt::format(
                "--binary {} is not used: its build-id is {}, that of the {} that was recorded is {}; give the "
                "unstripped file of that very build",
                path, to_hex(id), file_name(path), to_hex(other->identity.build_id)));
        else
            sentences.push_back(
                fmt::format("--binary {} is not used: nothing that was recorded has its build-id {} or its name", path,
                            to_hex(id)));
    }
    return sentences;
}

}  // namespace flamewire::cli
