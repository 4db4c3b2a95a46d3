#include "server/session/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/file.h"
#include "profile/symbols/symbol_cache.h"
#include "server/session/scratch_file.h"
#include "server/session/side_files.h"

namespace flamewire::server {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 18;
// A stream already consists of zstd frames, so more effort gains little.
constexpr const char* zstd_level = "3";
constexpr std::size_t max_entries = 1'000;
constexpr std::size_t max_name_bytes = 100;

struct FreeWriter {
    void operator()(::archive* it) const { ::archive_write_free(it); }
};
struct FreeReader {
    void operator()(::archive* it) const { ::archive_read_free(it); }
};
struct FreeEntry {
    void operator()(::archive_entry* it) const { ::archive_entry_free(it); }
};
using Writer = std::unique_ptr<::archive, FreeWriter>;
using Reader = std::unique_ptr<::archive, FreeReader>;

std::unexpected<Error> cannot_write(::archive* out) {
    const int error = ::archive_errno(out);
    if (error > 0) return fail_errno("cannot write the archive", error);
    const char* text = ::archive_error_string(out);
    return fail(ErrorCode::io, fmt::format("cannot write the archive: {}", text == nullptr ? "unknown error" : text));
}

// Adds the file at `path` under `name`. False if it does not exist.
Result<bool> add_file(::archive* out, const std::string& path, const std::string& name) {
    auto fd = open_read(path);
    if (!fd && fd.error().code == ErrorCode::not_found) return false;
    if (!fd) return std::unexpected(fd.error());
    struct stat status{};
    if (::fstat(fd->get(), &status) != 0) return fail_errno("cannot read " + path, errno);
    const std::unique_ptr<::archive_entry, FreeEntry> entry(::archive_entry_new());
    ::archive_entry_set_pathname(entry.get(), name.c_str());
    ::archive_entry_set_filetype(entry.get(), AE_IFREG);
    ::archive_entry_set_perm(entry.get(), 0644);
    ::archive_entry_set_size(entry.get(), status.st_size);
    ::archive_entry_set_mtime(entry.get(), status.st_mtim.tv_sec, 0);
    if (::archive_write_header(out, entry.get()) != ARCHIVE_OK) return cannot_write(out);
    // Write the file up to its size at this moment: the stream of a live session grows meanwhile.
    const auto size = static_cast<std::uint64_t>(status.st_size);
    for (std::uint64_t at = 0; at < size;) {
        const std::string piece = TRY(read_range(fd->get(), at, std::min<std::uint64_t>(piece_bytes, size - at)));
        if (piece.empty()) return fail(ErrorCode::io, path + " became shorter while it was read");
        if (::archive_write_data(out, piece.data(), piece.size()) != static_cast<la_ssize_t>(piece.size()))
            return cannot_write(out);
        at += piece.size();
    }
    return true;
}

// Supplies libarchive with the next piece of input.
struct Source {
    profile::ImportSource& from;
    std::uint64_t offset = 0;
    std::vector<char> piece = std::vector<char>(piece_bytes);
    std::optional<Error> error{};
};
la_ssize_t next_piece(::archive* in, void* context, const void** bytes) {
    Source& source = *static_cast<Source*>(context);
    const auto got = source.from.read_at(source.offset, source.piece);
    if (!got) {
        source.error = got.error();
        ::archive_set_error(in, EIO, "%s", got.error().message.c_str());
        return -1;
    }
    source.offset += *got;
    *bytes = source.piece.data();
    return static_cast<la_ssize_t>(*got);
}

// Size limit for a file of that name; nothing: not one of a session's files. Only the archive's own size limits a
// stream.
std::optional<std::uint64_t> limit_of(std::string_view name) {
    if (name == stream_name) return std::numeric_limits<std::uint64_t>::max();
    if (name == label_name) return std::uint64_t{1} << 20;
    const bool ours = std::ranges::find(portable_files, name) != portable_files.end();
    return ours ? std::optional<std::uint64_t>(profile::max_symbol_cache_bytes) : std::nullopt;
}

struct Name {
    std::string_view folder, file;
};
// "a/b/stream.flw" -> "b", "stream.flw".
Name split(std::string_view path) {
    while (path.starts_with("./")) path.remove_prefix(2);
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return {"", path};
    const std::string_view above = path.substr(0, slash);
    return {above.substr(above.rfind('/') + 1), path.substr(slash + 1)};  // npos + 1 is 0
}

// Whether sanitized_name() would keep the name unchanged, so that a session keeps its name when it moves.
bool is_valid_session_name(std::string_view name) {
    return !name.empty() && name.size() <= max_name_bytes && name.front() != '.' &&
           std::ranges::all_of(name, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                      c == '-' || c == '.';
           });
}

Error damaged(::archive* in, const Source& source) {
    if (source.error) return *source.error;
    const char* text = ::archive_error_string(in);
    return {.code = ErrorCode::invalid,
            .message = fmt::format("the archive is damaged or cut off ({:.200})", text == nullptr ? "" : text)};
}

// `limit`: for this file. `budget`: for all files; extract() subtracts what it writes.
Result<bool> extract(::archive* in, const Source& source, const std::string& path, std::uint64_t limit,
                     std::uint64_t& budget) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) return fail_errno("cannot write " + path, errno);
    std::vector<char> piece(piece_bytes);
    for (std::uint64_t written = 0;;) {
        const la_ssize_t got = ::archive_read_data(in, piece.data(), piece.size());
        if (got < 0) return std::unexpected(damaged(in, source));
        if (got == 0) return true;
        const auto size = static_cast<std::size_t>(got);
        if (size > limit - written)
            return fail(ErrorCode::invalid,
                        fmt::format("the archive's {} is larger than any that a session has", split(path).file));
        if (size > budget)
            return fail(ErrorCode::invalid, "the archive holds more than its own size: nothing of it is imported");
        TRY(write_all(fd.get(), std::as_bytes(std::span(piece.data(), size))));
        written += size;
        budget -= size;
    }
}

}  // namespace

Result<ArchiveFile> write_archive(const std::string& id, const std::string& stream_path,
                                  const std::string& scratch_dir) {
    ArchiveFile file;
    file.fd = TRY(unnamed_file(scratch_dir));
    const Writer out(::archive_write_new());
    if (!out) return fail(ErrorCode::io, "there is no memory for the archive");
    const bool ready =
        ::archive_write_set_format_pax_restricted(out.get()) == ARCHIVE_OK &&
        ::archive_write_add_filter_zstd(out.get()) == ARCHIVE_OK &&
        ::archive_write_set_filter_option(out.get(), "zstd", "compression-level", zstd_level) == ARCHIVE_OK &&
        ::archive_write_open_fd(out.get(), file.fd.get()) == ARCHIVE_OK;
    if (!ready) return cannot_write(out.get());
    if (!TRY(add_file(out.get(), stream_path, fmt::format("{}/{}", id, stream_name))))
        return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
    for (const std::string_view name : portable_files)
        TRY(add_file(out.get(), side_file(stream_path, name), fmt::format("{}/{}", id, name)));
    if (::archive_write_close(out.get()) != ARCHIVE_OK) return cannot_write(out.get());
    const off_t size = ::lseek(file.fd.get(), 0, SEEK_END);
    if (size < 0 || ::lseek(file.fd.get(), 0, SEEK_SET) != 0) return fail_errno("cannot read the archive", errno);
    file.size = static_cast<std::uint64_t>(size);
    return file;
}

bool is_tar(std::string_view beginning) {
    constexpr std::size_t block = 512, magic_at = 257;
    return beginning.size() >= block && beginning.substr(magic_at).starts_with("ustar");
}

Result<std::string> read_archive(profile::ImportSource& from, const std::string& directory) {
    Source source{from};
    const Reader in(::archive_read_new());
    if (!in) return fail(ErrorCode::io, "there is no memory for the archive");
    if (::archive_read_support_format_tar(in.get()) != ARCHIVE_OK ||
        ::archive_read_open(in.get(), &source, nullptr, next_piece, nullptr) != ARCHIVE_OK)
        return std::unexpected(damaged(in.get(), source));
    std::string name;
    std::set<std::string, std::less<>> seen;
    // The files of an unpacked tar cannot have more bytes than the tar itself, except for holes.
    std::uint64_t budget = from.size();
    for (std::size_t entries = 0;; ++entries) {
        ::archive_entry* entry = nullptr;
        const int state = ::archive_read_next_header(in.get(), &entry);
        if (state == ARCHIVE_EOF) break;
        if (state != ARCHIVE_OK) return std::unexpected(damaged(in.get(), source));
        if (entries == max_entries) return fail(ErrorCode::invalid, "the archive has more files than any session");
        const char* path = ::archive_entry_pathname(entry);
        const Name at = split(path == nullptr ? std::string_view() : std::string_view(path));
        const auto limit = limit_of(at.file);
        if (!limit) continue;
        const bool plain = ::archive_entry_filetype(entry) == AE_IFREG && ::archive_entry_hardlink(entry) == nullptr;
        if (!plain) return fail(ErrorCode::invalid, fmt::format("the archive's {} is not a regular file", at.file));
        if (::archive_entry_sparse_count(entry) != 0)
            return fail(ErrorCode::invalid,
                        fmt::format("the archive's {} is a sparse file, which no export makes; if it is yours, pack it "
                                    "again without `tar --sparse`",
                                    at.file));
        if (!seen.emplace(at.file).second)
            return fail(ErrorCode::invalid,
                        fmt::format("the archive has two files {}: import one session at a time", at.file));
        if (at.file == stream_name && is_valid_session_name(at.folder)) name = at.folder;
        TRY(extract(in.get(), source, directory + "/" + std::string(at.file), *limit, budget));
    }
    if (!seen.contains(stream_name))
        return fail(ErrorCode::invalid,
                    fmt::format("the archive is not of a session: there is no {} in it", stream_name));
    return name;
}

}  // namespace flamewire::server
