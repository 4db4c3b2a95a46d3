// The framing that such agents speak: u32 big-endian payload length, u8 flag, payload. docs/wire.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace flamewire::wire {

enum class Flag : std::uint8_t {
    legacy_text = 0,  // agent -> server: `perf script` text
    legacy_text_zstd = 1,
    command = 2,  // server -> agent: JSON
    reply = 3,    // agent -> server: JSON, hello included
    metrics = 4,  // agent -> server: JSON
    batch = 5,    // agent -> server: docs/wire.proto
    batch_zstd = 6,
    module_chunk = 7,     // agent -> server, not stored
    acknowledgement = 8,  // server -> agent: JSON
    refusal = 9,          // either way, before the connection is closed: a sentence for the other end's user
};

inline constexpr std::size_t header_bytes = 5;
// Checked before anything is allocated; the first also bounds a decompressed batch.
inline constexpr std::uint32_t max_payload_from_agent = 64U << 20;
inline constexpr std::uint32_t max_payload_to_agent = 1U << 20;
inline constexpr std::size_t max_refusal_bytes = 1000;

// A received or outgoing frame. A flag that this version does not know is kept as its number: unknown frames are
// skipped.
struct Frame {
    Flag flag{};
    std::string payload;
};

// Header and payload as bytes for a socket. The payload must have less than 4 GiB.
std::string encode_frame(Flag flag, std::string_view payload);

struct FrameHeader {
    std::uint32_t payload_bytes = 0;
    Flag flag{};
};
FrameHeader decode_header(std::span<const std::byte, header_bytes> bytes);

// What a refusal says, for a terminal or a page: one line of at most max_refusal_bytes without control characters.
std::string refusal_text(std::string_view payload);

// Turns a byte stream into frames. feed() any pieces; next() until it gives nothing. too_large once a header
// announces more than `max_payload`: the stream cannot be trusted after that and stays failed. Memory grows only with
// what was fed and not yet taken, never with what a header announces.
class FrameDecoder {
public:
    explicit FrameDecoder(std::uint32_t max_payload) : max_payload_(max_payload) {}
    void feed(Bytes bytes);
    Result<std::optional<Frame>> next();
    // Bytes that were fed and not taken.
    [[nodiscard]] std::size_t held() const { return buffer_.size() - start_; }

private:
    std::uint32_t max_payload_;
    std::string buffer_;
    std::size_t start_ = 0;
    bool failed_ = false;
};

// One independent zstd frame, level 1, content size in its header, checksum at its end.
std::string compress(std::string_view bytes);
// too_large when the content size says more than `limit` (checked before allocation), invalid when damaged, when it
// states no size, or when anything follows the one frame.
Result<std::string> decompress(Bytes bytes, std::size_t limit = max_payload_from_agent);

// A batch as a frame, compressed also where that gains nothing: its checksum tells damage in a session file.
Frame batch_frame(std::string batch);
// The batch bytes of a frame with flag batch or batch_zstd.
Result<std::string> batch_bytes(const Frame& frame);
Result<std::string> batch_bytes(Flag flag, Bytes payload);

}  // namespace flamewire::wire
