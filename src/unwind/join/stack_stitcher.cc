#include "unwind/join/stack_stitcher.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

namespace flamewire::unwind {
namespace {

// Number of outermost frames of a truncated stack that must match stored frames.
constexpr std::size_t wanted_matches = 2;
// Size of the table of callers. Each place holds one frame; a newer frame replaces an older one.
constexpr std::size_t caller_places = 8192;
// A way out and back is possible if it takes at most this many sample periods at the thread's fastest observed speed.
// The thread may be faster than observed: samples show only its position at both ends.
constexpr double possible_periods = 3.0;
// A way is ordinary if it takes at most this many periods.
constexpr double ordinary_periods = 1.5;
// On a busy machine samples can be missing for other reasons. A thread that returned this often to the stored frames is
// trusted again.
constexpr std::uint32_t forgiving_returns = 8;
// Memory reads without a change that are required before trusting a thread that no sample proves.
constexpr std::uint32_t needed_reads = 6;
// Limit of memory reads per thread up to which needs_poll() requests early ones. Later reads come with the samples.
constexpr std::uint32_t max_early_reads = 64;
// Limit of walks through memory for a thread that still has no stored stack.
constexpr std::uint32_t most_lessons = 16;

struct Node {
    std::uint64_t sp = 0, pc = 0, pc_at = 0;
    bool return_address = false;

    bool operator==(const Node& other) const {
        return sp == other.sp && pc == other.pc && return_address == other.return_address;
    }
};

// How far a thread moves between two samples. Stack pointers in bytes, times in ns.
struct Movement {
    double out = 0, in = 0;  // fastest, in bytes per ns, towards the root and away from it
    double period_ns = 0;    // between samples while it runs
    std::uint64_t leap = 0;  // longest way that no sample saw
    std::uint64_t last_sp = 0;

    void note(std::uint64_t sp, double gap_ns);
    // The shortest time for the way from last_sp out to `turn` and back in to `sp`.
    [[nodiscard]] double time_of_way(std::uint64_t turn, std::uint64_t sp) const;
    [[nodiscard]] bool possible(std::uint64_t turn, std::uint64_t sp) const;
};

struct MemoryRead {
    std::uint64_t time_ns = 0;
    std::vector<StackStitcher::Place> places;  // empty: none
};

struct Thread {
    std::uint64_t space = 0;
    std::uint64_t last_used = 0;  // in calls of join()
    std::uint64_t last_ns = 0;
    std::vector<Node> stack;  // outermost first, descending stack pointers; empty: unknown
    Movement movement;
    bool whole = false;         // the last stack was walked to its root
    bool cut = false;           // the last stack was walked to the end of the copy
    bool doubted = false;       // frames beyond the copy are uncertain; cleared by a whole stack or a read
    bool came_back = false;     // a whole stack had the stored callers
    std::uint32_t returns = 0;  // how often, since the thread was caught elsewhere
    std::uint64_t deepest = 0;  // lowest stack pointer since a stack was walked to its root
    std::size_t outside = 0;    // nodes beyond the copy of the last stack; 0 if it was whole or nothing is known
    std::uint32_t reads = 0;    // memory reads without a change, since the last change
    std::uint32_t total_reads = 0, lessons = 0;
    std::uint64_t last_read_ns = 0;         // time of the newest memory read
    bool seen_since_read = false;           // whether a stack came after it
    std::array<MemoryRead, 2> reads_ahead;  // reads newer than the last stack, the older one first
    std::uint64_t refuted_at = 0;           // the last read found changed callers at this stack pointer
};

// In units of nodes. A place is half as large.
std::size_t room_of(const Thread& thread) {
    return thread.stack.capacity() + thread.reads_ahead[0].places.size() + thread.reads_ahead[1].places.size();
}

// The caller of a frame. `several`: it had more than one.
struct Callers {
    std::uint64_t frame = 0, caller = 0;
    bool several = false;
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio, odd
    return hash ^ (hash >> 32);
}

Node node_of(const Frame& frame) { return {frame.sp, frame.pc, frame.pc_at, frame.return_address}; }

// A stack that switches between memory areas (a signal's alternate stack) has no order to search by.
bool falls_inwards(const std::vector<Frame>& frames) {
    for (std::size_t i = 1; i < frames.size(); ++i)
        if (frames[i].sp <= frames[i - 1].sp && !(i == 1 && frames[1].sp == frames[0].sp)) return false;
    return !frames.empty() && frames.front().sp != 0;
}

// The first node at or below a stack pointer.
std::size_t first_at(const std::vector<Node>& stack, std::uint64_t sp) {
    const auto found = std::lower_bound(stack.begin(), stack.end(), sp,
                                        [](const Node& node, std::uint64_t value) { return node.sp > value; });
    return static_cast<std::size_t>(found - stack.begin());
}

// Calls `each(index, same)` for those of the first `count` nodes whose place was read.
template <class Each>
void compare_places(const std::vector<Node>& stack, std::size_t count, const std::vector<StackStitcher::Place>& places,
                    Each each) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < std::min(count, stack.size()); ++i) {
        while (next < places.size() && places[next].address > stack[i].pc_at) ++next;
        if (next == places.size()) return;
        if (places[next].address == stack[i].pc_at) each(i, places[next].value == stack[i].pc);
    }
}

bool holds(const std::vector<Node>& stack, const Node& node) {
    std::size_t at = first_at(stack, node.sp);
    while (at < stack.size() && stack[at].sp == node.sp && !(stack[at] == node)) ++at;
    return at < stack.size() && stack[at] == node;
}

// Number of frames, counted from the root, that match the stored ones.
std::size_t same_from_root(const std::vector<Node>& stack, const std::vector<Frame>& frames) {
    std::size_t same = 0;
    while (same < stack.size() && same < frames.size() && stack[same] == node_of(frames[frames.size() - 1 - same]))
        ++same;
    return same;
}

// Appends the first `count` nodes as frames further out.
void append(const std::vector<Node>& stack, std::size_t count, std::vector<Frame>& frames) {
    for (std::size_t i = count; i-- > 0;) {
        Frame frame;
        frame.pc = stack[i].pc;
        frame.sp = stack[i].sp;
        frame.pc_at = stack[i].pc_at;
        frame.return_address = stack[i].return_address;
        frame.found_by = FoundBy::joined;
        frames.push_back(frame);
    }
}

std::uint64_t key_of(std::uint64_t thread_id, const Node& frame) {
    return mix(mix(mix(0, thread_id), frame.sp), frame.pc);
}

std::uint64_t distance(std::uint64_t from, std::uint64_t to) { return to > from ? to - from : 0; }

void Movement::note(std::uint64_t sp, double gap_ns) {
    // A waiting thread is not sampled, so a long pause is not a long period. The period follows the short gaps.
    if (period_ns == 0)
        period_ns = gap_ns;
    else
        period_ns += gap_ns < period_ns ? (gap_ns - period_ns) / 8 : std::min(gap_ns - period_ns, period_ns) / 64;
    const double time = std::max({gap_ns, period_ns / 2, 1.0});
    // Older movement counts less and less: a program has phases.
    constexpr double keep = 0.9998;
    out = std::max(out * keep, static_cast<double>(distance(last_sp, sp)) / time);
    in = std::max(in * keep, static_cast<double>(distance(sp, last_sp)) / time);
}

double Movement::time_of_way(std::uint64_t turn, std::uint64_t sp) const {
    const auto time = [](std::uint64_t way, double speed) {
        if (way == 0) return 0.0;
        return speed > 0 ? static_cast<double>(way) / speed : 1e18;
    };
    return time(distance(last_sp, turn), out) + time(distance(sp, turn), in);
}

bool Movement::possible(std::uint64_t turn, std::uint64_t sp) const {
    return distance(last_sp, turn) + distance(sp, turn) <= leap ||
           time_of_way(turn, sp) <= possible_periods * period_ns;
}

}  // namespace

struct StackStitcher::State {
    State(std::uint64_t gap_ns_in, std::size_t memory_bytes) : gap_ns(gap_ns_in), limit(memory_bytes) {}

    Thread& thread_of(std::uint64_t thread, std::uint64_t space, std::uint64_t time_ns, bool& continuous);
    void apply_read(std::uint64_t thread_id, Thread& thread, std::uint64_t sp);
    static void note_unseen_way(Thread& thread, std::uint64_t turn, std::uint64_t sp, std::uint64_t gap);
    static void compare(Thread& thread, const std::vector<Frame>& frames, std::uint64_t gap);
    void remember(std::uint64_t thread_id, Thread& thread, const std::vector<Frame>& frames);
    static bool complete(Thread& thread, std::vector<Frame>& frames);
    [[nodiscard]] bool may_be_another(std::uint64_t thread_id, const Thread& thread, bool continuous,
                                      std::uint64_t sp) const;
    [[nodiscard]] bool proven(const Thread& thread, std::uint64_t sp) const;
    static bool agrees_ahead(const Thread& thread);
    Callers& callers_of(std::uint64_t thread_id, const Node& frame);
    void note_caller(std::uint64_t thread_id, const Node& frame, const Node& caller);
    [[nodiscard]] bool has_several_callers(std::uint64_t thread_id, const Node& frame) const;
    void make_room(std::uint64_t keep);

    std::uint64_t gap_ns;
    std::size_t limit;
    bool can_read = true;
    std::uint64_t now = 0, lost_at = 0;  // in calls of join()
    std::size_t nodes = 0;               // room_of() all threads
    std::unordered_map<std::uint64_t, Thread> threads;
    std::vector<Callers> callers;
    Counts counts;
};

Thread& StackStitcher::State::thread_of(std::uint64_t id, std::uint64_t space, std::uint64_t time_ns,
                                        bool& continuous) {
    Thread& thread = threads[id];
    continuous = thread.last_used > lost_at && time_ns <= thread.last_ns + gap_ns && thread.space == space;
    if (thread.space != space) {
        thread = {};
        thread.space = space;
    }
    thread.last_used = ++now;
    return thread;
}

Callers& StackStitcher::State::callers_of(std::uint64_t thread_id, const Node& frame) {
    if (callers.empty()) callers.resize(caller_places);
    const std::uint64_t key = key_of(thread_id, frame);
    Callers& place = callers[key % caller_places];
    if (place.frame != key) place = {key, 0, false};
    return place;
}

void StackStitcher::State::note_caller(std::uint64_t thread_id, const Node& frame, const Node& caller) {
    const std::uint64_t of = mix(mix(0, caller.sp), caller.pc);
    Callers& place = callers_of(thread_id, frame);
    place.several = place.several || (place.caller != 0 && place.caller != of);
    place.caller = of;
}

bool StackStitcher::State::has_several_callers(std::uint64_t thread_id, const Node& frame) const {
    if (callers.empty()) return false;
    const std::uint64_t key = key_of(thread_id, frame);
    const Callers& place = callers[key % caller_places];
    return place.frame == key && place.several;
}

// Applies a memory read made before this stack. It confirms the stored callers, or discards them from the first changed
// one inwards. Frames inside of `sp`, the current stack pointer, have ended, and their memory has been reused.
void StackStitcher::State::apply_read(std::uint64_t thread_id, Thread& thread, std::uint64_t sp) {
    std::vector<Node>& stack = thread.stack;
    const MemoryRead read = std::exchange(thread.reads_ahead[0], std::exchange(thread.reads_ahead[1], {}));
    std::size_t seen = 0;
    std::size_t changed = stack.size();
    bool other_caller = false;
    compare_places(stack, first_at(stack, sp), read.places, [&](std::size_t i, bool same) {
        ++seen;
        if (same && other_caller) callers_of(thread_id, stack[i]).several = true;
        other_caller = !same;
        if (!same) changed = std::min(changed, i);
    });
    if (seen == 0) return;
    ++counts.reads;
    if (changed == stack.size()) {
        ++thread.reads;
        thread.doubted = false;
        return;
    }
    ++counts.refuted;
    thread.reads = 0;
    thread.refuted_at = stack[changed].sp;
    stack.resize(changed);
}

// Whether the memory read made after this stack agrees with the frames that would complete it.
bool StackStitcher::State::agrees_ahead(const Thread& thread) {
    std::size_t seen = 0;
    bool all_same = true;
    compare_places(thread.stack, thread.outside, thread.reads_ahead[0].places, [&](std::size_t, bool same) {
        ++seen;
        all_same = all_same && same;
    });
    return seen > 0 && all_same;
}

// Records that the thread went out to `turn` and came back to `sp` without a sample. If that was not just now, at an
// ordinary speed, it was some time since the last whole stack, from the deepest stack pointer since then.
void StackStitcher::State::note_unseen_way(Thread& thread, std::uint64_t turn, std::uint64_t sp, std::uint64_t gap) {
    Movement& movement = thread.movement;
    const bool just_now = thread.whole || movement.time_of_way(turn, sp) <= ordinary_periods * static_cast<double>(gap);
    const std::uint64_t way = just_now ? distance(movement.last_sp, turn) + distance(sp, turn)
                                       : 2 * distance(std::min(thread.deepest, sp), turn);
    movement.leap = std::max(movement.leap, way);
    thread.returns = 0;
}

// Compares a whole stack with the stored one.
void StackStitcher::State::compare(Thread& thread, const std::vector<Frame>& frames, std::uint64_t gap) {
    const std::size_t same = same_from_root(thread.stack, frames);
    if (thread.outside > 0 && same >= thread.outside) {
        thread.came_back = true;
        if (++thread.returns >= forgiving_returns) thread.movement.leap = 0;
    }
    // Search for a stored frame that now has other callers.
    for (std::size_t i = same + 1; i < frames.size(); ++i) {
        const Node node = node_of(frames[frames.size() - 1 - i]);
        if (holds(thread.stack, node)) return note_unseen_way(thread, node.sp, frames.front().sp, gap);
    }
}

// Stores `frames` as the thread's stack. The unchanged outer part costs one comparison per frame.
void StackStitcher::State::remember(std::uint64_t thread_id, Thread& thread, const std::vector<Frame>& frames) {
    std::vector<Node>& stack = thread.stack;
    const std::size_t same = same_from_root(stack, frames);
    stack.resize(same);
    for (std::size_t i = same; i < frames.size(); ++i) {
        stack.push_back(node_of(frames[frames.size() - 1 - i]));
        if (i > 0) note_caller(thread_id, stack[i], stack[i - 1]);
    }
}

// Whether the thread may have reached the frames beyond the copy by another path. `sp` is its stack pointer now.
bool StackStitcher::State::may_be_another(std::uint64_t thread_id, const Thread& thread, bool continuous,
                                          std::uint64_t sp) const {
    for (std::size_t i = thread.outside; i > 0; --i)
        if (has_several_callers(thread_id, thread.stack[i]))
            return !continuous || thread.movement.possible(thread.stack[i].sp, sp);
    return false;
}

// Whether to trust the stored frames that the copy does not show: if samples followed the thread there and back, if
// memory agreed for a while (before this stack and after it), or if memory cannot be read.
bool StackStitcher::State::proven(const Thread& thread, std::uint64_t sp) const {
    if (!can_read || (thread.came_back && !thread.movement.possible(thread.stack.front().sp, sp))) return true;
    return thread.reads >= needed_reads && agrees_ahead(thread);
}

// Appends the stored frames outside of the outermost frame.
bool StackStitcher::State::complete(Thread& thread, std::vector<Frame>& frames) {
    const std::vector<Node>& stack = thread.stack;
    const Frame& outermost = frames.back();
    std::size_t at = first_at(stack, outermost.sp);
    while (at < stack.size() && stack[at].sp == outermost.sp && !(stack[at] == node_of(outermost))) ++at;
    const std::size_t wanted = std::min(wanted_matches, frames.size());
    for (std::size_t i = 0; i < wanted; ++i)
        if (at + i >= stack.size() || !(stack[at + i] == node_of(frames[frames.size() - 1 - i]))) return false;
    thread.outside = at;
    append(stack, at, frames);
    return true;
}

// Removes the threads that were not seen for longest.
void StackStitcher::State::make_room(std::uint64_t keep) {
    while (nodes * sizeof(Node) > limit && threads.size() > 1) {
        auto oldest = threads.end();
        for (auto it = threads.begin(); it != threads.end(); ++it)
            if (it->first != keep && (oldest == threads.end() || it->second.last_used < oldest->second.last_used))
                oldest = it;
        nodes -= room_of(oldest->second);
        threads.erase(oldest);
    }
}

StackStitcher::StackStitcher(std::uint64_t gap_ns, std::size_t memory_bytes)
    : state_(std::make_unique<State>(gap_ns, memory_bytes)) {}
StackStitcher::~StackStitcher() = default;

StopReason StackStitcher::join(std::uint64_t thread_id, std::uint64_t space, std::uint64_t time_ns,
                               std::size_t max_depth, std::vector<Frame>& frames, StopReason stop) {
    State& state = *state_;
    if (frames.empty() || !falls_inwards(frames)) {
        state.counts.truncated += stop == StopReason::truncated_copy ? 1 : 0;
        return stop;
    }
    bool continuous = false;
    const auto known = state.threads.find(thread_id);
    if (known != state.threads.end()) state.nodes -= room_of(known->second);
    Thread& thread = state.thread_of(thread_id, space, time_ns, continuous);
    thread.seen_since_read = true;
    while (!thread.reads_ahead[0].places.empty() && time_ns >= thread.reads_ahead[0].time_ns)
        state.apply_read(thread_id, thread, frames.front().sp);
    const std::uint64_t sp = frames.front().sp;
    const std::uint64_t gap = distance(thread.last_ns, time_ns);
    if (continuous) thread.movement.note(sp, static_cast<double>(gap));
    // Deep before and after, and other callers in between: the thread went out without a sample.
    if (continuous && thread.refuted_at != 0 && stop == StopReason::truncated_copy && !thread.whole)
        State::note_unseen_way(thread, thread.refuted_at, sp, gap);
    thread.refuted_at = 0;
    thread.last_ns = time_ns;

    bool joined = false;
    const std::size_t own_frames = frames.size();
    if (stop == StopReason::root) {
        if (continuous) State::compare(thread, frames, gap);
        state.remember(thread_id, thread, frames);
    } else if (stop != StopReason::truncated_copy) {
        // The stack pointer still discards the stored frames below it.
        while (!thread.stack.empty() && thread.stack.back().sp < sp) thread.stack.pop_back();
    } else if (!State::complete(thread, frames)) {
        thread.stack.clear();
    } else {
        // Uncertain frames are stored too: the next whole stack or memory read shows whether they are right.
        thread.doubted = thread.doubted || state.may_be_another(thread_id, thread, continuous, sp);
        state.counts.ambiguous += thread.doubted ? 1 : 0;
        joined = !thread.doubted && state.proven(thread, sp);
        state.remember(thread_id, thread, frames);
    }
    if (stop == StopReason::root || thread.stack.empty()) thread.doubted = false;
    if (stop != StopReason::truncated_copy || thread.stack.empty()) thread.outside = 0;
    thread.whole = stop == StopReason::root;
    thread.cut = stop == StopReason::truncated_copy;
    thread.deepest = thread.whole || thread.deepest == 0 ? sp : std::min(thread.deepest, sp);
    thread.movement.last_sp = sp;
    state.nodes += room_of(thread);
    state.make_room(thread_id);
    if (stop != StopReason::truncated_copy) return stop;
    ++(joined ? state.counts.joined : state.counts.truncated);
    if (!joined) frames.resize(own_frames);
    if (!joined) return stop;
    if (frames.size() <= max_depth) return StopReason::root;
    frames.resize(max_depth);
    return StopReason::max_depth;
}

std::optional<Frame> StackStitcher::last_called(std::uint64_t thread_id, std::uint64_t space, std::uint64_t time_ns,
                                                std::uint64_t pc_at) const {
    const auto found = state_->threads.find(thread_id);
    if (found == state_->threads.end() || pc_at == 0) return std::nullopt;
    const Thread& thread = found->second;
    if (thread.space != space || thread.last_used <= state_->lost_at || time_ns > thread.last_ns + state_->gap_ns)
        return std::nullopt;
    const auto caller =
        std::find_if(thread.stack.begin(), thread.stack.end(), [&](const Node& node) { return node.pc_at == pc_at; });
    if (caller == thread.stack.end() || caller + 1 == thread.stack.end()) return std::nullopt;
    Frame frame;
    frame.pc = (caller + 1)->pc;
    frame.sp = (caller + 1)->sp;
    frame.return_address = (caller + 1)->return_address;
    return frame;
}

StopReason StackStitcher::with_callers(std::uint64_t thread_id, std::uint64_t time_ns, std::uint64_t pc_at,
                                       std::size_t max_depth, std::vector<Frame>& frames) {
    Thread& thread = state_->threads.at(thread_id);
    thread.last_ns = time_ns;
    thread.last_used = ++state_->now;
    const auto caller =
        std::find_if(thread.stack.begin(), thread.stack.end(), [&](const Node& node) { return node.pc_at == pc_at; });
    append(thread.stack, static_cast<std::size_t>(caller - thread.stack.begin()) + 1, frames);
    ++state_->counts.joined;
    if (frames.size() <= max_depth) return StopReason::root;
    frames.resize(max_depth);
    return StopReason::max_depth;
}

std::vector<std::uint64_t> StackStitcher::due_for_read(std::size_t limit) const {
    std::vector<std::uint64_t> ids;
    for (const auto& [id, thread] : state_->threads)
        if (thread.outside > 0 && thread.seen_since_read) ids.push_back(id);
    if (ids.size() <= limit) return ids;
    const auto last_read_of = [&](std::uint64_t id) { return state_->threads.at(id).last_read_ns; };
    std::sort(ids.begin(), ids.end(), [&](auto a, auto b) { return last_read_of(a) < last_read_of(b); });
    ids.resize(limit);
    return ids;
}

void StackStitcher::places_of(std::uint64_t thread_id, std::size_t limit, std::vector<Place>& places) const {
    places.clear();
    const auto found = state_->threads.find(thread_id);
    if (found == state_->threads.end()) return;
    const Thread& thread = found->second;
    for (std::size_t i = 0; i < thread.outside && i < thread.stack.size() && places.size() < limit; ++i)
        if (thread.stack[i].pc_at != 0) places.push_back({thread.stack[i].pc_at, thread.stack[i].pc});
}

void StackStitcher::memory_read(std::uint64_t thread_id, std::uint64_t time_ns, std::vector<Place> places) {
    const auto found = state_->threads.find(thread_id);
    if (found == state_->threads.end() || places.empty()) return;
    Thread& thread = found->second;
    state_->nodes -= room_of(thread);
    thread.last_read_ns = time_ns;
    thread.seen_since_read = false;
    ++thread.total_reads;
    MemoryRead& place = thread.reads_ahead[0].places.empty() ? thread.reads_ahead[0] : thread.reads_ahead[1];
    place = {time_ns, std::move(places)};
    state_->nodes += room_of(thread);
    state_->make_room(thread_id);
}

bool StackStitcher::needs_poll() const {
    return state_->can_read && std::any_of(state_->threads.begin(), state_->threads.end(), [&](const auto& entry) {
               const Thread& thread = entry.second;
               if (!thread.cut || thread.total_reads >= max_early_reads || thread.movement.leap != 0) return false;
               return thread.stack.empty() ? thread.lessons < most_lessons
                                           : !thread.came_back && thread.reads < needed_reads;
           });
}

bool StackStitcher::has_nothing(std::uint64_t thread_id) const {
    const auto found = state_->threads.find(thread_id);
    if (found == state_->threads.end()) return false;
    const Thread& thread = found->second;
    return thread.stack.empty() && thread.movement.leap == 0 && thread.lessons < most_lessons;
}

void StackStitcher::record(std::uint64_t thread_id, const std::vector<Frame>& frames, std::size_t own_frames) {
    const auto found = state_->threads.find(thread_id);
    if (found == state_->threads.end()) return;
    Thread& thread = found->second;
    ++thread.lessons;
    if (frames.size() <= own_frames || own_frames < wanted_matches || !falls_inwards(frames)) return;
    state_->nodes -= room_of(thread);
    thread.outside = frames.size() - own_frames;
    state_->remember(thread_id, thread, frames);
    state_->nodes += room_of(thread);
    state_->make_room(thread_id);
}

void StackStitcher::cannot_read() { state_->can_read = false; }

void StackStitcher::samples_lost() { state_->lost_at = state_->now; }

void StackStitcher::forget(std::uint64_t thread) {
    const auto found = state_->threads.find(thread);
    if (found == state_->threads.end()) return;
    state_->nodes -= room_of(found->second);
    state_->threads.erase(found);
}

const StackStitcher::Counts& StackStitcher::counts() const { return state_->counts; }

std::size_t StackStitcher::memory_bytes() const {
    return state_->nodes * sizeof(Node) + state_->threads.size() * sizeof(Thread) +
           state_->callers.capacity() * sizeof(Callers);
}

}  // namespace flamewire::unwind
