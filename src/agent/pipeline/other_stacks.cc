#include "agent/pipeline/other_stacks.h"

#include <algorithm>
#include <span>
#include <utility>

#include "agent/process/proc_text.h"
#include "agent/process/process_memory.h"
#include "base/file.h"
#include "base/id_table.h"

namespace flamewire::agent {
namespace {

// The tables that describe such switches are those of Go programs for x86-64. Elsewhere the linker omits this code.
#if defined(__x86_64__)
constexpr bool stacks_switch_here = true;
#else
constexpr bool stacks_switch_here = false;
#endif

constexpr std::size_t most_places = 1024;
// Each takes about 20 us.
constexpr unsigned reads_a_second = 500;
constexpr std::uint64_t second_ns = 1'000'000'000;
// How long callers are trusted without another read.
constexpr std::uint64_t trusted_ns = 10'000'000;
constexpr std::size_t most_stack_bytes = std::size_t{16} << 10;
// Other callers were seen in at most one of this many readings: the thread had returned, and the old address remained.
constexpr std::uint32_t readings_for_each_other = 32;
// After this many readings, both counts are halved, so that new callers become visible.
constexpr std::uint32_t readings_remembered = 64;

}  // namespace

bool OtherStacks::Callers::certain() const { return seen != 0 && others * readings_for_each_other <= seen; }

bool OtherStacks::append_callers(std::uint64_t space, std::uint32_t pid, unwind::Arch arch, unwind::CodeMap& map,
                                 std::uint64_t now_ns, std::size_t max_depth, std::vector<unwind::Frame>& frames) {
    if constexpr (!stacks_switch_here) return false;
    unwind::Frame& outermost = frames.back();
    // The frame inside the outermost one identifies the call, unless it is the innermost one, whose pc moves.
    const unwind::Frame& inner = frames.size() > 2 ? frames[frames.size() - 2] : outermost;
    if (inner.pc_at == 0 || outermost.fp == 0) return false;
    if (known_.size() >= most_places) known_.clear();
    Callers& callers = known_[mix_in(mix_in(mix_in(0, space), outermost.fp), inner.pc)];
    if (now_ns - window_ns_ >= second_ns) {
        window_ns_ = now_ns;
        reads_ = 0;
    }
    const bool due = !callers.certain() || now_ns - callers.read_ns >= trusted_ns;
    if (due && reads_ < reads_a_second) {
        ++reads_;
        callers.read_ns = now_ns;
        read(pid, arch, map, inner, outermost, callers);
    }
    if (!callers.certain() || frames.size() + callers.frames.size() - 1 > max_depth) return false;
    outermost.caller_missing = callers.frames.front().caller_missing;
    frames.insert(frames.end(), callers.frames.begin() + 1, callers.frames.end());
    return true;
}

// Leaves `callers` as they are if the thread is elsewhere now.
void OtherStacks::read(std::uint32_t pid, unwind::Arch arch, unwind::CodeMap& map, const unwind::Frame& inner,
                       const unwind::Frame& outermost, Callers& callers) {
    const unwind::RegisterNames& names = unwind::register_names(arch);
    // Whether the thread is in that call, as far as its memory shows. The agent may be interrupted between two reads.
    const auto in_call = [&] {
        std::uint64_t word = 0;
        const auto read = read_words(pid, names.word_size, std::span(&inner.pc_at, 1), std::span(&word, 1));
        return read && word == inner.pc;
    };
    const auto memory = open_read(proc_path(proc_root_, pid, "mem"));
    if (!memory || !in_call()) return;
    const auto text = read_range(memory->get(), outermost.fp, most_stack_bytes);
    if (!text || !in_call()) return;
    unwind::Registers registers(arch);
    // Use an address within the call instruction, to find its unwind row.
    registers.set(names.pc, outermost.code_address().lookup());
    registers.set(names.frame_pointer, outermost.fp);
    const unwind::StackCopy stack{outermost.fp, as_bytes_view(*text), false};
    if (unwinder_.walk(registers, stack, map, unwind::highest_max_depth, scratch_) != unwind::StopReason::root) return;
    if (std::ranges::equal(callers.frames, scratch_, {}, &unwind::Frame::pc, &unwind::Frame::pc)) {
        if (++callers.seen < readings_remembered) return;
        callers.seen /= 2;
        callers.others /= 2;
    } else if (++callers.others > callers.seen) {
        callers.frames = scratch_;
        std::swap(callers.seen, callers.others);
    }
}

}  // namespace flamewire::agent
