// Converts what a PerfLens agent sends while it records into the frames of our own agents. Its perf script texts become
// batches. One recording lasts from a start to the next stop. Frames keep their order. Only set_metadata() is
// thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "profile/formats/perf_script_import.h"
#include "profile/formats/recording_builder.h"
#include "server/link/ingest.h"
#include "wire/batch.h"
#include "wire/frame.h"

namespace flamewire::server {

class PerfLensRecording {
public:
    // Metadata for the recordings that begin from now on. Any thread.
    void set_metadata(wire::Recording metadata);

    // Converts texts to batches and gives health frames times on the clock of the samples. Drops all other frames. A
    // notice of the recording reports texts that cannot be read.
    std::deque<ArrivedFrame> convert(std::deque<ArrivedFrame> frames);
    // Returns the last batch of the running recording, if any. The next text begins a new recording.
    std::deque<ArrivedFrame> end(const std::string& reason, std::int64_t now_ns);

private:
    void convert_text(const ArrivedFrame& frame, std::deque<ArrivedFrame>& out);
    void convert_metrics(const ArrivedFrame& frame, std::deque<ArrivedFrame>& out) const;
    void begin();

    std::mutex metadata_mutex_;
    wire::Recording metadata_;

    std::optional<profile::RecordingBuilder> builder_;
    std::unique_ptr<profile::PerfScriptText> text_;
    wire::EventPeriods periods_;
    std::uint32_t epoch_ = 0;  // of periods_
    std::deque<ArrivedFrame>* out_ = nullptr;
    std::int64_t arrival_ns_ = 0;           // of the current frame
    std::optional<std::int64_t> clock_ns_;  // arrival time minus time of the newest sample, at the last text
    std::uint64_t unreadable_ = 0;          // texts
    std::string unreadable_reason_;         // why the last one was unreadable
};

}  // namespace flamewire::server
