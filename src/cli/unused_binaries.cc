#include "cli/unused_binaries.h"

#include <fmt/format.h>

#include <string_view>

#include "base/file.h"
#include "base/hex.h"
#include "base/path.h"
#include "cli/build_id.h"

namespace flamewire::cli {
namespace {

bool is_named(const profile::Module& module, std::string_view name) {
    return file_name(without_deleted_mark(module.identity.path)) == name;
}

}  // namespace

std::vector<std::string> unused_binaries(std::span<const profile::Module> modules,
                                         const std::vector<std::string>& binaries) {
    std::vector<std::string> sentences;
    for (const std::string& path : binaries) {
        const auto file = open_read(path);
        const std::string id = file ? build_id_of(file->get()) : std::string();
        if (id.empty()) continue;
        const profile::Module* other = nullptr;  // same name, another build
        bool used = false;
        for (const profile::Module& module : modules) {
            const bool named = is_named(module, file_name(path));
            // If the module has no build-id, its name is compared.
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
