#include "agent/pipeline/stack_verifier.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/pipeline/process_code.h"
#include "agent/process/proc_text.h"
#include "agent/process/process_memory.h"
#include "base/clock.h"
#include "base/file.h"

namespace flamewire::agent {

using unwind::StopReason;

namespace {

constexpr std::size_t most_threads = 4096;
// Per round. A memory read takes about 20 us, a walk up to a millisecond.
constexpr std::size_t max_reads = 64, most_walks = 4;
// No stack is remembered at first, and stacks should not stay truncated for long.
constexpr unsigned first_rounds = 10;
constexpr std::uint64_t max_read_ns = 300'000;
constexpr unsigned most_attempts = 4;
constexpr std::uint64_t most_stack_bytes = std::uint64_t{2} << 20;

}  // namespace

void StackVerifier::note(ThreadHandle id, ProcessHandle process, std::uint32_t pid, unwind::Arch arch, bool known,
                         const std::vector<unwind::Frame>& frames) {
    if (threads_.size() >= most_threads && !threads_.contains(id)) {
        threads_.clear();
        unknown_.clear();
    }
    Thread& thread = threads_[id];
    thread.process = process;
    thread.pid = pid;
    thread.arch = arch;
    if (known || !stitcher_.has_nothing(id)) return;
    if (thread.frames.empty()) unknown_.push_back(id);
    thread.frames = frames;
    thread.outermost = unwinder_.cut().registers;
}

bool StackVerifier::needs_poll() const { return rounds_ < first_rounds || stitcher_.needs_poll(); }

void StackVerifier::verify() {
    rounds_ += rounds_ < first_rounds ? 1 : 0;
    for (const std::uint64_t id : stitcher_.due_for_read(max_reads)) {
        const auto thread = threads_.find(static_cast<ThreadHandle>(id));
        if (thread != threads_.end() && !read_stack(id, thread->second)) return stitcher_.cannot_read();
    }
    for (std::size_t walks = 0; walks < most_walks && !unknown_.empty(); ++walks) {
        const ThreadHandle id = unknown_.back();
        unknown_.pop_back();
        walk_on(id, threads_[id]);
    }
}

// False: reading the process is not permitted or not supported.
bool StackVerifier::read_stack(std::uint64_t id, const Thread& thread) {
    std::array<std::uint64_t, most_words_at_once> addresses;
    std::array<std::uint64_t, most_words_at_once> words;
    stitcher_.places_of(id, most_words_at_once, places_);
    for (std::size_t i = 0; i < places_.size(); ++i) addresses[i] = places_[i].address;
    std::uint64_t before_ns = 0;
    Result<std::size_t> read = std::size_t{0};
    // If the read was interrupted, the time at which the words were read is unknown. Retry: directly after an
    // interruption there is enough time.
    for (unsigned attempt = 0;; ++attempt) {
        if (attempt == most_attempts) return true;
        before_ns = monotonic_ns();
        read = read_words(thread.pid, unwind::register_names(thread.arch).word_size,
                          std::span(addresses).first(places_.size()), words);
        if (monotonic_ns() - before_ns <= max_read_ns) break;
    }
    if (!read) return read.error().code != ErrorCode::permission && read.error().code != ErrorCode::unsupported;
    places_.resize(*read);
    for (std::size_t i = 0; i < *read; ++i) places_[i].value = unwinder_.address_of(thread.arch, words[i]);
    stitcher_.memory_read(id, before_ns, places_);
    return true;
}

// Continues the walk at the outermost frame of the copy, over the current memory.
void StackVerifier::walk_on(std::uint64_t id, Thread& thread) {
    std::vector<unwind::Frame> frames = std::exchange(thread.frames, {});
    const std::size_t own_frames = frames.size();
    if (frames.empty() || !stitcher_.has_nothing(id)) return;
    const unwind::RegisterNames& names = unwind::register_names(thread.arch);
    unwind::Registers registers = thread.outermost;
    // Use an address within the call instruction, to find its unwind row.
    registers.set(names.pc, frames.back().code_address().lookup());
    const std::uint64_t start = registers.sp();
    const std::uint64_t end = end_of_area(proc_root_, thread.pid, start);
    if (registers.has(names.sp) && end > start) {
        const auto size = static_cast<std::size_t>(std::min(end - start, most_stack_bytes));
        const auto memory = open_read(proc_path(proc_root_, thread.pid, "mem"));
        const auto text = memory ? read_range(memory->get(), start, size) : Result<std::string>(std::string());
        if (text && !text->empty()) {
            ProcessCode map(processes_, thread.process);
            const unwind::StackCopy stack{start, as_bytes_view(*text), false};
            const StopReason stop = unwinder_.walk(registers, stack, map, unwind::highest_max_depth, scratch_);
            if (stop == StopReason::root) frames.insert(frames.end(), scratch_.begin() + 1, scratch_.end());
        }
    }
    stitcher_.record(id, frames, own_frames);
}

}  // namespace flamewire::agent
