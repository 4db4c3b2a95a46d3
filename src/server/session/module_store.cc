#include "server/session/module_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "elf/elf_file.h"
#include "server/limits.h"
#include "symbol/files/fetched_file.h"

namespace flamewire::server {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t step = wire::max_module_chunk;

Result<UniqueFd> open_write(const std::string& path, int flags) {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
    if (!fd) return fail_errno("open " + path, errno);
    return fd;
}

Result<bool> write_at(int fd, std::string_view bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return fail_errno("write of a module file", errno);
        bytes.remove_prefix(static_cast<std::size_t>(count));
        offset += static_cast<std::uint64_t>(count);
    }
    return true;
}

Result<std::string> hash_of(int fd, std::uint64_t size) {
    std::uint64_t hash = wire::content_hash_begin;
    for (std::uint64_t at = 0; at < size; at += step) hash = wire::content_hash(hash, TRY(read_range(fd, at, step)));
    return fmt::format("{:016x}", hash);
}

struct Kept {
    std::string path;
    std::uint64_t bytes = 0;
    timespec used{};
};

}  // namespace

std::string ModuleStore::path_of(const symbol::ModuleIdentity& module) const {
    return symbol::fetched_path(folder_, module);
}

std::uint64_t ModuleStore::offset(const symbol::ModuleIdentity& module) const {
    struct stat status{};
    const std::string part = path_of(module) + ".part";
    return ::lstat(part.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size)
                                                                          : 0;
}

Result<ModuleStore::Progress> ModuleStore::add(const symbol::ModuleIdentity& module, const wire::ModuleChunk& chunk) {
    std::error_code error;
    const std::string folder = fs::path(path_of(module)).parent_path();
    if (folder.empty()) return fail(ErrorCode::invalid, "the recording's owner is not the id of a key");
    fs::create_directories(folder, error);
    if (error) return fail_errno("make " + folder, error.value());
    (void)::chmod(folder_.c_str(), 0700);
    const std::string part = path_of(module) + ".part";
    const std::uint64_t here = offset(module);
    if (chunk.offset != here || here > chunk.total) {
        fs::remove(part, error);
        return Progress{};
    }
    {
        const UniqueFd fd = TRY(open_write(part, 0));
        if (auto written = write_at(fd.get(), chunk.bytes, here); !written) {
            // Remove what a full disk did write, so that a retry can append at this offset.
            (void)!::ftruncate(fd.get(), static_cast<off_t>(here));
            return std::unexpected(written.error());
        }
    }
    Progress progress{here + chunk.bytes.size(), false};
    if (progress.got < chunk.total || (module.build_id.empty() && chunk.hash.empty())) return progress;
    auto whole = assemble(module, chunk);
    fs::remove(part, error);
    TRY(whole);
    make_room(path_of(module));
    progress.whole = true;
    return progress;
}

// Writes the ranges at their offsets into a sparse file. The file gets its name only after it is verified to be the
// module.
Result<bool> ModuleStore::assemble(const symbol::ModuleIdentity& module, const wire::ModuleChunk& chunk) const {
    const std::string path = path_of(module);
    const std::string fresh = path + ".new";
    const UniqueFd in = TRY(open_read(path + ".part"));
    std::error_code ignored;
    const auto build = [&]() -> Result<bool> {
        if (!chunk.hash.empty() && TRY(hash_of(in.get(), chunk.total)) != chunk.hash)
            return fail(ErrorCode::invalid, "the received data differs from what the agent read");
        const UniqueFd out = TRY(open_write(fresh, O_TRUNC));
        if (::ftruncate(out.get(), static_cast<off_t>(chunk.file_size)) != 0) return fail_errno("ftruncate", errno);
        std::uint64_t from = 0;
        for (const wire::FileRange& range : chunk.ranges)
            for (std::uint64_t at = 0; at < range.size; at += step) {
                const std::string bytes = TRY(read_range(
                    in.get(), from + at, static_cast<std::size_t>(std::min<std::uint64_t>(step, range.size - at))));
                TRY(write_at(out.get(), bytes, range.offset + at));
                if (at + step >= range.size) from += range.size;
            }
        const UniqueFd check = TRY(open_read(fresh));
        const elf::ByteSource source = elf::source_of_fd(check.get());
        const elf::Header header = TRY(elf::read_header(source));
        const std::string build_id = TRY(elf::read_build_id(source, header));
        if (build_id != module.build_id) return fail(ErrorCode::invalid, "what arrived has another build-id");
        return true;
    };
    auto built = build();
    if (!built) {
        fs::remove(fresh, ignored);
        return built;
    }
    if (::rename(fresh.c_str(), path.c_str()) != 0) return fail_errno("rename to " + path, errno);
    return true;
}

void ModuleStore::make_room(const std::string& keep) const {
    std::error_code error;
    std::vector<Kept> files;
    std::uint64_t total = 0;
    for (fs::recursive_directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
        struct stat status{};
        const std::string path = at->path().string();
        if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
        // Holes take no disk space.
        files.push_back({path, static_cast<std::uint64_t>(status.st_blocks) * 512, status.st_mtim});
        total += files.back().bytes;
    }
    std::sort(files.begin(), files.end(), [](const Kept& a, const Kept& b) {
        return std::tie(a.used.tv_sec, a.used.tv_nsec, a.path) < std::tie(b.used.tv_sec, b.used.tv_nsec, b.path);
    });
    if (total > limit_bytes_) limit_reached(Limit::module_bytes);
    for (const Kept& file : files) {
        if (total <= limit_bytes_) return;
        if (file.path == keep) continue;
        std::error_code ignored;
        fs::remove(file.path, ignored);
        total -= file.bytes;
    }
}

}  // namespace flamewire::server
