// A capture (agent/capture/format.h) in memory: for each call and its arguments, the recorded results in order. Captures
// are untrusted input: reading is bounded by max_capture_memory_bytes and checks every length.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/capture/format.h"
#include "base/result.h"

namespace flamewire::replay {

inline constexpr std::size_t max_capture_memory_bytes = std::size_t{2} << 30;

struct CallResult {
    std::uint32_t round = 0;  // 0: before the first wait
    std::string_view bytes;   // owned by the CaptureFile
};

class CaptureFile {
public:
    // invalid: not a capture, or damaged. A file that is cut inside a chunk is valid up to that chunk.
    static Result<CaptureFile> read(const std::string& path);
    static Result<CaptureFile> of_bytes(std::string_view bytes);

    // Empty if the call was never made with these arguments.
    [[nodiscard]] const std::vector<CallResult>& results(agent::Call call, std::string_view arguments) const;
    // What read_at returned for this handle: offsets and bytes.
    [[nodiscard]] const std::vector<std::pair<std::uint64_t, std::string_view>>& file_chunks(
        std::uint64_t handle) const;
    [[nodiscard]] std::uint32_t rounds() const { return rounds_; }
    [[nodiscard]] std::uint64_t entries() const { return entries_; }
    // Why the capture ends before the recording.
    [[nodiscard]] const std::optional<std::string>& truncated() const { return truncated_; }

private:
    Result<bool> take_chunk(std::string chunk);

    std::vector<std::unique_ptr<std::string>> chunks_;
    std::size_t memory_bytes_ = 0;
    std::unordered_map<std::string, std::vector<CallResult>> results_;
    std::unordered_map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::string_view>>> file_chunks_;
    std::uint32_t rounds_ = 0;
    std::uint64_t entries_ = 0;
    std::optional<std::string> truncated_;
};

}  // namespace flamewire::replay
