// Completes stacks that are deeper than the copied bytes. Between two samples of a thread most of its stack stays the
// same: frames further out than both samples' stack pointers change only if the thread returns to them, and samples
// taken on the way show that. So the stitcher stores, for each thread, the whole stack as of its last sample:
//
//     last sample       main  a  f f f f f f f f [f f f f f f f]      [ ]: within the bytes that were copied
//     this sample                      [f f f f f f f f f g]
//     completed         main  a  f f f f f f f f f f f f f g
//
// A truncated stack is completed if its outermost frames match stored frames with the same stack pointers and pcs. Each
// sample discards the stored frames below its own stack pointer. So a thread that returned and came down another path
// is detected, provided that one sample was taken on the way. The stitcher decides whether one must have been taken:
//
//   - A mistake is possible at frames that were seen with two different callers at the same place. A thread is joined
//     across them only if it cannot have gone out there and back in since its last sample. The estimate uses its
//     fastest movement and its longest way that no sample saw, both recent.
//   - Where no such frame is known, a thread is joined if it was once seen to return to the stored stack, or if
//     several reads of its memory showed no change. If it moves as fast as its whole stack is deep, only the reads
//     count.
//   - If memory shows other callers than the stored ones, the stored ones are discarded.
//
// Otherwise the stack stays truncated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "unwind/frame/frame.h"
#include "unwind/frame/stop_reason.h"
#include "unwind/join/caller_table.h"
#include "unwind/join/movement.h"
#include "unwind/join/stored_stack.h"

namespace flamewire::unwind {

class StackStitcher {
public:
    // Samples of a thread that are more than `gap_ns` apart are not consecutive: others may be missing between them.
    explicit StackStitcher(std::uint64_t gap_ns, std::size_t memory_bytes = std::size_t{4} << 20);
    StackStitcher(const StackStitcher&) = delete;
    StackStitcher& operator=(const StackStitcher&) = delete;

    // Adds a stack of a thread as walked, innermost frame first, in time order per thread. `space` identifies the
    // contents of the address space; frames stored for another one are discarded. Stacks that stopped at `root` are
    // stored as whole. A stack that stopped at `truncated_copy` is completed if possible: appends the missing frames
    // (FoundBy::joined) up to `max_depth` and returns the stop reason of the completed stack. All other stacks are left
    // unchanged.
    StopReason join(std::uint64_t thread, std::uint64_t space, std::uint64_t time_ns, std::size_t max_depth,
                    std::vector<Frame>& frames, StopReason stop);
    // For a signal handler on its own stack, whose walk ended at the interrupted frame because the thread's own stack
    // is not in the copy. `pc_at` is where that stack has the caller's pc. Returns the stored frame that this caller
    // called, if any. If it is in the same function as the interrupted frame, with_callers() completes the stack.
    [[nodiscard]] std::optional<Frame> last_called(std::uint64_t thread, std::uint64_t space, std::uint64_t time_ns,
                                                   std::uint64_t pc_at) const;
    StopReason with_callers(std::uint64_t thread, std::uint64_t time_ns, std::uint64_t pc_at, std::size_t max_depth,
                            std::vector<Frame>& frames);
    // Call if samples were lost: the next sample of each thread is then not consecutive to its last.
    void samples_lost() { lost_at_ = now_; }
    void forget(std::uint64_t thread);

    // The memory of a live process can be read. Places are those of stored frames outside of the bytes that the
    // thread's last sample copied.
    // due_for_read: threads for which a memory read would help, at most `limit`, those not read for longest first.
    // places_of: the places of one thread, at most `limit`, outermost first.
    [[nodiscard]] std::vector<std::uint64_t> due_for_read(std::size_t limit) const;
    void places_of(std::uint64_t thread, std::size_t limit, std::vector<StackPlace>& places) const;
    // Reports what these places held at `time_ns`. Takes effect with the first stack at or after that time.
    void memory_read(std::uint64_t thread, std::uint64_t time_ns, std::vector<StackPlace> places);
    // Whether early memory reads would let stacks be completed sooner.
    [[nodiscard]] bool needs_poll() const;
    // Whether no stored frames exist that could complete the thread's last, truncated stack. A walk through memory
    // would provide them.
    [[nodiscard]] bool has_nothing(std::uint64_t thread) const;
    // Adds the result of such a walk: the last stack and the frames outside of it, innermost first. The first
    // `own_frames` are from the copy.
    void record(std::uint64_t thread, const std::vector<Frame>& frames, std::size_t own_frames);
    // Call if memory cannot be read, or no longer. Then nothing waits for reads.
    void cannot_read() { can_read_ = false; }

    struct Counts {
        std::uint64_t joined = 0;     // stacks completed
        std::uint64_t truncated = 0;  // stacks that stayed truncated
        std::uint64_t ambiguous = 0;  // of these: other callers are equally likely
        std::uint64_t reads = 0;      // memory reads
        std::uint64_t refuted = 0;    // of these: other callers were found
    };
    [[nodiscard]] const Counts& counts() const { return counts_; }
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    struct MemoryRead {
        std::uint64_t time_ns = 0;
        std::vector<StackPlace> places;  // empty: none
    };
    struct Thread {
        [[nodiscard]] std::size_t room() const;
        [[nodiscard]] bool agrees_ahead() const;
        void note_unseen_way(std::uint64_t turn, std::uint64_t sp, std::uint64_t gap);
        void compare(const std::vector<Frame>& frames, std::uint64_t gap);

        std::uint64_t space = 0;
        std::uint64_t last_used = 0;  // in calls of join()
        std::uint64_t last_ns = 0;
        StoredStack stack;             // empty: unknown
        std::size_t counted_room = 0;  // room(), as it is in stored_frames_
        Movement movement;
        bool whole = false;         // the last stack was walked to its root
        bool cut = false;           // the last stack was walked to the end of the copy
        bool doubted = false;       // frames beyond the copy are uncertain; cleared by a whole stack or a read
        bool came_back = false;     // a whole stack had the stored callers
        std::uint32_t returns = 0;  // how often, since the thread was caught elsewhere
        std::uint64_t deepest = 0;  // lowest stack pointer since a stack was walked to its root
        std::size_t outside = 0;    // frames beyond the copy of the last stack; 0 if it was whole or nothing is known
        std::uint32_t reads = 0;    // memory reads without a change, since the last change
        std::uint32_t total_reads = 0, lessons = 0;
        std::uint64_t last_read_ns = 0;         // time of the newest memory read
        bool seen_since_read = false;           // whether a stack came after it
        std::array<MemoryRead, 2> reads_ahead;  // reads newer than the last stack, the older one first
        std::uint64_t refuted_at = 0;           // the last read found changed callers at this stack pointer
    };

    Thread* find(std::uint64_t thread_id);
    [[nodiscard]] const Thread* find(std::uint64_t thread_id) const;
    [[nodiscard]] bool is_current(const Thread& thread, std::uint64_t space, std::uint64_t time_ns) const;
    void apply_read(std::uint64_t thread_id, Thread& thread, std::uint64_t sp);
    void remember(std::uint64_t thread_id, Thread& thread, const std::vector<Frame>& frames);
    bool store(std::uint64_t thread_id, Thread& thread, bool continuous, std::vector<Frame>& frames, StopReason stop);
    [[nodiscard]] bool may_be_another(std::uint64_t thread_id, const Thread& thread, bool continuous,
                                      std::uint64_t sp) const;
    [[nodiscard]] bool proven(const Thread& thread, std::uint64_t sp) const;
    void make_room(std::uint64_t keep, Thread& changed);

    std::uint64_t gap_ns_;
    std::size_t limit_;
    bool can_read_ = true;
    std::uint64_t now_ = 0, lost_at_ = 0;  // in calls of join()
    std::size_t stored_frames_ = 0;        // room of all threads
    std::unordered_map<std::uint64_t, Thread> threads_;
    CallerTable callers_;
    Counts counts_;
};

}  // namespace flamewire::unwind
