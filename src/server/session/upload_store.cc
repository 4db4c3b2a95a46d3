#include "server/session/upload_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/fd.h"

namespace flamewire::server {
namespace fs = std::filesystem;
namespace {

// Uploads without new data for this long are abandoned.
constexpr std::time_t forgotten_s = 24 * 3600;

Result<bool> check_id(const std::string& id) {
    const bool fits = id.size() >= 8 && id.size() <= 64 && std::ranges::all_of(id, [](unsigned char c) {
                          return std::isalnum(c) != 0 || c == '-' || c == '_';
                      });
    if (!fits) return fail(ErrorCode::invalid, "the id of an upload is 8 to 64 letters, digits, - and _");
    return true;
}

// The id and the final size, from the name of a file in the folder.
std::optional<std::pair<std::string, std::uint64_t>> parse_name(const std::string& name) {
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos) return std::nullopt;
    std::uint64_t size = 0;
    const char* last = name.data() + name.size();
    if (std::from_chars(name.data() + dot + 1, last, size).ptr != last) return std::nullopt;
    return std::pair{name.substr(0, dot), size};
}

Result<bool> append(const std::string& path, std::uint64_t offset, std::string_view bytes) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return fail_errno("open " + path, errno);
    std::uint64_t at = offset;
    while (!bytes.empty()) {
        const ssize_t count = ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            const int error = errno;
            // Remove what a full disk did write: the client sends the whole slice again.
            (void)!::ftruncate(fd.get(), static_cast<off_t>(offset));
            return fail_errno("write of an uploaded file", error);
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
        at += static_cast<std::uint64_t>(count);
    }
    return true;
}

}  // namespace

Result<UploadStore::Entry> UploadStore::find_locked(const std::string& id) const {
    TRY(check_id(id));
    std::error_code error;
    for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
        const auto name = parse_name(at->path().filename().string());
        if (!name || name->first != id) continue;
        Entry entry{at->path().string(), {id, 0, name->second}};
        struct stat status{};
        if (::lstat(entry.path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
        entry.upload.got = static_cast<std::uint64_t>(status.st_size);
        return entry;
    }
    return fail(ErrorCode::not_found, fmt::format("there is no upload {}: send it from its beginning", id));
}

Result<UploadStore::Upload> UploadStore::find(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    return TRY(find_locked(id)).upload;
}

Result<UploadStore::Upload> UploadStore::add(const std::string& id, std::uint64_t offset, std::uint64_t size,
                                             std::string_view bytes) {
    TRY(check_id(id));
    if (bytes.empty()) return fail(ErrorCode::invalid, "a slice of an upload has at least one byte");
    if (bytes.size() > max_upload_slice)
        return fail(ErrorCode::too_large, "a slice of an upload has at most 1 MiB: send smaller ones");
    if (offset > size || bytes.size() > size - offset)
        return fail(ErrorCode::invalid, fmt::format("the slice reaches beyond the size of the upload, {} bytes", size));
    const std::lock_guard lock(mutex_);
    auto found = find_locked(id);
    if (!found && found.error().code != ErrorCode::not_found) return std::unexpected(found.error());
    Entry entry = found ? std::move(*found) : Entry{fmt::format("{}/{}.{}", folder_, id, size), {id, 0, size}};
    if (entry.upload.size != size)
        return fail(ErrorCode::busy,
                    fmt::format("the upload {} has {} bytes, not {}: use another id", id, entry.upload.size, size));
    if (entry.upload.got != offset)
        return fail(ErrorCode::busy, fmt::format("{} bytes of the upload are here: continue at offset {}",
                                                 entry.upload.got, entry.upload.got));
    if (offset == 0) {
        std::error_code error;
        fs::create_directories(folder_, error);
        if (error) return fail_errno("make " + folder_, error.value());
        (void)::chmod(folder_.c_str(), 0700);
        TRY(make_room(entry.upload));
    }
    TRY(append(entry.path, offset, bytes));
    entry.upload.got += bytes.size();
    return entry.upload;
}

// Removes abandoned uploads only. Others stay, and their announced sizes count, because their senders will send the
// rest.
Result<bool> UploadStore::make_room(const Upload& upload) const {
    const std::uint64_t size = upload.size;
    std::uint64_t total = 0, missing = 0;
    std::size_t count = 0;
    std::error_code error;
    for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
        struct stat status{};
        const std::string path = at->path().string();
        if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
        std::error_code ignored;
        if (std::time(nullptr) - status.st_mtim.tv_sec > forgotten_s) {
            fs::remove(path, ignored);
            continue;
        }
        const auto here = static_cast<std::uint64_t>(status.st_size);
        const auto name = parse_name(at->path().filename().string());
        if (name && name->first == upload.id) continue;
        const std::uint64_t announced = name ? std::max(name->second, here) : here;
        total = announced > limit_bytes_ - std::min(total, limit_bytes_) ? limit_bytes_ : total + announced;
        missing += announced - here;
        ++count;
    }
    if (count >= max_uploads)
        return fail(ErrorCode::too_large,
                    fmt::format("at most {} uploads can wait: finish or cancel one first", max_uploads));
    if (size > limit_bytes_ || total > limit_bytes_ - size)
        return fail(
            ErrorCode::too_large,
            fmt::format("uploads take at most {} MiB together, and {} MiB are here or announced: use or give up one "
                        "first",
                        limit_bytes_ >> 20, total >> 20));
    const fs::space_info space = fs::space(folder_, error);
    const std::uint64_t available = space.available - std::min<std::uint64_t>(space.available, missing);
    if (!error && available < size)
        return fail(ErrorCode::too_large, fmt::format("the disk of {} has only {} MiB left: free some space there",
                                                      folder_, available >> 20));
    return true;
}

Result<std::string> UploadStore::file(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    Entry entry = TRY(find_locked(id));
    if (!entry.upload.whole())
        return fail(ErrorCode::busy, fmt::format("{} of {} bytes of the upload are here: send the rest first",
                                                 entry.upload.got, entry.upload.size));
    return std::move(entry.path);
}

Result<bool> UploadStore::remove(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const Entry entry = TRY(find_locked(id));
    std::error_code error;
    const bool removed = fs::remove(entry.path, error);
    if (error) return fail_errno("remove " + entry.path, error.value());
    return removed;
}

}  // namespace flamewire::server
