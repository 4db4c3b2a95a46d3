#include "server/session/unpack.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/growth.h"
#include "server/session/scratch_file.h"

namespace flamewire::server {
namespace {

constexpr std::string_view gzip_magic = "\x1f\x8b\x08", zstd_magic = "\x28\xb5\x2f\xfd";
constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr int gzip_window_bits = 15 + 16;

class Output {
public:
    Output(UniqueFd& fd, std::uint64_t packed_bytes)
        : fd_(fd), limit_(growth_limit(packed_bytes, max_unpacked_import_bytes)) {}
    Result<bool> write(const char* data, std::size_t size) {
        if (size > limit_ - size_)
            return fail(
                ErrorCode::too_large,
                fmt::format("the file unpacks to more than {} MiB: beyond {} MiB, at most {} times its size is "
                            "unpacked, and {} GiB. If it is yours, unpack it (gzip -d, zstd -d) and import that",
                            limit_ >> 20, free_growth_bytes >> 20, max_growth_ratio, max_unpacked_import_bytes >> 30));
        size_ += size;
        while (size != 0) {
            const ssize_t done = ::write(fd_.get(), data, size);
            if (done < 0 && errno == EINTR) continue;
            if (done < 0) return fail_errno("cannot unpack the file", errno);
            data += done;
            size -= static_cast<std::size_t>(done);
        }
        return true;
    }
    [[nodiscard]] std::uint64_t size() const { return size_; }

private:
    UniqueFd& fd_;
    std::uint64_t limit_, size_ = 0;
};

// Unpacks gzip input piece by piece. feed() consumes all of a piece. whole(), after the last piece, returns whether the
// input was complete.
class Inflater {
public:
    Inflater() { ready_ = inflateInit2(&stream_, gzip_window_bits) == Z_OK; }
    ~Inflater() { inflateEnd(&stream_); }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
    Result<bool> feed(std::vector<char>& in, std::size_t size, std::vector<char>& out, Output& output) {
        if (!ready_) return fail(ErrorCode::io, "there is no memory to unpack the file");
        stream_.next_in = reinterpret_cast<Bytef*>(in.data());
        stream_.avail_in = static_cast<uInt>(size);
        do {
            if (ended_) {
                // Another member, or padding, which gzip ignores too.
                if (*stream_.next_in != 0x1f) return true;
                inflateReset(&stream_);
                ended_ = false;
            }
            stream_.next_out = reinterpret_cast<Bytef*>(out.data());
            stream_.avail_out = static_cast<uInt>(out.size());
            const int state = inflate(&stream_, Z_NO_FLUSH);
            if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
                return fail(ErrorCode::invalid, "the gzip file is damaged");
            TRY(output.write(out.data(), out.size() - stream_.avail_out));
            ended_ = state == Z_STREAM_END;
        } while (stream_.avail_in != 0 || (!ended_ && stream_.avail_out == 0));
        return true;
    }
    [[nodiscard]] bool whole() const { return ended_; }

private:
    z_stream stream_{};
    bool ready_ = false, ended_ = false;
};

class ZstdReader {
public:
    Result<bool> feed(std::vector<char>& in, std::size_t size, std::vector<char>& out, Output& output) {
        if (!stream_) return fail(ErrorCode::io, "there is no memory to unpack the file");
        ZSTD_inBuffer from{in.data(), size, 0};
        bool full = false;
        while (from.pos < from.size || full) {
            ZSTD_outBuffer to{out.data(), out.size(), 0};
            left_ = ZSTD_decompressStream(stream_.get(), &to, &from);
            if (ZSTD_isError(left_) != 0)
                return fail(ErrorCode::invalid, fmt::format("the zstd file is damaged ({})", ZSTD_getErrorName(left_)));
            TRY(output.write(out.data(), to.pos));
            full = to.pos == to.size && left_ != 0;
        }
        return true;
    }
    [[nodiscard]] bool whole() const { return left_ == 0; }

private:
    struct Free {
        void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
    };
    std::unique_ptr<ZSTD_DStream, Free> stream_{ZSTD_createDStream()};
    std::size_t left_ = 1;
};

template <class Reader>
Result<bool> run(profile::ImportSource& from, const std::function<void(std::uint64_t)>& progress, Output& output) {
    Reader reader;
    std::vector<char> in(piece_bytes), out(piece_bytes);
    for (std::uint64_t offset = 0;;) {
        const std::size_t got = TRY(from.read_at(offset, in));
        if (got == 0) return reader.whole();
        TRY(reader.feed(in, got, out, output));
        offset += got;
        progress(offset);
    }
}

}  // namespace

bool is_compressed(std::string_view beginning) {
    return beginning.starts_with(gzip_magic) || beginning.starts_with(zstd_magic);
}

Result<Unpacked> unpack(profile::ImportSource& from, const std::string& folder,
                        const std::function<void(std::uint64_t)>& progress) {
    std::string magic(zstd_magic.size(), '\0');
    magic.resize(TRY(from.read_at(0, magic)));
    Unpacked unpacked;
    unpacked.fd = TRY(unnamed_file(folder));
    Output output(unpacked.fd, from.size());
    const bool whole = TRY(magic.starts_with(gzip_magic) ? run<Inflater>(from, progress, output)
                                                         : run<ZstdReader>(from, progress, output));
    unpacked.truncated = !whole;
    unpacked.size = output.size();
    return unpacked;
}

}  // namespace flamewire::server
