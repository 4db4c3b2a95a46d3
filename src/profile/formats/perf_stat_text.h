// Parses the output of `perf stat` after the samples of a PerfLens chunk into counter readings.
#pragma once

#include <cstdint>
#include <string_view>

#include "profile/formats/recording_builder.h"
#include "wire/batch.h"

namespace flamewire::profile {

class PerfStatText {
public:
    explicit PerfStatText(RecordingBuilder& builder) : builder_(builder) {}

    void line(std::string_view text);
    // Emits what was read since the last call as a reading that begins at `start_ns`, or where the last one ended.
    void finish(std::uint64_t start_ns);

private:
    RecordingBuilder& builder_;
    wire::CounterReading reading_;
    std::uint64_t elapsed_ns_ = 0, last_end_ns_ = 0;
};

}  // namespace flamewire::profile
