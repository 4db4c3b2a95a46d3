// The text of `perf stat` behind the samples of a PerfLens chunk, as readings of counters.
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
    // What was read since the last time becomes a reading that begins at `start_ns`, or where the last one ended.
    void finish(std::uint64_t start_ns);

private:
    RecordingBuilder& builder_;
    wire::CounterReading reading_;
    std::uint64_t elapsed_ns_ = 0, last_end_ns_ = 0;
};

}  // namespace flamewire::profile
