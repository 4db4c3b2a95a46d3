#include "unwind/join/stored_stack.h"

#include <algorithm>

namespace flamewire::unwind {

Frame StoredFrame::as_frame() const {
    Frame frame;
    frame.pc = pc;
    frame.sp = sp;
    frame.pc_at = pc_at;
    frame.return_address = return_address;
    frame.found_by = FoundBy::joined;
    return frame;
}

bool StoredStack::can_store(const std::vector<Frame>& frames) {
    for (std::size_t i = 1; i < frames.size(); ++i)
        if (frames[i].sp <= frames[i - 1].sp && !(i == 1 && frames[1].sp == frames[0].sp)) return false;
    return !frames.empty() && frames.front().sp != 0;
}

std::size_t StoredStack::first_at(std::uint64_t sp) const {
    const auto found = std::lower_bound(frames_.begin(), frames_.end(), sp,
                                        [](const StoredFrame& frame, std::uint64_t value) { return frame.sp > value; });
    return static_cast<std::size_t>(found - frames_.begin());
}

std::size_t StoredStack::find(const StoredFrame& frame) const {
    for (std::size_t at = first_at(frame.sp); at < frames_.size() && frames_[at].sp == frame.sp; ++at)
        if (frames_[at] == frame) return at;
    return frames_.size();
}

std::size_t StoredStack::find_caller(std::uint64_t pc_at) const {
    std::size_t at = 0;
    while (at < frames_.size() && frames_[at].pc_at != pc_at) ++at;
    return at;
}

std::size_t StoredStack::same_from_root(const std::vector<Frame>& frames) const {
    std::size_t same = 0;
    while (same < frames_.size() && same < frames.size() &&
           frames_[same] == StoredFrame(frames[frames.size() - 1 - same]))
        ++same;
    return same;
}

std::optional<std::size_t> StoredStack::outside_of(const std::vector<Frame>& frames) const {
    const std::size_t at = find(StoredFrame(frames.back()));
    for (std::size_t i = 0; i < std::min(wanted_matches, frames.size()); ++i)
        if (at + i >= frames_.size() || !(frames_[at + i] == StoredFrame(frames[frames.size() - 1 - i])))
            return std::nullopt;
    return at;
}

void StoredStack::append_to(std::vector<Frame>& frames, std::size_t count) const {
    for (std::size_t i = count; i-- > 0;) frames.push_back(frames_[i].as_frame());
}

std::size_t StoredStack::assign(const std::vector<Frame>& frames) {
    const std::size_t same = same_from_root(frames);
    frames_.resize(same);
    for (std::size_t i = same; i < frames.size(); ++i) frames_.emplace_back(frames[frames.size() - 1 - i]);
    return same;
}

void StoredStack::drop_inside(std::uint64_t sp) {
    while (!frames_.empty() && frames_.back().sp < sp) frames_.pop_back();
}

}  // namespace flamewire::unwind
