// Completes stacks that are deeper than the copied bytes. Between two samples of a thread most of its stack stays as it
// is: frames further out than both samples' stack pointers can only change when the thread returns to them, and samples
// on the way show that. So the joiner remembers, for each thread, the whole stack as its last sample left it:
//
//     last sample       main  a  f f f f f f f f [f f f f f f f]      [ ]: within the bytes that were copied
//     this sample                      [f f f f f f f f f g]
//     completed         main  a  f f f f f f f f f f f f f g
//
// A truncated stack is completed when its outermost frames are remembered at the same stack pointers with the same pcs.
// A sample ends all that is remembered below its own stack pointer, so a thread that returned and came down another
// path is not mistaken, as long as one sample fell on the way. Whether one must have fallen is judged by what is known:
//
//   - Frames that were seen with two different callers at the same place are where a mistake could happen. A thread is
//     joined across them only when it cannot have gone out there and back in since its last sample, by the fastest that
//     it was seen to move and the furthest that it was caught to have gone unseen, of late.
//   - Where no such frame is known, a thread is joined when it was once seen to come back as it was remembered, or its
//     memory has been looked at several times and nothing had changed. If it moves as fast as its whole stack is deep,
//     only the looks count.
//   - Memory that shows other callers than those remembered ends them.
//
// Otherwise the stack stays truncated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "unwind/frame/frame.h"
#include "unwind/frame/stop_reason.h"

namespace flamewire::unwind {

class Joiner {
public:
    // Samples of a thread that are further apart than `gap_ns` do not follow each other: something may be missing.
    explicit Joiner(std::uint64_t gap_ns, std::size_t memory_bytes = std::size_t{4} << 20);
    ~Joiner();
    Joiner(const Joiner&) = delete;
    Joiner& operator=(const Joiner&) = delete;

    // One stack of a thread, as walked, innermost frame first; stacks of a thread come in time order. `space` names the
    // content of the address space: what is remembered of another is void. Only stacks that stopped at `root` are
    // remembered as whole. One that stopped at `truncated_copy` is completed when it can be: the missing frames are
    // appended (FoundBy::joined) up to `max_depth`, and the answer is the reason of the completed stack. Every other
    // stack is left alone.
    StopReason join(std::uint64_t thread, std::uint64_t space, std::uint64_t time_ns, std::size_t max_depth,
                    std::vector<Frame>& frames, StopReason stop);
    // A signal's handler on a stack of its own: the walk came to what it interrupted, and no further, because the thread's
    // own stack is not in the copy. `pc_at` is where the caller's pc is there. The frame that was remembered inside of that
    // caller, when one is: what was interrupted should be the same function. Then with_callers() completes the stack.
    [[nodiscard]] std::optional<Frame> last_called(std::uint64_t thread, std::uint64_t space, std::uint64_t time_ns,
                                                   std::uint64_t pc_at) const;
    StopReason with_callers(std::uint64_t thread, std::uint64_t time_ns, std::uint64_t pc_at, std::size_t max_depth,
                            std::vector<Frame>& frames);
    // Samples were lost: the next one of every thread does not follow its last.
    void samples_lost();
    void forget(std::uint64_t thread);

    // Of a live process, memory can be looked at. A place holds the return address of a frame that is remembered
    // outside of the bytes that the thread's last sample had.
    struct Place {
        std::uint64_t address = 0;
        std::uint64_t value = 0;
    };
    // Threads of which a look would tell something, at most `limit`, first those not looked at for longest; and the places
    // of one, at most `limit`, the outermost first.
    [[nodiscard]] std::vector<std::uint64_t> to_look_at(std::size_t limit) const;
    void places_of(std::uint64_t thread, std::size_t limit, std::vector<Place>& places) const;
    // What these places held at `time_ns`. It counts from the first stack after that time on.
    void looked(std::uint64_t thread, std::uint64_t time_ns, std::vector<Place> places);
    // Looks soon would let stacks be completed sooner.
    [[nodiscard]] bool wants_looks() const;
    // Nothing is remembered that the thread's last stack, a truncated one, could be completed with; a walk through
    // memory would tell.
    [[nodiscard]] bool knows_nothing(std::uint64_t thread) const;
    // What such a walk found: the last stack and the frames outside of it, innermost first, `own_frames` from the copy.
    void learn(std::uint64_t thread, const std::vector<Frame>& frames, std::size_t own_frames);
    // Memory cannot be looked at, or not any more: nothing waits for it.
    void cannot_look();

    struct Counts {
        std::uint64_t joined = 0;     // stacks completed
        std::uint64_t truncated = 0;  // stacks that stayed truncated
        std::uint64_t ambiguous = 0;  // of these, because other callers are as likely
        std::uint64_t looks = 0;      // at memory
        std::uint64_t refuted = 0;    // of these, that found other callers
    };
    [[nodiscard]] const Counts& counts() const;
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::unwind
