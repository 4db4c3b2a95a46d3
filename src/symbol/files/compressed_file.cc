#include "symbol/files/compressed_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/growth.h"
#include "elf/xz.h"

namespace flamewire::symbol {
namespace {

constexpr std::size_t step_bytes = std::size_t{1} << 20;

constexpr std::string_view gzip_magic("\x1f\x8b", 2);
constexpr std::string_view xz_magic(
    "\xfd"
    "7zXZ\0",
    6);
constexpr std::string_view zstd_magic("\x28\xb5\x2f\xfd", 4);
constexpr std::array magics = {gzip_magic, xz_magic, zstd_magic};

// Each of these returns nullopt if the data is damaged or unpacks to more than `limit` bytes (at most one step more).
std::optional<std::string> gunzip(std::string_view packed, std::size_t limit) {
    z_stream stream{};
    constexpr int gzip_only = 16;
    if (inflateInit2(&stream, MAX_WBITS + gzip_only) != Z_OK) return std::nullopt;
    const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, inflateEnd);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    std::string inside;
    for (int state = Z_OK; state != Z_STREAM_END;) {
        const std::size_t have = inside.size();
        if (have > limit) return std::nullopt;
        inside.resize(have + step_bytes);
        stream.next_out = reinterpret_cast<Bytef*>(inside.data() + have);
        stream.avail_out = step_bytes;
        state = inflate(&stream, Z_NO_FLUSH);
        inside.resize(inside.size() - stream.avail_out);
        if (state != Z_OK && state != Z_STREAM_END) return std::nullopt;
    }
    return inside;
}

std::optional<std::string> unzstd(std::string_view packed, std::size_t limit) {
    const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    std::string inside;
    for (std::size_t left = 1; left != 0;) {
        const std::size_t have = inside.size();
        if (have > limit) return std::nullopt;
        inside.resize(have + step_bytes);
        ZSTD_outBuffer out{inside.data() + have, step_bytes, 0};
        left = ZSTD_decompressStream(stream.get(), &out, &in);
        inside.resize(have + out.pos);
        if (ZSTD_isError(left) != 0 || (left != 0 && in.pos == in.size && out.pos == 0)) return std::nullopt;
    }
    return inside;
}

std::optional<std::string> inside_of(std::string_view packed, std::size_t limit) {
    if (packed.starts_with(gzip_magic)) return gunzip(packed, limit);
    if (packed.starts_with(xz_magic)) return elf::decompress_xz(as_bytes_view(packed), limit);
    return unzstd(packed, limit);
}

Result<UniqueFd> in_memory(const std::string& path, std::string_view content) {
    UniqueFd file(::memfd_create("uncompressed", MFD_CLOEXEC));
    if (file.get() < 0) return fail_errno("uncompress " + path, errno);
    TRY(write_all(file.get(), as_bytes_view(content)));
    return file;
}

}  // namespace

Result<UniqueFd> open_uncompressed(const std::string& path) {
    UniqueFd file = TRY(open_read(path));
    const std::string begin = TRY(read_range(file.get(), 0, xz_magic.size()));
    if (std::ranges::none_of(magics, [&](std::string_view magic) { return begin.starts_with(magic); })) return file;
    const std::string packed = TRY(read_file(path, max_unpacked_file_bytes));
    const auto limit = static_cast<std::size_t>(growth_limit(packed.size(), max_unpacked_file_bytes));
    const auto inside = inside_of(packed, limit);
    if (!inside)
        return fail(ErrorCode::invalid,
                    fmt::format("{} is damaged, or has more than {} MiB inside", path, limit >> 20));
    return in_memory(path, *inside);
}

std::string_view without_compression_suffix(std::string_view path) {
    for (const std::string_view suffix : {".gz", ".xz", ".zst"})
        if (path.ends_with(suffix)) return path.substr(0, path.size() - suffix.size());
    return path;
}

}  // namespace flamewire::symbol
