// The health frames of a session: the newest of each type, and earlier ones. Memory is limited. If a type has too many
// frames, the older half is thinned to at most half of its frames, where they are densest. So the last hour stays
// complete and a day stays in even steps. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace flamewire::server {

class HealthHistory {
public:
    static constexpr std::size_t max_frame_bytes = std::size_t{256} << 10, default_bytes = std::size_t{16} << 20;
    explicit HealthHistory(std::size_t max_frames_of_type = 3600, std::size_t max_bytes_of_type = default_bytes)
        : max_frames_(max_frames_of_type), max_bytes_(max_bytes_of_type) {}

    // Adds one flag-4 payload. False: the payload is dropped. It is not an object with a known `type` and a `mono_ns`,
    // is larger than max_frame_bytes, or is older than the newest frame of its type.
    bool add(std::string_view json);

    struct Frame {
        std::uint64_t mono_ns = 0;
        std::string json;  // as received; valid JSON
    };
    // Newest frame of each type. For `process`, which has one frame per process: all frames of the newest round.
    [[nodiscard]] std::map<std::string, std::vector<Frame>> newest() const;
    // Frames of a type with start_ns <= mono_ns < end_ns, oldest first. If there are more than max_rounds rounds (0: no
    // limit), the time is divided into max_rounds equal slices, and each contributes its first round.
    [[nodiscard]] std::vector<Frame> between(std::string_view type, std::uint64_t start_ns, std::uint64_t end_ns,
                                             std::size_t max_rounds = 0) const;
    // Increases with every stored frame.
    [[nodiscard]] std::uint64_t version() const;
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    std::size_t max_frames_, max_bytes_;
    mutable std::mutex mutex_;
    std::map<std::string, std::vector<Frame>, std::less<>> frames_;
    std::map<std::string, std::size_t, std::less<>> bytes_;  // per type
    std::uint64_t version_ = 0;
};

// system, process, network, disk, threads, agent
bool is_health_type(std::string_view type);

}  // namespace flamewire::server
