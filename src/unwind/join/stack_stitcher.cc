#include "unwind/join/stack_stitcher.h"

#include <algorithm>
#include <utility>

namespace flamewire::unwind {
namespace {

// On a busy machine samples can be missing for other reasons. A thread that returned this often to the stored frames is
// trusted again.
constexpr std::uint32_t forgiving_returns = 8;
// Memory reads without a change that are required before trusting a thread that no sample proves.
constexpr std::uint32_t needed_reads = 6;
// Limit of memory reads per thread up to which needs_poll() requests early ones. Later reads come with the samples.
constexpr std::uint32_t max_early_reads = 64;
// Limit of walks through memory for a thread that still has no stored stack.
constexpr std::uint32_t most_lessons = 16;

// The stop reason of a stack that was completed to its root.
StopReason limit_depth(std::vector<Frame>& frames, std::size_t max_depth) {
    if (frames.size() <= max_depth) return StopReason::root;
    frames.resize(max_depth);
    return StopReason::max_depth;
}

}  // namespace

// In units of stored frames. A place is half as large.
std::size_t StackStitcher::Thread::room() const {
    return stack.capacity() + reads_ahead[0].places.size() + reads_ahead[1].places.size();
}

// Whether the memory read made after this stack agrees with the frames that would complete it.
bool StackStitcher::Thread::agrees_ahead() const {
    std::size_t seen = 0;
    bool all_same = true;
    stack.compare(outside, reads_ahead[0].places, [&](std::size_t, bool same) {
        ++seen;
        all_same = all_same && same;
    });
    return seen > 0 && all_same;
}

// Records that the thread went out to `turn` and came back to `sp` without a sample. If that was not just now, at an
// ordinary speed, it was some time since the last whole stack, from the deepest stack pointer since then.
void StackStitcher::Thread::note_unseen_way(std::uint64_t turn, std::uint64_t sp, std::uint64_t gap) {
    const bool just_now = whole || movement.ordinary(turn, sp, static_cast<double>(gap));
    const std::uint64_t way =
        just_now ? movement.length_of_way(turn, sp) : 2 * distance_out(std::min(deepest, sp), turn);
    movement.leap = std::max(movement.leap, way);
    returns = 0;
}

// Compares a whole stack with the stored one.
void StackStitcher::Thread::compare(const std::vector<Frame>& frames, std::uint64_t gap) {
    const std::size_t same = stack.same_from_root(frames);
    if (outside > 0 && same >= outside) {
        came_back = true;
        if (++returns >= forgiving_returns) movement.leap = 0;
    }
    // Search for a stored frame that now has other callers.
    for (std::size_t i = same + 1; i < frames.size(); ++i) {
        const StoredFrame frame(frames[frames.size() - 1 - i]);
        if (stack.find(frame) < stack.size()) return note_unseen_way(frame.sp, frames.front().sp, gap);
    }
}

StackStitcher::Thread* StackStitcher::find(std::uint64_t thread_id) {
    const auto found = threads_.find(thread_id);
    return found == threads_.end() ? nullptr : &found->second;
}

const StackStitcher::Thread* StackStitcher::find(std::uint64_t thread_id) const {
    return const_cast<StackStitcher*>(this)->find(thread_id);
}

bool StackStitcher::is_current(const Thread& thread, std::uint64_t space, std::uint64_t time_ns) const {
    return thread.last_used > lost_at_ && time_ns <= thread.last_ns + gap_ns_ && thread.space == space;
}

// Applies a memory read made before this stack. It confirms the stored callers, or discards them from the first changed
// one inwards. Frames inside of `sp`, the current stack pointer, have ended, and their memory has been reused.
void StackStitcher::apply_read(std::uint64_t thread_id, Thread& thread, std::uint64_t sp) {
    StoredStack& stack = thread.stack;
    const MemoryRead read = std::exchange(thread.reads_ahead[0], std::exchange(thread.reads_ahead[1], {}));
    std::size_t seen = 0;
    std::size_t changed = stack.size();
    bool other_caller = false;
    stack.compare(stack.first_at(sp), read.places, [&](std::size_t i, bool same) {
        ++seen;
        if (same && other_caller) callers_.note_several(thread_id, stack[i]);
        other_caller = !same;
        if (!same) changed = std::min(changed, i);
    });
    if (seen == 0) return;
    ++counts_.reads;
    if (changed == stack.size()) {
        ++thread.reads;
        thread.doubted = false;
        return;
    }
    ++counts_.refuted;
    thread.reads = 0;
    thread.refuted_at = stack[changed].sp;
    stack.truncate(changed);
}

void StackStitcher::remember(std::uint64_t thread_id, Thread& thread, const std::vector<Frame>& frames) {
    StoredStack& stack = thread.stack;
    for (std::size_t i = std::max<std::size_t>(stack.assign(frames), 1); i < stack.size(); ++i)
        callers_.note(thread_id, stack[i], stack[i - 1]);
}

// Whether the thread may have reached the frames beyond the copy by another path. `sp` is its stack pointer now.
bool StackStitcher::may_be_another(std::uint64_t thread_id, const Thread& thread, bool continuous,
                                   std::uint64_t sp) const {
    for (std::size_t i = thread.outside; i > 0; --i)
        if (callers_.has_several(thread_id, thread.stack[i]))
            return !continuous || thread.movement.possible(thread.stack[i].sp, sp);
    return false;
}

// Whether to trust the stored frames that the copy does not show: if samples followed the thread there and back, if
// memory agreed for a while (before this stack and after it), or if memory cannot be read.
bool StackStitcher::proven(const Thread& thread, std::uint64_t sp) const {
    if (!can_read_ || (thread.came_back && !thread.movement.possible(thread.stack[0].sp, sp))) return true;
    return thread.reads >= needed_reads && thread.agrees_ahead();
}

// Accounts for the room of a changed thread, and removes the threads that were not seen for longest.
void StackStitcher::make_room(std::uint64_t keep, Thread& changed) {
    stored_frames_ += changed.room() - std::exchange(changed.counted_room, changed.room());
    while (stored_frames_ * sizeof(StoredFrame) > limit_ && threads_.size() > 1) {
        auto oldest = threads_.end();
        for (auto it = threads_.begin(); it != threads_.end(); ++it)
            if (it->first != keep && (oldest == threads_.end() || it->second.last_used < oldest->second.last_used))
                oldest = it;
        stored_frames_ -= oldest->second.counted_room;
        threads_.erase(oldest);
    }
}

StackStitcher::StackStitcher(std::uint64_t gap_ns, std::size_t memory_bytes) : gap_ns_(gap_ns), limit_(memory_bytes) {}

StopReason StackStitcher::join(std::uint64_t thread_id, std::uint64_t space, std::uint64_t time_ns,
                               std::size_t max_depth, std::vector<Frame>& frames, StopReason stop) {
    const bool cut = stop == StopReason::truncated_copy;
    if (!StoredStack::can_store(frames)) {
        counts_.truncated += cut ? 1 : 0;
        return stop;
    }
    Thread& thread = threads_[thread_id];
    const bool continuous = is_current(thread, space, time_ns);
    if (thread.space != space) {
        stored_frames_ -= thread.counted_room;
        thread = {};
        thread.space = space;
    }
    thread.last_used = ++now_;
    thread.seen_since_read = true;
    const std::uint64_t sp = frames.front().sp;
    while (!thread.reads_ahead[0].places.empty() && time_ns >= thread.reads_ahead[0].time_ns)
        apply_read(thread_id, thread, sp);
    const std::uint64_t gap = distance_out(thread.last_ns, time_ns);
    if (continuous) thread.movement.note(sp, static_cast<double>(gap));
    // Deep before and after, and other callers in between: the thread went out without a sample.
    if (continuous && thread.refuted_at != 0 && cut && !thread.whole)
        thread.note_unseen_way(thread.refuted_at, sp, gap);
    thread.refuted_at = 0;
    thread.last_ns = time_ns;
    if (stop == StopReason::root && continuous) thread.compare(frames, gap);

    const std::size_t own_frames = frames.size();
    const bool joined = store(thread_id, thread, continuous, frames, stop);
    thread.whole = stop == StopReason::root;
    thread.cut = cut;
    if (thread.whole || thread.stack.empty()) thread.doubted = false;
    if (!cut || thread.stack.empty()) thread.outside = 0;
    thread.deepest = thread.whole || thread.deepest == 0 ? sp : std::min(thread.deepest, sp);
    thread.movement.last_sp = sp;
    make_room(thread_id, thread);
    if (!cut) return stop;
    ++(joined ? counts_.joined : counts_.truncated);
    if (joined) return limit_depth(frames, max_depth);
    frames.resize(own_frames);
    return stop;
}

// Stores a stack, completed if possible. Returns whether the frames that complete it are certain.
bool StackStitcher::store(std::uint64_t thread_id, Thread& thread, bool continuous, std::vector<Frame>& frames,
                          StopReason stop) {
    const std::uint64_t sp = frames.front().sp;
    if (stop == StopReason::root) {
        remember(thread_id, thread, frames);
        return false;
    }
    if (stop != StopReason::truncated_copy) {
        thread.stack.drop_inside(sp);
        return false;
    }
    const auto outside = thread.stack.outside_of(frames);
    if (!outside) {
        thread.stack.truncate(0);
        return false;
    }
    thread.outside = *outside;
    thread.stack.append_to(frames, *outside);
    // Uncertain frames are stored too: the next whole stack or memory read shows whether they are right.
    thread.doubted = thread.doubted || may_be_another(thread_id, thread, continuous, sp);
    counts_.ambiguous += thread.doubted ? 1 : 0;
    const bool certain = !thread.doubted && proven(thread, sp);
    remember(thread_id, thread, frames);
    return certain;
}

std::optional<Frame> StackStitcher::last_called(std::uint64_t thread_id, std::uint64_t space, std::uint64_t time_ns,
                                                std::uint64_t pc_at) const {
    const Thread* thread = find(thread_id);
    if (thread == nullptr || pc_at == 0 || !is_current(*thread, space, time_ns)) return std::nullopt;
    const std::size_t called = thread->stack.find_caller(pc_at) + 1;
    if (called >= thread->stack.size()) return std::nullopt;
    return thread->stack[called].as_frame();
}

StopReason StackStitcher::with_callers(std::uint64_t thread_id, std::uint64_t time_ns, std::uint64_t pc_at,
                                       std::size_t max_depth, std::vector<Frame>& frames) {
    Thread& thread = threads_.at(thread_id);
    thread.last_ns = time_ns;
    thread.last_used = ++now_;
    thread.stack.append_to(frames, thread.stack.find_caller(pc_at) + 1);
    ++counts_.joined;
    return limit_depth(frames, max_depth);
}

std::vector<std::uint64_t> StackStitcher::due_for_read(std::size_t limit) const {
    std::vector<std::uint64_t> ids;
    for (const auto& [id, thread] : threads_)
        if (thread.outside > 0 && thread.seen_since_read) ids.push_back(id);
    if (ids.size() <= limit) return ids;
    const auto last_read_of = [&](std::uint64_t id) { return threads_.at(id).last_read_ns; };
    std::sort(ids.begin(), ids.end(), [&](auto a, auto b) { return last_read_of(a) < last_read_of(b); });
    ids.resize(limit);
    return ids;
}

void StackStitcher::places_of(std::uint64_t thread_id, std::size_t limit, std::vector<StackPlace>& places) const {
    places.clear();
    const Thread* thread = find(thread_id);
    if (thread == nullptr) return;
    for (std::size_t i = 0; i < thread->outside && i < thread->stack.size() && places.size() < limit; ++i)
        if (thread->stack[i].pc_at != 0) places.push_back({thread->stack[i].pc_at, thread->stack[i].pc});
}

void StackStitcher::memory_read(std::uint64_t thread_id, std::uint64_t time_ns, std::vector<StackPlace> places) {
    Thread* thread = find(thread_id);
    if (thread == nullptr || places.empty()) return;
    thread->last_read_ns = time_ns;
    thread->seen_since_read = false;
    ++thread->total_reads;
    MemoryRead& place = thread->reads_ahead[thread->reads_ahead[0].places.empty() ? 0 : 1];
    place = {time_ns, std::move(places)};
    make_room(thread_id, *thread);
}

bool StackStitcher::needs_poll() const {
    return can_read_ && std::any_of(threads_.begin(), threads_.end(), [&](const auto& entry) {
               const Thread& thread = entry.second;
               if (!thread.cut || thread.total_reads >= max_early_reads || thread.movement.leap != 0) return false;
               return thread.stack.empty() ? thread.lessons < most_lessons
                                           : !thread.came_back && thread.reads < needed_reads;
           });
}

bool StackStitcher::has_nothing(std::uint64_t thread_id) const {
    const Thread* thread = find(thread_id);
    return thread != nullptr && thread->stack.empty() && thread->movement.leap == 0 && thread->lessons < most_lessons;
}

void StackStitcher::record(std::uint64_t thread_id, const std::vector<Frame>& frames, std::size_t own_frames) {
    Thread* thread = find(thread_id);
    if (thread == nullptr) return;
    ++thread->lessons;
    if (frames.size() <= own_frames || own_frames < StoredStack::wanted_matches || !StoredStack::can_store(frames))
        return;
    thread->outside = frames.size() - own_frames;
    remember(thread_id, *thread, frames);
    make_room(thread_id, *thread);
}

void StackStitcher::forget(std::uint64_t thread_id) {
    const auto found = threads_.find(thread_id);
    if (found == threads_.end()) return;
    stored_frames_ -= found->second.counted_room;
    threads_.erase(found);
}

std::size_t StackStitcher::memory_bytes() const {
    return stored_frames_ * sizeof(StoredFrame) + threads_.size() * sizeof(Thread) + callers_.memory_bytes();
}

}  // namespace flamewire::unwind
