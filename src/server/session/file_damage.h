// What of a session's file cannot be read, in bytes and times of the recording, and the sentences for it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "wire/batch.h"
#include "wire/session_scan.h"

namespace flamewire::server {

// Nothing of a recording is left between these. Times are CLOCK_MONOTONIC of the target.
struct MissingTime {
    std::uint64_t start_ns = 0;  // 0: its beginning
    std::uint64_t end_ns = 0;    // 0: its end, whenever that was
};

// Whether a notice is one of FileDamage::notices().
bool is_of_damage(const wire::Notice& notice);

class FileDamage {
public:
    // `bytes` cannot be read; the batches before them end at `known_until_ns` (0: there are none).
    void skip(std::uint64_t bytes, std::uint64_t known_until_ns);
    // Bytes were skipped since the last batch.
    [[nodiscard]] bool open() const { return open_; }
    // The first batch behind skipped bytes, with samples from `first_ns` on; `missing` ones before it are not there. The
    // time that they were of; nothing if there are none.
    std::optional<MissingTime> close(std::uint64_t first_ns, std::uint64_t missing);
    // The file is read to its end; `ended`: the last batch of the recording is among what was read.
    void finish(const wire::SessionTail& tail, std::uint64_t file_bytes, std::uint64_t known_until_ns, bool ended);
    // The beginning of a frame at the end of the file was cut, as its agent sends it again.
    void forget_tail();

    [[nodiscard]] std::uint64_t unread_bytes() const { return bytes_ + cut_bytes_; }
    // Of those that were skipped.
    [[nodiscard]] std::uint64_t missing_batches() const { return batches_; }
    // Samples are missing and nothing says how many.
    [[nodiscard]] bool hides_samples() const { return !times_.empty() || (cut_bytes_ != 0 && !ended_); }

    // For times that begin at `start_ns`; `unusable` samples were read and refer to what is missing.
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
