#include "cli/running_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/path.h"
#include "cli/build_id.h"

namespace flamewire::cli {
namespace {

namespace fs = std::filesystem;

// vm.max_map_count, as most systems have it.
constexpr std::size_t most_mappings = 65'536;

// The program and all that is mapped, as links to the files themselves.
std::vector<fs::path> mapped_files(std::uint32_t pid) {
    const fs::path folder = fs::path("/proc") / std::to_string(pid);
    std::vector<fs::path> found{folder / "exe"};
    std::error_code error;
    fs::directory_iterator at(folder / "map_files", error);
    for (; !error && at != fs::directory_iterator() && found.size() < most_mappings; at.increment(error))
        found.push_back(at->path());
    return found;
}

}  // namespace

std::vector<std::string> running_files(std::span<const symbol::ModuleIdentity> modules,
                                       std::span<const std::uint32_t> pids) {
    std::vector<symbol::ModuleIdentity> missing;
    std::ranges::copy_if(modules, std::back_inserter(missing), [](const symbol::ModuleIdentity& module) {
        return module.kind == symbol::ModuleKind::file && !module.build_id.empty();
    });
    std::vector<std::string> files;
    for (const std::uint32_t pid : pids) {
        if (missing.empty()) break;
        for (const fs::path& link : mapped_files(pid)) {
            std::error_code error;
            const std::string target = fs::read_symlink(link, error).string();
            if (error) continue;
            // A library has several mappings; the first that is the right file ends the search for it.
            const auto found = std::ranges::find_if(missing, [&](const symbol::ModuleIdentity& module) {
                return without_deleted_mark(module.path) == without_deleted_mark(target) &&
                       build_id_of(link) == module.build_id;
            });
            if (found == missing.end()) continue;
            files.push_back(link);
            missing.erase(found);
        }
    }
    return files;
}

}  // namespace flamewire::cli
