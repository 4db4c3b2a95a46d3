// Completes stacks that are deeper than the copied bytes. Frames of a thread that were seen at the same stack pointer
// with the same pc a moment ago, and that no shallower sample has ended since, are still there: a truncated stack whose
// outermost frames are among them goes on as that stack did.
//
// What could go wrong, and what prevents it: a thread that returned and came down another path to the same frames would
// get the wrong callers. So a stack is only ever completed from what the thread's *last* samples showed (a sample ends
// all remembered frames below its own stack pointer), and never through a frame that was seen with two different
// callers at the same place: then nobody knows, and the stack stays truncated.
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
    explicit Joiner(std::size_t memory_bytes = std::size_t{4} << 20);
    ~Joiner();
    Joiner(const Joiner&) = delete;
    Joiner& operator=(const Joiner&) = delete;

    // One stack of a thread, as walked, in time order. `space` names the content of the address space: remembered
    // frames of another are void. Only stacks that stopped at `root` are remembered as whole; one that stopped at
    // `truncated_copy` is completed when it can be: the missing frames are appended (FoundBy::joined) up to `max_depth`,
    // and the answer is the reason of the completed stack. Every other stack is left alone, and ends what was remembered.
    StopReason join(std::uint64_t thread, std::uint64_t space, std::size_t max_depth, std::vector<Frame>& frames,
                    StopReason stop);
    void forget(std::uint64_t thread);

    struct Counts {
        std::uint64_t joined = 0;     // stacks completed
        std::uint64_t truncated = 0;  // stacks that stayed truncated
        std::uint64_t ambiguous = 0;  // of these, because a frame on the way had been seen with two callers
    };
    [[nodiscard]] const Counts& counts() const;
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::unwind
