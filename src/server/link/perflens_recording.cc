#include "server/link/perflens_recording.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <utility>

#include "server/link/perflens_messages.h"

namespace flamewire::server {
namespace {

wire::RecordingId random_recording() {
    wire::RecordingId id{};
    (void)!::getrandom(id.data(), id.size(), 0);
    return id;
}

}  // namespace

void PerfLensRecording::set_metadata(wire::Recording metadata) {
    const std::lock_guard lock(metadata_mutex_);
    metadata_ = std::move(metadata);
}

std::deque<ArrivedFrame> PerfLensRecording::convert(std::deque<ArrivedFrame> frames) {
    std::deque<ArrivedFrame> out;
    for (ArrivedFrame& frame : frames) {
        switch (frame.frame.flag) {
            case wire::Flag::legacy_text:
            case wire::Flag::legacy_text_zstd: convert_text(frame, out); break;
            case wire::Flag::metrics: convert_metrics(frame, out); break;
            case wire::Flag::batch:
            case wire::Flag::batch_zstd:
                out.push_back(std::move(frame));  // a batch made here earlier, which the disk refused then
                break;
            default: break;
        }
    }
    return out;
}

// Nothing is known about a recording before its first sample.
void PerfLensRecording::begin() {
    builder_.reset();
    text_ = std::make_unique<profile::PerfScriptText>([this](wire::Recording of_text) -> profile::RecordingBuilder& {
        wire::Recording metadata;
        {
            const std::lock_guard lock(metadata_mutex_);
            metadata = metadata_;
        }
        metadata.start_ns = of_text.start_ns;
        metadata.kernel = true;
        periods_.clear();
        epoch_ = 0;
        const auto emit = [this](wire::Batch batch) -> Result<bool> {
            // The newest sample is as old as the text, so the arrival time is its time.
            batch.realtime_ns = arrival_ns_;
            if (std::exchange(epoch_, batch.epoch) != batch.epoch) periods_.clear();
            wire::learn_periods(batch, periods_);
            out_->push_back({wire::batch_frame(wire::encode(batch, periods_)), arrival_ns_});
            return true;
        };
        return builder_.emplace(random_recording(), std::move(metadata), arrival_ns_, emit);
    });
}

void PerfLensRecording::convert_text(const ArrivedFrame& frame, std::deque<ArrivedFrame>& out) {
    out_ = &out;
    arrival_ns_ = frame.arrival_ns;
    if (!text_) begin();
    Result<bool> taken = true;
    if (frame.frame.flag == wire::Flag::legacy_text_zstd) {
        const Result<std::string> text = wire::decompress(as_bytes_view(frame.frame.payload));
        taken = text ? text_->feed(*text) : std::unexpected(text.error());
    } else {
        taken = text_->feed(frame.frame.payload);
    }
    if (taken) taken = text_->end_chunk();
    if (!taken) {
        ++unreadable_;
        unreadable_reason_ = taken.error().message;
    }
    if (builder_ && unreadable_ != 0 && !taken)
        builder_->note("perflens-text", fmt::format("{} texts of the PerfLens agent could not be read: {}.",
                                                    unreadable_, unreadable_reason_));
    if (text_->newest_ns() != 0) clock_ns_ = frame.arrival_ns - static_cast<std::int64_t>(text_->newest_ns());
    out_ = nullptr;
}

void PerfLensRecording::convert_metrics(const ArrivedFrame& frame, std::deque<ArrivedFrame>& out) const {
    if (!builder_ || !clock_ns_ || frame.arrival_ns < *clock_ns_) return;
    std::string translated =
        metrics_of_perflens(frame.frame.payload, static_cast<std::uint64_t>(frame.arrival_ns - *clock_ns_));
    if (!translated.empty()) out.push_back({{wire::Flag::metrics, std::move(translated)}, frame.arrival_ns});
}

std::deque<ArrivedFrame> PerfLensRecording::end(const std::string& reason, std::int64_t now_ns) {
    std::deque<ArrivedFrame> out;
    if (text_ && builder_) {
        out_ = &out;
        arrival_ns_ = now_ns;
        (void)text_->finish();
        (void)builder_->finish(reason);
        out_ = nullptr;
    }
    text_.reset();
    builder_.reset();
    clock_ns_.reset();
    unreadable_ = 0;
    return out;
}

}  // namespace flamewire::server
