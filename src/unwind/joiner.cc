#include "unwind/joiner.h"

#include <algorithm>
#include <unordered_map>

namespace flamewire::unwind {
namespace {

// Frames of a truncated stack that must be remembered, beginning with the outermost one.
constexpr std::size_t wanted_matches = 2;
// Callers are remembered in a table of this many places, one frame each; a newer frame takes an older one's place.
constexpr std::size_t caller_places = 8192;

struct Node {
    std::uint64_t sp = 0, pc = 0;
    bool return_address = false;

    bool operator==(const Node&) const = default;
};

struct Thread {
    std::uint64_t space = 0;
    std::uint64_t last_used = 0;  // in calls of join()
    std::uint64_t last_ns = 0;
    std::vector<Node> stack;  // outermost first, stack pointers falling; empty: nothing is known
};

// Which caller a frame had; `several` once it had two.
struct Callers {
    std::uint64_t frame = 0, caller = 0;
    bool several = false;
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio, odd
    return hash ^ (hash >> 32);
}

Node node_of(const Frame& frame) { return {frame.sp, frame.pc, frame.return_address}; }

// A stack that hops between memory areas (a signal's alternate stack) has no order to search by.
bool falls_inwards(const std::vector<Frame>& frames) {
    for (std::size_t i = 1; i < frames.size(); ++i)
        if (frames[i].sp <= frames[i - 1].sp && !(i == 1 && frames[1].sp == frames[0].sp)) return false;
    return !frames.empty() && frames.front().sp != 0;
}

}  // namespace

struct Joiner::State {
    State(std::uint64_t gap_ns_in, std::size_t memory_bytes) : gap_ns(gap_ns_in), limit(memory_bytes) {}

    Thread& thread_of(std::uint64_t thread, std::uint64_t space, std::uint64_t time_ns, bool& continuous);
    void remember(std::uint64_t thread_id, Thread& thread, const std::vector<Frame>& frames);
    bool complete(std::uint64_t thread_id, const Thread& thread, bool continuous, std::vector<Frame>& frames);
    void note_caller(std::uint64_t thread_id, const Node& frame, const Node& caller);
    [[nodiscard]] bool has_several_callers(std::uint64_t thread_id, const Node& frame) const;
    void make_room(std::uint64_t keep);

    std::uint64_t gap_ns;
    std::size_t limit;
    std::uint64_t now = 0, lost_at = 0;  // in calls of join()
    std::size_t nodes = 0;               // room for nodes in all threads
    std::unordered_map<std::uint64_t, Thread> threads;
    std::vector<Callers> callers;
    Counts counts;
};

Thread& Joiner::State::thread_of(std::uint64_t id, std::uint64_t space, std::uint64_t time_ns, bool& continuous) {
    Thread& thread = threads[id];
    continuous = thread.last_used > lost_at && time_ns <= thread.last_ns + gap_ns;
    thread.last_used = ++now;
    thread.last_ns = time_ns;
    if (thread.space != space) thread.stack.clear();
    thread.space = space;
    return thread;
}

void Joiner::State::note_caller(std::uint64_t thread_id, const Node& frame, const Node& caller) {
    if (callers.empty()) callers.resize(caller_places);
    const std::uint64_t key = mix(mix(mix(0, thread_id), frame.sp), frame.pc);
    const std::uint64_t of = mix(mix(0, caller.sp), caller.pc);
    Callers& place = callers[key % caller_places];
    if (place.frame != key)
        place = {key, of, false};
    else if (place.caller != of)
        place = {key, of, true};
}

bool Joiner::State::has_several_callers(std::uint64_t thread_id, const Node& frame) const {
    const std::uint64_t key = mix(mix(mix(0, thread_id), frame.sp), frame.pc);
    if (callers.empty()) return false;
    const Callers& place = callers[key % caller_places];
    return place.frame == key && place.several;
}

// The thread's stack is `frames` now. What did not change, the outer part, costs a comparison each.
void Joiner::State::remember(std::uint64_t thread_id, Thread& thread, const std::vector<Frame>& frames) {
    std::vector<Node>& stack = thread.stack;
    std::size_t same = 0;
    while (same < stack.size() && same < frames.size() && stack[same] == node_of(frames[frames.size() - 1 - same]))
        ++same;
    nodes -= stack.capacity();
    stack.resize(same);
    for (std::size_t i = same; i < frames.size(); ++i) {
        stack.push_back(node_of(frames[frames.size() - 1 - i]));
        if (i > 0) note_caller(thread_id, stack[i], stack[i - 1]);
    }
    nodes += stack.capacity();
    make_room(thread_id);
}

// Appends what is remembered outside of the outermost frame.
bool Joiner::State::complete(std::uint64_t thread_id, const Thread& thread, bool continuous,
                             std::vector<Frame>& frames) {
    const std::vector<Node>& stack = thread.stack;
    const Frame& outermost = frames.back();
    const auto found = std::lower_bound(stack.begin(), stack.end(), outermost.sp,
                                        [](const Node& node, std::uint64_t sp) { return node.sp > sp; });
    std::size_t at = static_cast<std::size_t>(found - stack.begin());
    while (at < stack.size() && stack[at].sp == outermost.sp && !(stack[at] == node_of(outermost))) ++at;
    const std::size_t wanted = std::min(wanted_matches, frames.size());
    for (std::size_t i = 0; i < wanted; ++i)
        if (at + i >= stack.size() || !(stack[at + i] == node_of(frames[frames.size() - 1 - i]))) return false;
    if (!continuous)
        for (std::size_t i = at; i > 0; --i)
            if (has_several_callers(thread_id, stack[i])) {
                ++counts.ambiguous;
                return false;
            }
    for (std::size_t i = at; i-- > 0;) {
        Frame frame;
        frame.pc = stack[i].pc;
        frame.sp = stack[i].sp;
        frame.return_address = stack[i].return_address;
        frame.found_by = FoundBy::joined;
        frames.push_back(frame);
    }
    return true;
}

// Threads that were not seen for longest go first.
void Joiner::State::make_room(std::uint64_t keep) {
    while (nodes * sizeof(Node) > limit && threads.size() > 1) {
        auto oldest = threads.end();
        for (auto it = threads.begin(); it != threads.end(); ++it)
            if (it->first != keep && (oldest == threads.end() || it->second.last_used < oldest->second.last_used))
                oldest = it;
        nodes -= oldest->second.stack.capacity();
        threads.erase(oldest);
    }
}

Joiner::Joiner(std::uint64_t gap_ns, std::size_t memory_bytes)
    : state_(std::make_unique<State>(gap_ns, memory_bytes)) {}
Joiner::~Joiner() = default;

StopReason Joiner::join(std::uint64_t thread_id, std::uint64_t space, std::uint64_t time_ns, std::size_t max_depth,
                        std::vector<Frame>& frames, StopReason stop) {
    State& state = *state_;
    if (frames.empty() || !falls_inwards(frames)) {
        state.counts.truncated += stop == StopReason::truncated_copy ? 1 : 0;
        return stop;
    }
    bool continuous = false;
    Thread& thread = state.thread_of(thread_id, space, time_ns, continuous);
    if (stop == StopReason::root) {
        state.remember(thread_id, thread, frames);
        return stop;
    }
    if (stop != StopReason::truncated_copy) {
        // Its stack pointer still ends what lay below.
        while (!thread.stack.empty() && thread.stack.back().sp < frames.front().sp) thread.stack.pop_back();
        return stop;
    }
    if (thread.stack.empty() || !state.complete(thread_id, thread, continuous, frames)) {
        thread.stack.clear();
        ++state.counts.truncated;
        return stop;
    }
    ++state.counts.joined;
    state.remember(thread_id, thread, frames);
    if (frames.size() <= max_depth) return StopReason::root;
    frames.resize(max_depth);
    return StopReason::max_depth;
}

void Joiner::samples_lost() { state_->lost_at = state_->now; }

void Joiner::forget(std::uint64_t thread) {
    const auto found = state_->threads.find(thread);
    if (found == state_->threads.end()) return;
    state_->nodes -= found->second.stack.capacity();
    state_->threads.erase(found);
}

const Joiner::Counts& Joiner::counts() const { return state_->counts; }

std::size_t Joiner::memory_bytes() const {
    return state_->nodes * sizeof(Node) + state_->threads.size() * sizeof(Thread) +
           state_->callers.capacity() * sizeof(Callers);
}

}  // namespace flamewire::unwind
