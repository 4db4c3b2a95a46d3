// The unreadable parts of a session file, in bytes and in time, and the notices that report them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "wire/batch.h"
#include "wire/session_scan.h"

namespace flamewire::server {

// A range of the recording without samples. Times are CLOCK_MONOTONIC of the target.
struct MissingTime {
    std::uint64_t start_ns = 0;  // 0: the beginning of the recording
    std::uint64_t end_ns = 0;    // 0: the end of the recording
};

// Whether FileDamage::notices() made this notice.
bool is_damage_notice(const wire::Notice& notice);

class FileDamage {
public:
    // Adds `bytes` unreadable bytes behind batches that end at `known_until_ns` (0: there are none).
    void skip(std::uint64_t bytes, std::uint64_t known_until_ns);
    // Whether bytes were skipped since the last batch.
    [[nodiscard]] bool open() const { return open_; }
    // Ends the skipped part at a batch whose samples begin at `first_ns`; `missing` batches before it are lost. Returns the
    // time that they covered; nothing if none is lost.
    std::optional<MissingTime> close(std::uint64_t first_ns, std::uint64_t missing);
    // Adds what follows the last sound record. `ended`: the last batch of the recording was read.
    void finish(const wire::SessionTail& tail, std::uint64_t file_bytes, std::uint64_t known_until_ns, bool ended);
    // The incomplete frame at the end was cut off: the agent sends it again.
    void clear_tail();

    [[nodiscard]] std::uint64_t unread_bytes() const { return bytes_ + cut_bytes_; }
    // Batches in the skipped parts.
    [[nodiscard]] std::uint64_t missing_batches() const { return batches_; }
    // Whether an unknown number of samples is missing.
    [[nodiscard]] bool hides_samples() const { return !times_.empty() || (cut_bytes_ != 0 && !ended_); }

    // Times in the texts are relative to `start_ns`. `unusable` samples were read but refer to unreadable entries.
    [[nodiscard]] std::vector<wire::Notice> notices(std::uint64_t start_ns, std::uint64_t unusable) const;

private:
    void add(MissingTime time);

    std::uint64_t bytes_ = 0, places_ = 0, batches_ = 0, file_bytes_ = 0;
    std::uint64_t cut_bytes_ = 0, cut_at_ns_ = 0;
    bool open_ = false, ended_ = false;
    std::uint64_t open_from_ns_ = 0;
    std::vector<MissingTime> times_;
};

}  // namespace flamewire::server
