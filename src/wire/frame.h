// The framing of the link: u32 big-endian payload length, u8 flag, payload. See docs/wire.md.
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
    refusal = 9,          // both directions, before the connection is closed: a message for the peer's user
};

inline constexpr std::size_t header_bytes = 5;
// Checked before any allocation. max_payload_from_agent also limits a decompressed batch.
inline constexpr std::uint32_t max_payload_from_agent = 64U << 20;
inline constexpr std::uint32_t max_payload_to_agent = 1U << 20;
inline constexpr std::size_t max_refusal_bytes = 1000;

// A received or outgoing frame. An unknown flag keeps its number, so that unknown frames can be skipped.
struct Frame {
    Flag flag{};
    std::string payload;
};

// Header and payload as bytes for a socket. The payload must be smaller than 4 GiB.
std::string encode_frame(Flag flag, std::string_view payload);

struct FrameHeader {
    std::uint32_t payload_bytes = 0;
    Flag flag{};
};
FrameHeader decode_header(std::span<const std::byte, header_bytes> bytes);

// The text of a refusal for a terminal or a page: one printable() line of at most max_refusal_bytes of the payload.
std::string refusal_text(std::string_view payload);

// Splits a byte stream into frames. Call feed() with pieces of any size, then next() until it returns nothing.
// too_large: a header announces more than `max_payload`. The stream cannot be trusted after that and stays failed.
// Memory use depends only on the bytes that are fed and not yet returned, never on the size that a header announces.
class FrameDecoder {
public:
    explicit FrameDecoder(std::uint32_t max_payload) : max_payload_(max_payload) {}
    void feed(Bytes bytes);
    Result<std::optional<Frame>> next();
    // Bytes that were fed and not yet returned by next().
    [[nodiscard]] std::size_t held() const { return buffer_.size() - start_; }

private:
    std::uint32_t max_payload_;
    std::string buffer_;
    std::size_t start_ = 0;
    bool failed_ = false;
};

// Returns one independent zstd frame: level 1, with content size and checksum.
std::string compress(std::string_view bytes);
// too_large: the content size is over `limit` (checked before allocation). invalid: the frame is damaged, does not
// state its content size, or is followed by other bytes.
Result<std::string> decompress(Bytes bytes, std::size_t limit = max_payload_from_agent);

// A batch as a frame. Always compressed, even if that saves nothing: the checksum detects damage in a session file.
Frame batch_frame(std::string batch);
// The batch bytes of a frame with flag batch or batch_zstd.
Result<std::string> batch_bytes(const Frame& frame);
Result<std::string> batch_bytes(Flag flag, Bytes payload);

}  // namespace flamewire::wire
