// The stack of a thread as of its last sample: outermost frame first, with descending stack pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "unwind/frame/frame.h"

namespace flamewire::unwind {

struct StoredFrame {
    std::uint64_t sp = 0, pc = 0, pc_at = 0;
    bool return_address = false;

    StoredFrame() = default;
    explicit StoredFrame(const Frame& frame)
        : sp(frame.sp), pc(frame.pc), pc_at(frame.pc_at), return_address(frame.return_address) {}
    [[nodiscard]] Frame as_frame() const;
    bool operator==(const StoredFrame& other) const {
        return sp == other.sp && pc == other.pc && return_address == other.return_address;
    }
};

// The address and value of a return address in the memory of a process.
struct StackPlace {
    std::uint64_t address = 0;
    std::uint64_t value = 0;
};

class StoredStack {
public:
    // Number of outermost frames of a truncated stack that must match stored frames.
    static constexpr std::size_t wanted_matches = 2;
    // Whether `frames`, innermost first, can be stored. A stack that switches between memory areas (a signal's
    // alternate stack) has no order to search by.
    static bool can_store(const std::vector<Frame>& frames);

    [[nodiscard]] bool empty() const { return frames_.empty(); }
    [[nodiscard]] std::size_t size() const { return frames_.size(); }
    [[nodiscard]] std::size_t capacity() const { return frames_.capacity(); }
    [[nodiscard]] const StoredFrame& operator[](std::size_t index) const { return frames_[index]; }

    // The first frame at or below a stack pointer.
    [[nodiscard]] std::size_t first_at(std::uint64_t sp) const;
    // The place of an equal frame, or of the frame whose caller's pc is stored at `pc_at`. Otherwise size().
    [[nodiscard]] std::size_t find(const StoredFrame& frame) const;
    [[nodiscard]] std::size_t find_caller(std::uint64_t pc_at) const;
    // Number of frames, counted from the root, that match the stored ones.
    [[nodiscard]] std::size_t same_from_root(const std::vector<Frame>& frames) const;
    // Number of stored frames outside of `frames`, whose outermost frames are stored too. nullopt if they are not.
    [[nodiscard]] std::optional<std::size_t> outside_of(const std::vector<Frame>& frames) const;
    // Appends the first `count` frames, which are further out.
    void append_to(std::vector<Frame>& frames, std::size_t count) const;
    // Calls `each(index, same)` for those of the first `count` frames whose place was read.
    template <class Each>
    void compare(std::size_t count, const std::vector<StackPlace>& places, Each each) const {
        std::size_t next = 0;
        for (std::size_t i = 0; i < count && i < frames_.size(); ++i) {
            while (next < places.size() && places[next].address > frames_[i].pc_at) ++next;
            if (next == places.size()) return;
            if (places[next].address == frames_[i].pc_at) each(i, places[next].value == frames_[i].pc);
        }
    }

    // Stores `frames`. Returns the first changed place: the outer part is usually the same.
    std::size_t assign(const std::vector<Frame>& frames);
    void truncate(std::size_t count) { frames_.resize(count); }
    // Discards the frames below `sp`, which have ended.
    void drop_inside(std::uint64_t sp);

private:
    std::vector<StoredFrame> frames_;
};

}  // namespace flamewire::unwind
