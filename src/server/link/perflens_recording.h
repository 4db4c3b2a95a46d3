// What a PerfLens agent sends while it records, made what ours sends: its texts of perf script become batches, of one
// recording from one start to the next stop. Frames go through in their order. Not thread-safe but for about().
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
    // Of the recordings that begin from now on. Any thread.
    void about(wire::Recording about);

    // Texts become batches, health frames get times by the clock of samples, all else is left out. What cannot be read is
    // a notice of the recording.
    std::deque<ArrivedFrame> take(std::deque<ArrivedFrame> frames);
    // The last batch of the recording, if one runs; the next text begins another one.
    std::deque<ArrivedFrame> end(const std::string& reason, std::int64_t now_ns);

private:
    void take_text(const ArrivedFrame& frame, std::deque<ArrivedFrame>& out);
    void take_metrics(const ArrivedFrame& frame, std::deque<ArrivedFrame>& out) const;
    void begin();

    std::mutex about_mutex_;
    wire::Recording about_;

    std::optional<profile::RecordingBuilder> builder_;
    std::unique_ptr<profile::PerfScriptText> text_;
    wire::EventPeriods periods_;
    std::uint32_t epoch_ = 0;  // of periods_
    std::deque<ArrivedFrame>* out_ = nullptr;
    std::int64_t arrival_ns_ = 0;           // of the frame in hand
    std::optional<std::int64_t> clock_ns_;  // arrival − time of the newest sample, at the last text
    std::uint64_t unreadable_ = 0;          // texts
    std::string why_;                       // the last one was
};

}  // namespace flamewire::server
