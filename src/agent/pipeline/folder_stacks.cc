// Converts a call chain, or a walk over copied stack bytes, to a stack of locations.
#include <algorithm>

#include "agent/pipeline/folder_state.h"

namespace flamewire::agent {
namespace {

// Within one batch, the tables may exceed their limit. Above this multiple of it, all new stacks become one.
constexpr std::size_t hard_bound_factor = 8;

bool ended_without_root(unwind::StopReason stop) {
    using unwind::StopReason;
    return stop == StopReason::no_map || stop == StopReason::no_info || stop == StopReason::bad_read ||
           stop == StopReason::not_advancing || stop == StopReason::other_stack || stop == StopReason::too_much_work;
}

}  // namespace

// Resolves `frames` into `locations`. False if /proc was read on the way and earlier results may be outdated. Sets
// stack_flag::unknown_process and unnamed_jit.
bool Folder::State::locate_frames(ProcessHandle process, std::uint8_t& stack_flags) {
    const std::uint64_t before = processes.generation(process);
    std::uint64_t generation = before;
    locations.clear();
    stack_flags = 0;
    for (const ChainFrame& frame : frames) {
        std::uint32_t flags = frame.return_address ? wire::location_flag::return_address : 0;
        if (frame.joined) flags |= wire::location_flag::joined;
        if (frame.kernel) flags |= wire::location_flag::kernel_mode;
        LocatedFrames::Key key{frame.kernel ? LocatedFrames::kernel : generation, frame.address, flags};
        if (const LocatedFrames::Located known = located.find(key); known.location != 0) {
            locations.push_back(known.location);
            if (known.unnamed_jit) stack_flags |= stack_flag::unnamed_jit;
            continue;
        }
        if (frame.kernel) {
            locations.push_back(locate_kernel(frame, flags));
            located.put(key, {locations.back()});
            continue;
        }
        const ResolvedAddress resolved = processes.resolve(process, frame.address);
        // Without known mappings, addresses are meaningless. One frame, "[unknown process]", replaces them.
        if (!processes.maps_known(process)) {
            stack_flags |= stack_flag::unknown_process;
            break;
        }
        key.generation = generation = processes.generation(process);
        const LocatedFrames::Located found =
            resolved.jit ? locate_jit(resolved, flags) : LocatedFrames::Located{dictionary.address(resolved, flags)};
        locations.push_back(found.location);
        if (found.unnamed_jit) stack_flags |= stack_flag::unnamed_jit;
        // Do not cache an address outside all mappings: its mapping may not have been read yet.
        if (resolved.module != 0) located.put(key, found);
    }
    return processes.generation(process) == before;
}

wire::Id Folder::State::locate_kernel(const ChainFrame& frame, std::uint32_t flags) {
    const ResolvedAddress resolved = processes.resolve_kernel(frame.address);
    const std::string_view program = programs.name_at(frame.code_address().lookup());
    if (!program.empty())
        return dictionary.function_of(resolved.module, {program, {}, 0}, flags & ~wire::location_flag::return_address);
    kernel_names.saw(resolved.address);
    return dictionary.address(resolved, flags);
}

// Addresses of JIT code can later belong to other code, so look up the function now. If it is unknown yet, keep the
// address, which a later symbol can name.
LocatedFrames::Located Folder::State::locate_jit(const ResolvedAddress& resolved, std::uint32_t flags) {
    const CodeAddress address{resolved.address, (flags & wire::location_flag::return_address) != 0};
    const auto function = processes.jit_function(resolved.module, address.lookup());
    if (!function) return {dictionary.address(resolved, flags), true};
    return {dictionary.function_of(resolved.module, *function, flags & wire::location_flag::joined)};
}

// Folds `frames`, innermost first, which end with those of `user_stack`. `stop` determines whether the outermost frames
// are missing.
FoldedStack Folder::State::fold_frames(ProcessHandle process, unwind::StopReason stop) {
    FoldedStack result;
    result.stop = stop;
    for (const KernelFunction& function : io_functions)
        for (const ChainFrame& frame : frames)
            if (frame.kernel && frame.address - function.address < function.size) result.flags |= stack_flag::io_wait;
    std::uint8_t flags = 0;
    // The second pass finds everything in the mappings that the first one read.
    if (!locate_frames(process, flags)) (void)locate_frames(process, flags);
    result.flags |= flags;
    if (locations.size() == frames.size())
        for (std::size_t i = frames.size(); i-- > 0;)
            if (frames[i].caller_missing)
                locations.insert(locations.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                 dictionary.name("[caller missing]"));
    if ((flags & stack_flag::unknown_process) != 0) {
        locations.push_back(dictionary.name("[unknown process]"));
    } else if (ended_without_root(stop)) {
        locations.push_back(dictionary.name("[incomplete]"));
    }
    if (stop == unwind::StopReason::max_depth || stop == unwind::StopReason::truncated_copy) {
        result.flags |= stack_flag::truncated;
        locations.push_back(dictionary.name("[truncated]"));
    }
    for (std::size_t i = locations.size(); i-- > 0;) result.stack = dictionary.stack(result.stack, locations[i]);
    if (result.stack == 0) result.stack = dictionary.stack(0, dictionary.name("[no stack]"));
    return result;
}

// Splits the call chain of the sample: kernel frames into `frames`, user addresses into `user_chain`.
void Folder::State::split(const SampleRecord& sample) {
    frames.clear();
    user_chain.clear();
    stored = split_callchain(sample.callchain, sample.user_mode(), frames);
    const auto user = std::find_if(frames.begin(), frames.end(), [](const ChainFrame& frame) { return !frame.kernel; });
    for (auto frame = user; frame != frames.end(); ++frame) user_chain.push_back(frame->address);
    frames.erase(user, frames.end());
}

// Appends `user_stack` after the kernel frames.
void Folder::State::append_user_stack() {
    for (const unwind::Frame& frame : user_stack.frames)
        frames.push_back(
            {frame.pc, false, frame.return_address, frame.found_by == unwind::FoundBy::joined, frame.caller_missing});
}

void Folder::State::remember(std::uint64_t chain_hash, ProcessHandle process, const FoldedStack& stack) {
    folded.push_back(stack);
    // Use the current generation, because resolving may have read the mappings again.
    chains.find_or_add({chain_hash, processes.generation(process)}, static_cast<std::uint32_t>(folded.size()));
}

// If the tables are full, returns the one stack that replaces all new stacks until the next batch.
std::optional<FoldedStack> Folder::State::full_tables() {
    if (table_bytes() <= options.epoch_bytes * hard_bound_factor) return std::nullopt;
    epoch_due = true;
    FoldedStack result;
    result.stack = dictionary.stack(0, dictionary.name("[too many stacks]"));
    result.flags = stack_flag::truncated;
    return result;
}

// Folds a stack that depends only on its call chain.
FoldedStack Folder::State::fold_chain(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process) {
    std::uint64_t chain_hash = sample.user_mode() ? 1 : 0;
    for (const std::uint64_t entry : sample.callchain) chain_hash = mix_in(chain_hash, entry);
    // Only a chain without any address depends on the ip. Such a chain is short, so hashing the ip costs nothing.
    if (sample.callchain.size() <= 2) chain_hash = mix_in(chain_hash, sample.ip);
    if (const std::uint32_t known = chains.find({chain_hash, processes.generation(process)}); known != 0)
        return folded[known - 1];
    if (const auto full = full_tables()) return *full;

    split(sample);
    if (frames.empty() && user_chain.empty() && sample.ip != 0) {
        if (sample.user_mode())
            user_chain.push_back(sample.ip);
        else
            frames.push_back({sample.ip, true, false});
    }
    // A frame-pointer chain does not show whether it ended at the root. At the kernel's limit it was truncated.
    const bool cut = stored >= options.max_stack;
    if (stacks) {
        stacks->find(sample, user_chain, thread, process, user_stack);
    } else {
        user_stack = {};
        for (std::size_t i = 0; i < user_chain.size(); ++i) {
            unwind::Frame frame;
            frame.pc = user_chain[i];
            frame.return_address = i > 0;
            user_stack.frames.push_back(frame);
        }
    }
    append_user_stack();
    if (cut && user_stack.stop != unwind::StopReason::root) user_stack.stop = unwind::StopReason::max_depth;
    FoldedStack result = fold_frames(process, user_stack.stop);
    result.user_frames = static_cast<std::uint16_t>(user_stack.frames.size());
    if (stacks && !cut)
        if (const auto need = stacks->need_of(sample, process, user_stack))
            result.need = static_cast<std::uint8_t>(*need);
    if (!user_stack.provisional) remember(chain_hash, process, result);
    return result;
}

// Folds a stack that must be unwound for each sample. Whether it was seen before is known only afterwards.
FoldedStack Folder::State::fold_walk(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process) {
    split(sample);
    stacks->find(sample, user_chain, thread, process, user_stack);
    std::uint64_t chain_hash = 2 + static_cast<std::uint64_t>(user_stack.stop);
    for (const ChainFrame& frame : frames) chain_hash = mix_in(chain_hash, frame.address);
    for (const unwind::Frame& frame : user_stack.frames) {
        const bool joined = frame.found_by == unwind::FoundBy::joined;
        chain_hash = mix_in(chain_hash, frame.pc << 3 | (frame.caller_missing ? 4U : 0U) |
                                            (frame.return_address ? 2U : 0U) | (joined ? 1U : 0U));
    }
    if (const std::uint32_t known = chains.find({chain_hash, processes.generation(process)}); known != 0)
        return folded[known - 1];
    if (const auto full = full_tables()) return *full;

    append_user_stack();
    // A kernel thread has no user stack, so no frames are missing.
    FoldedStack result = fold_frames(process, user_stack.frames.empty() ? unwind::StopReason::root : user_stack.stop);
    result.joined = user_stack.joined;
    result.other_stack = user_stack.walked == unwind::StopReason::other_stack;
    result.user_frames = static_cast<std::uint16_t>(user_stack.frames.size());
    if (const auto need = stacks->need_of(sample, process, user_stack)) result.need = static_cast<std::uint8_t>(*need);
    if (!user_stack.provisional) remember(chain_hash, process, result);
    return result;
}

FoldedStack Folder::State::fold(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process) {
    return !stacks || UserStacks::by_chain_alone(sample) ? fold_chain(sample, thread, process)
                                                         : fold_walk(sample, thread, process);
}

}  // namespace flamewire::agent
