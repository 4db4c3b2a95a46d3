#include "cli/running_files.h"

#include <system_error>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/path.h"
#include "base/program.h"
#include "cli/build_id.h"

namespace flamewire::cli {
namespace {

namespace fs = std::filesystem;

// The usual vm.max_map_count, rounded up.
constexpr std::size_t most_mappings = 65'536;

// Links to the executable and to all mapped files, which open the files themselves.
std::vector<fs::path> mapped_files(std::uint32_t pid) {
    const fs::path folder = fs::path("/proc") / std::to_string(pid);
    std::vector<fs::path> found{folder / "exe"};
    std::error_code error;
    fs::directory_iterator at(folder / "map_files", error);
    for (; !error && at != fs::directory_iterator() && found.size() < most_mappings; at.increment(error))
        found.push_back(at->path());
    return found;
}

RunningFile running_file(UniqueFd file) {
    std::string path = "/proc/self/fd/" + std::to_string(file.get());
    return {std::move(file), std::move(path)};
}

}  // namespace

std::optional<RunningFile> file_of_command(const std::string& name) {
    const std::string path = find_program(name);
    auto file = path.empty() ? fail(ErrorCode::not_found, name) : open_read(path);
    if (!file) return {};
    return running_file(*std::move(file));
}

std::vector<RunningFile> running_files(std::span<const symbol::ModuleIdentity> modules,
                                       std::span<const std::uint32_t> pids, std::optional<RunningFile> command) {
    std::vector<symbol::ModuleIdentity> missing;
    std::ranges::copy_if(modules, std::back_inserter(missing), [](const symbol::ModuleIdentity& module) {
        return module.kind == symbol::ModuleKind::file && !module.build_id.empty();
    });
    std::vector<RunningFile> files;
    const std::string id = command ? build_id_of(command->file.get()) : std::string();
    const auto of_command = std::ranges::find(missing, id, &symbol::ModuleIdentity::build_id);
    if (of_command != missing.end()) {
        missing.erase(of_command);
        files.push_back(*std::move(command));
    }
    for (const std::uint32_t pid : pids) {
        if (missing.empty()) break;
        for (const fs::path& link : mapped_files(pid)) {
            std::error_code error;
            const std::string target = fs::read_symlink(link, error).string();
            const auto found = std::ranges::find_if(missing, [&](const symbol::ModuleIdentity& module) {
                return !error && without_deleted_mark(module.path) == without_deleted_mark(target);
            });
            if (found == missing.end()) continue;
            auto file = open_read(link);
            if (!file || build_id_of(file->get()) != found->build_id) continue;
            missing.erase(found);
            files.push_back(running_file(*std::move(file)));
        }
    }
    return files;
}

}  // namespace flamewire::cli
