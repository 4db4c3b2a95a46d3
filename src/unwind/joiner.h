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
// path is not mistaken, as long as one sample fell on the way. Where that is less than sure (samples are missing) and a
// frame had been seen with two different callers at the same place, nobody knows, and the stack stays truncated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "unwind/frame.h"
#include "unwind/stop_reason.h"

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
    // Samples were lost: the next one of every thread does not follow its last.
    void samples_lost();
    void forget(std::uint64_t thread);

    struct Counts {
        std::uint64_t joined = 0;     // stacks completed
        std::uint64_t truncated = 0;  // stacks that stayed truncated
        std::uint64_t ambiguous = 0;  // of these, because a frame on the way has been seen with two callers
    };
    [[nodiscard]] const Counts& counts() const;
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::unwind
