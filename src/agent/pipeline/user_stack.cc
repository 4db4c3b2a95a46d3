#include "agent/pipeline/user_stack.h"

#include <algorithm>
#include <bit>

#include "base/system.h"
#include "unwind/frame/linux_registers.h"

namespace flamewire::agent {

using unwind::StackNeed;
using unwind::StopReason;

struct UserStacks::Context {
    const SampleRecord& sample;
    ProcessHandle process;
    std::optional<unwind::Registers> registers;
    unwind::Arch arch;
    ProcessCode map;
    std::span<const std::uint64_t> chain = {};
    ThreadHandle thread = 0;
};

namespace {

unwind::UnwinderOptions unwinder_options(const UserStackOptions& options) {
    unwind::UnwinderOptions result;
    result.memory_bytes = options.memory_bytes;
    result.aarch64_address_bits = options.address_bits;
    // libunwind supports only the architecture it runs on, which may differ in a replay.
    result.use_libunwind = !System::current().deterministic();
    result.big_endian = std::endian::native == std::endian::big;
    return result;
}

unwind::Frame chain_frame(std::uint64_t pc, bool return_address) {
    unwind::Frame frame;
    frame.pc = pc;
    frame.found_by = return_address ? unwind::FoundBy::chain : unwind::FoundBy::registers;
    frame.return_address = return_address;
    return frame;
}

}  // namespace

UserStacks::UserStacks(ProcessTable& processes, UserStackOptions options)
    : processes_(processes),
      options_(std::move(options)),
      files_(processes),
      unwinder_(files_, unwinder_options(options_)),
      stitcher_(options_.gap_ns),
      deep_(options_.proc_root, processes, unwinder_, stitcher_),
      root_frames_(options_.proc_root, unwinder_),
      other_stacks_(options_.proc_root, unwinder_) {}

bool UserStacks::by_chain_alone(const SampleRecord& sample) {
    return sample.mode == wire::StackMode::fp || (sample.mode == wire::StackMode::lbr && sample.branches.empty());
}

UserStacks::Context UserStacks::context_of(const SampleRecord& sample, ProcessHandle process) {
    Context in{sample, process,
               unwind::registers_of_sample(options_.machine, static_cast<unwind::RegisterAbi>(sample.register_abi),
                                           sample.register_mask, sample.registers),
               options_.machine, ProcessCode(processes_, process)};
    if (in.registers) in.arch = in.registers->arch();
    return in;
}

void UserStacks::find(const SampleRecord& sample, std::span<const std::uint64_t> chain, ThreadHandle thread,
                      ProcessHandle process, UserStack& out) {
    if constexpr (!unwind::walks_here) return;
    out.frames.clear();
    out.joined = out.provisional = false;
    out.stop = out.walked = StopReason::chain_end;
    out.check = {};
    unwinder_.begin_stack();
    Context in = context_of(sample, process);
    in.chain = chain;
    in.thread = thread;
    if (sample.mode == wire::StackMode::lbr && !sample.branches.empty())
        by_branches(in, out);
    else if (sample.mode == wire::StackMode::dwarf && in.registers)
        by_walk(in, out);
    else if (sample.mode == wire::StackMode::hybrid && in.registers)
        by_short_walk(in, out);
    else
        by_chain(in, out);
    out.provisional = out.provisional || unwinder_.work_spent();
    if (unwinder_.stack_spent() && costly_pid_ == 0) costly_pid_ = sample.pid;
}

std::optional<StackNeed> UserStacks::need_of(const SampleRecord& sample, ProcessHandle process,
                                             const UserStack& stack) {
    if constexpr (!unwind::walks_here) return std::nullopt;
    if (stack.frames.empty() || sample.mode == wire::StackMode::lbr || !options_.check_chains) return std::nullopt;
    if (unwinder_.work_spent()) return std::nullopt;
    Context in = context_of(sample, process);
    // A trampoline hides a caller from the frame-pointer chain; a copy of the stack contains it.
    if (std::ranges::any_of(stack.frames, [&](const unwind::Frame& frame) {
            return frame.caller_missing && unwinder_.facts(in.arch, frame.code_address(), in.map).skips_caller_of_jit;
        }))
        return StackNeed::long_copy;
    // No frame after the innermost one is certain. A short copy may be enough, and its stacks will show it.
    if (by_chain_alone(sample) && stack.stop != StopReason::root && stack.check.right <= 1)
        return StackNeed::short_copy;
    if (by_chain_alone(sample))
        return unwind::need_of_chain(unwinder_, in.arch, stack.frames.front().pc, stack.check.quality,
                                     stack.stop == StopReason::root, in.map);
    if (stack.walked == StopReason::root && !stack.joined) {
        root_frames_.record(processes_.generation(process), stack.frames);
        return unwind::need_of_walk(unwinder_, in.arch, stack.frames, in.map, options_.hybrid_bytes);
    }
    if (sample.mode != wire::StackMode::hybrid || stack.stop != StopReason::root) return StackNeed::long_copy;
    return stack.frames.front().frame_pointer_safe ? StackNeed::chain : StackNeed::short_copy;
}

void UserStacks::verify_stacks() {
    if constexpr (!unwind::walks_here) return;
    unwinder_.begin_round();
    deep_.verify();
}

// Ends a chain that is right so far: at the root, with the tail that leads there, or as incomplete.
void UserStacks::end_chain(Context& in, bool at_root, UserStack& out) {
    out.stop = StopReason::root;
    if (at_root || out.frames.empty()) return;
    const std::uint64_t stack_pointer = in.registers ? in.registers->sp() : 0;
    const ThreadRootFrames::Answer answer =
        root_frames_.find(processes_.generation(in.process), in.sample.pid, in.arch, out.frames.back().pc,
                          stack_pointer, in.map, in.sample.time_ns, out.frames);
    if (answer == ThreadRootFrames::Answer::found) return;
    out.stop = StopReason::no_info;
    out.provisional = answer == ThreadRootFrames::Answer::later;
}

void UserStacks::by_chain(Context& in, UserStack& out) {
    const bool as_it_is = !options_.check_chains || in.chain.empty();
    if (!as_it_is) out.check = unwind::check_chain(unwinder_, in.arch, in.chain, in.map);
    const std::size_t count = as_it_is ? in.chain.size() : std::max<std::size_t>(out.check.right, 1);
    for (std::size_t i = 0; i < count; ++i) {
        if (as_it_is && i > 0 && !in.map.find(in.chain[i] - 1)) {  // a return address must be in code
            out.stop = StopReason::no_map;
            break;
        }
        out.frames.push_back(chain_frame(in.chain[i], i > 0));
    }
    if (as_it_is) return;
    for (std::size_t i = 1; i + 1 < count; ++i)
        out.frames[i].caller_missing = unwind::skips_caller(unwinder_, in.arch, in.chain, i, in.map);
    // A chain skips a caller between a function's first instruction and its body, and in a leaf function that never
    // sets the frame pointer.
    if (count > 1) out.frames[0].caller_missing = out.check.quality == unwind::ChainQuality::leaf_unsafe;
    if (count > 1 || out.check.at_root)
        end_chain(in, out.check.at_root, out);
    else
        out.stop = StopReason::no_info;  // not a single step is certain
}

// Walks the copied stack. A copy that ended at an absent page is handled like one that was too small for the stack.
StopReason UserStacks::walk(Context& in, UserStack& out) {
    const SampleRecord& sample = in.sample;
    const unwind::StackCopy stack{in.registers->sp(), sample.stack, sample.stack_cut || sample.stack_missing != 0};
    const StopReason stop = unwinder_.walk(*in.registers, stack, in.map, options_.max_depth, out.frames);
    if (stop != StopReason::truncated_copy || sample.stack_cut) return stop;
    const std::uint64_t end = stack.address + stack.bytes.size();
    return pages_.make_present(sample.pid, end, sample.stack_missing, sample.time_ns) ? stop : StopReason::bad_read;
}

void UserStacks::by_walk(Context& in, UserStack& out) {
    out.walked = walk(in, out);
    const std::size_t own_frames = out.frames.size();
    if (out.walked != StopReason::root) {
        complete(in, out);
        if (out.stop == StopReason::root) return;
        out.frames.resize(own_frames);
    }
    out.stop = stitcher_.join(in.thread, processes_.generation(in.process), in.sample.time_ns, options_.max_depth,
                              out.frames, out.walked);
    if (out.frames.back().found_by == unwind::FoundBy::signal && own_frames == out.frames.size()) over_signal(in, out);
    out.joined = out.frames.size() > own_frames;
    if (out.walked == StopReason::truncated_copy)
        deep_.note(in.thread, in.process, in.sample.pid, in.arch, out.joined, out.frames);
}

// For a signal handler on an alternate stack: the interrupted function's callers are those of the thread's last sample.
void UserStacks::over_signal(Context& in, UserStack& out) {
    const std::uint64_t pc_at = unwinder_.cut().pc_at;
    const std::uint64_t space = processes_.generation(in.process);
    const unwind::Frame& interrupted = out.frames.back();
    if (out.walked != StopReason::truncated_copy && out.walked != StopReason::bad_read) return;
    const auto last = stitcher_.last_called(in.thread, space, in.sample.time_ns, pc_at);
    if (!last) return;
    // An unwind row never extends from one function into the next.
    const auto now = unwinder_.facts(in.arch, {interrupted.pc, false}, in.map);
    const auto then = unwinder_.facts(in.arch, last->code_address(), in.map);
    if (now.row_start == 0 || now.row_start != then.row_start) return;
    out.stop = stitcher_.with_callers(in.thread, in.sample.time_ns, pc_at, options_.max_depth, out.frames);
}

void UserStacks::by_short_walk(Context& in, UserStack& out) {
    out.stop = out.walked = walk(in, out);
    if (out.walked != StopReason::root) complete(in, out);
}

// Continues a walk with the kernel's frame-pointer chain, where both meet, or on the stack from which it switched.
void UserStacks::complete(Context& in, UserStack& out) {
    const std::size_t own_frames = out.frames.size();
    const unwind::StackCopy stack{in.registers->sp(), in.sample.stack, in.sample.stack_cut};
    bool at_root = false;
    if (unwind::splice(unwinder_, in.arch, in.chain, stack, in.map, options_.max_depth, out.frames, at_root))
        end_chain(in, at_root, out);
    if (out.stop == StopReason::root || out.walked != StopReason::other_stack) return;
    std::vector<unwind::Frame> own(out.frames.begin(), out.frames.begin() + static_cast<std::ptrdiff_t>(own_frames));
    if (!other_stacks_.append_callers(processes_.generation(in.process), in.sample.pid, in.arch, in.map,
                                      in.sample.time_ns, options_.max_depth, own))
        return;
    out.frames = std::move(own);
    out.stop = StopReason::root;
}

void UserStacks::by_branches(Context& in, UserStack& out) {
    branches_.clear();
    for (const perf::BranchEntry& entry : in.sample.branches) branches_.push_back({entry.from, entry.to});
    const std::uint64_t pc = !in.chain.empty() ? in.chain.front() : in.sample.ip;
    bool cut = false;
    for (const CodeAddress& address : unwind::frames_of_branches(pc, branches_, in.chain, 0, cut))
        out.frames.push_back(chain_frame(address.value, address.return_address));
    out.stop = cut ? StopReason::max_depth : StopReason::chain_end;
}

}  // namespace flamewire::agent
