#include "server/session/health_history.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "server/limits.h"
#include "wire/control.h"

namespace flamewire::server {

namespace {

constexpr std::array<std::string_view, 6> types{"system", "process", "network", "disk", "threads", "agent"};
// Frames of one round are at most this far apart.
constexpr std::uint64_t round_ns = 500'000'000;

// From frames in time order, picks the first round in each of `slices` equal slices of [first_ns, last_ns].
class RoundPicker {
public:
    RoundPicker(std::uint64_t first_ns, std::uint64_t last_ns, std::size_t slices)
        : first_ns_(first_ns),
          slice_ns_((static_cast<double>(last_ns - first_ns) + 1) / static_cast<double>(slices)),
          taken_(slices) {}

    bool picks(std::uint64_t mono_ns) {
        const bool same_round = any_ && mono_ns <= picked_ns_ + round_ns;
        const auto slice = static_cast<std::size_t>(static_cast<double>(mono_ns - first_ns_) / slice_ns_);
        if (!same_round && slice == taken_) return false;
        if (!same_round) taken_ = slice;
        picked_ns_ = mono_ns;
        return any_ = true;
    }

private:
    std::uint64_t first_ns_;
    double slice_ns_;
    std::size_t taken_;  // the last slice with a picked round
    std::uint64_t picked_ns_ = 0;
    bool any_ = false;
};

// Removes a round of the older half if that leaves no gap wider than four average gaps. At most half of the rounds (and
// one) remain; where they are already far apart, they stay. Only whole rounds are removed, so the frames of several
// processes stay together.
void thin_out(std::vector<HealthHistory::Frame>& frames) {
    const auto begins_round = [&](std::size_t i) {
        return i == 0 || frames[i].mono_ns > frames[i - 1].mono_ns + round_ns;
    };
    std::size_t half = std::max<std::size_t>(frames.size() / 2, 1);
    while (half < frames.size() && !begins_round(half)) ++half;
    std::vector<std::size_t> rounds;  // indexes of first frames, then of the first frame of the newer half
    for (std::size_t i = 0; i < half; ++i)
        if (begins_round(i)) rounds.push_back(i);
    const double span_ns = static_cast<double>(frames[half - 1].mono_ns - frames[0].mono_ns);
    const double widest_ns = 4 * span_ns / static_cast<double>(rounds.size());
    rounds.push_back(half);
    std::size_t kept = 0;
    std::uint64_t last_ns = 0;  // of the last round that was kept
    for (std::size_t round = 0; round + 1 < rounds.size(); ++round) {
        const std::size_t first = rounds[round], next = rounds[round + 1];
        const bool needed =
            round == 0 || next == frames.size() || static_cast<double>(frames[next].mono_ns - last_ns) > widest_ns;
        if (!needed) continue;
        last_ns = frames[first].mono_ns;
        for (std::size_t i = first; i < next; ++i, ++kept)
            if (kept != i) frames[kept] = std::move(frames[i]);
    }
    if (kept == half) return;
    const auto newer = frames.begin() + static_cast<std::ptrdiff_t>(half);
    frames.erase(std::move(newer, frames.end(), frames.begin() + static_cast<std::ptrdiff_t>(kept)), frames.end());
}

}  // namespace

bool is_health_type(std::string_view type) { return std::ranges::find(types, type) != types.end(); }

bool HealthHistory::add(std::string_view json) {
    if (json.size() > max_frame_bytes) {
        limit_reached(Limit::health_frame);
        return false;
    }
    const auto document = wire::parse_object(json);
    if (!document) return false;
    const std::string name = wire::text_member(*document, "type");
    const auto time = document->FindMember("mono_ns");
    if (!is_health_type(name) || time == document->MemberEnd() || !time->value.IsUint64()) return false;
    const std::uint64_t mono_ns = time->value.GetUint64();
    const std::lock_guard lock(mutex_);
    std::vector<Frame>& frames = frames_[name];
    if (!frames.empty() && mono_ns < frames.back().mono_ns) return false;
    frames.push_back({mono_ns, std::string(json)});
    ++version_;
    std::size_t& bytes = bytes_[name];
    bytes += json.size();
    const auto over = [&] { return frames.size() > max_frames_ || (bytes > max_bytes_ && frames.size() > 1); };
    const auto count = [&] {
        bytes = 0;
        for (const Frame& frame : frames) bytes += frame.json.size();
    };
    if (!over()) return true;
    if (bytes > max_bytes_) limit_reached(Limit::health_bytes);
    thin_out(frames);
    count();
    // The rounds cannot be thinned (for example, one process every 0.1 s): remove the oldest.
    if (over()) frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>((frames.size() + 1) / 2));
    count();
    return true;
}

std::map<std::string, std::vector<HealthHistory::Frame>> HealthHistory::newest() const {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::vector<Frame>> result;
    for (const auto& [type, frames] : frames_) {
        std::size_t first = frames.size() - 1;
        // In a round each process has its own frame. All other types have one.
        while (type == "process" && first > 0 && frames[first - 1].mono_ns + round_ns >= frames.back().mono_ns) --first;
        result[type].assign(frames.begin() + static_cast<std::ptrdiff_t>(first), frames.end());
    }
    return result;
}

std::vector<HealthHistory::Frame> HealthHistory::between(std::string_view type, std::uint64_t start_ns,
                                                         std::uint64_t end_ns, std::size_t max_rounds) const {
    const std::lock_guard lock(mutex_);
    const auto found = frames_.find(type);
    if (found == frames_.end()) return {};
    const auto before = [](const Frame& frame, std::uint64_t time) { return frame.mono_ns < time; };
    const auto first = std::lower_bound(found->second.begin(), found->second.end(), start_ns, before);
    const auto last = std::lower_bound(first, found->second.end(), end_ns, before);
    const auto count = static_cast<std::size_t>(last - first);
    if (max_rounds == 0 || count <= max_rounds) return {first, last};
    RoundPicker picker(first->mono_ns, std::prev(last)->mono_ns, max_rounds);
    std::vector<Frame> kept;
    std::copy_if(first, last, std::back_inserter(kept),
                 [&](const Frame& frame) { return picker.picks(frame.mono_ns); });
    return kept;
}

std::size_t HealthHistory::memory_bytes() const {
    const std::lock_guard lock(mutex_);
    std::size_t bytes = 0;
    for (const auto& [type, frames] : frames_) {
        bytes += frames.capacity() * sizeof(Frame);
        for (const Frame& frame : frames) bytes += frame.json.capacity() + 1;
    }
    return bytes;
}

std::uint64_t HealthHistory::version() const {
    const std::lock_guard lock(mutex_);
    return version_;
}

}  // namespace flamewire::server
