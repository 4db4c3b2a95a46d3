#include "profile/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace flamewire::profile {
namespace {

constexpr int gzip_window_bits = 15 + 16, memory_level = 8;
constexpr std::size_t piece_bytes = std::size_t{1} << 18;

}  // namespace

Result<std::string> gzipped(std::string_view bytes) {
    z_stream stream{};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window_bits, memory_level, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return fail(ErrorCode::io, "there is no memory to compress the export");
    std::string out;
    int state = Z_OK;
    while (state == Z_OK) {
        const std::size_t input = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
        // zlib's input pointer is not const, but zlib does not write to it.
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
        stream.avail_in = static_cast<uInt>(input);
        const std::size_t before = out.size();
        out.resize(before + piece_bytes);
        stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
        stream.avail_out = static_cast<uInt>(piece_bytes);
        state = deflate(&stream, input == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
        out.resize(out.size() - stream.avail_out);
        bytes.remove_prefix(input - stream.avail_in);
    }
    deflateEnd(&stream);
    if (state != Z_STREAM_END) return fail(ErrorCode::io, "the export cannot be compressed");
    return out;
}

}  // namespace flamewire::profile
