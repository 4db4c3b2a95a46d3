#include "wire/frame.h"

#include <zstd.h>

#include <memory>

#include "base/byte_reader.h"
#include "base/utf8.h"

namespace flamewire::wire {
namespace {

constexpr int compression_level =
    1;  // higher levels save a few percent on delta columns and cost several times the CPU time

// A decoder that held a larger frame frees the memory afterwards.
constexpr std::size_t keep_capacity = std::size_t{1} << 20;

struct FreeContext {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// One context per thread: creating one for each batch would cost more than the compression itself.
ZSTD_CCtx* compression_context() {
    thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context = [] {
        std::unique_ptr<ZSTD_CCtx, FreeContext> created(ZSTD_createCCtx());
        ZSTD_CCtx_setParameter(created.get(), ZSTD_c_compressionLevel, compression_level);
        // Without a checksum, a damaged session file could show samples that were never recorded.
        ZSTD_CCtx_setParameter(created.get(), ZSTD_c_checksumFlag, 1);
        return created;
    }();
    return context.get();
}

void put_header(std::string& out, Flag flag, std::size_t payload_bytes) {
    const auto length = static_cast<std::uint32_t>(payload_bytes);
    for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>(length >> shift & 0xFFU));
    out.push_back(static_cast<char>(flag));
}

}  // namespace

std::string encode_frame(Flag flag, std::string_view payload) {
    std::string bytes;
    bytes.reserve(header_bytes + payload.size());
    put_header(bytes, flag, payload.size());
    bytes.append(payload);
    return bytes;
}

std::string refusal_text(std::string_view payload) { return printable(payload.substr(0, max_refusal_bytes)); }

FrameHeader decode_header(std::span<const std::byte, header_bytes> bytes) {
    ByteReader reader(bytes, std::endian::big);
    FrameHeader header;
    header.payload_bytes = reader.u32();
    header.flag = static_cast<Flag>(reader.u8());
    return header;
}

void FrameDecoder::feed(Bytes bytes) {
    if (failed_) return;
    // Remove returned frames before the buffer grows, so that it holds at most one frame and the bytes fed with it.
    if (start_ > 0) {
        buffer_.erase(0, start_);
        start_ = 0;
        if (buffer_.empty() && buffer_.capacity() > keep_capacity) buffer_.shrink_to_fit();
    }
    buffer_.append(as_text(bytes));
}

Result<std::optional<Frame>> FrameDecoder::next() {
    const Bytes rest = as_bytes_view(buffer_).subspan(start_);
    if (!failed_ && rest.size() < header_bytes) return std::nullopt;
    if (!failed_) {
        const FrameHeader header = decode_header(rest.first<header_bytes>());
        if (header.payload_bytes <= max_payload_) {
            if (rest.size() - header_bytes < header.payload_bytes) return std::nullopt;
            Frame frame{header.flag, std::string(as_text(rest.subspan(header_bytes, header.payload_bytes)))};
            start_ += header_bytes + header.payload_bytes;
            return frame;
        }
        failed_ = true;
        buffer_ = {};
        start_ = 0;
    }
    return fail(ErrorCode::too_large, "a frame announces more than " + std::to_string(max_payload_) + " bytes");
}

std::string compress(std::string_view bytes) {
    std::string out;
    out.resize(ZSTD_compressBound(bytes.size()));
    const std::size_t size = ZSTD_compress2(compression_context(), out.data(), out.size(), bytes.data(), bytes.size());
    // The bound is always enough, so this fails only if memory runs out. An empty result is never valid zstd.
    out.resize(ZSTD_isError(size) ? 0 : size);
    return out;
}

Result<std::string> decompress(Bytes bytes, std::size_t limit) {
    const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
    if (size == ZSTD_CONTENTSIZE_ERROR) return fail(ErrorCode::invalid, "not a zstd frame");
    if (size == ZSTD_CONTENTSIZE_UNKNOWN) return fail(ErrorCode::invalid, "a zstd frame that does not state its size");
    if (size > limit)
        return fail(ErrorCode::too_large,
                    "a zstd frame states more than " + std::to_string(limit) + " bytes of content");
    if (ZSTD_findFrameCompressedSize(bytes.data(), bytes.size()) != bytes.size())
        return fail(ErrorCode::invalid, "a zstd frame that is cut or has bytes after it");

    bool whole = false;
    std::string out;
    // resize() would touch the memory by zeroing the announced size. libstdc++ 12 passes the allocated capacity to the
    // callback, which may be more than `expected`.
    const auto expected = static_cast<std::size_t>(size);
    out.resize_and_overwrite(expected, [&](char* data, std::size_t) {
        const std::size_t got = ZSTD_decompress(data, expected, bytes.data(), bytes.size());
        whole = !ZSTD_isError(got) && got == expected;
        return whole ? expected : 0;
    });
    if (!whole) return fail(ErrorCode::invalid, "a damaged zstd frame");
    return out;
}

Frame batch_frame(std::string batch) {
    std::string compressed = compress(batch);
    if (compressed.empty()) return {Flag::batch, std::move(batch)};
    return {Flag::batch_zstd, std::move(compressed)};
}

Result<std::string> batch_bytes(Flag flag, Bytes payload) {
    if (flag == Flag::batch_zstd) return decompress(payload);
    if (flag == Flag::batch) return std::string(as_text(payload));
    return fail(ErrorCode::invalid,
                "a frame with flag " + std::to_string(static_cast<unsigned>(flag)) + " carries no batch");
}

Result<std::string> batch_bytes(const Frame& frame) { return batch_bytes(frame.flag, as_bytes_view(frame.payload)); }

}  // namespace flamewire::wire
