// From a call chain, or a walk over stack bytes, to a stack of locations.
#include <algorithm>

#include "agent/pipeline/folder_state.h"

namespace flamewire::agent {
namespace {

// Within one batch the tables may outgrow their bound; at this multiple stacks that are new are not told apart any
// more.
constexpr std::size_t hard_bound_factor = 8;

bool ended_without_root(unwind::StopReason stop) {
    using unwind::StopReason;
    return stop == StopReason::no_map || stop == StopReason::no_info || stop == StopReason::bad_read ||
           stop == StopReason::not_advancing || stop == StopReason::other_stack || stop == StopReason::too_much_work;
}

}  // namespace

// Resolves `frames` into `locations`. False when a look into /proc on the way moved what had been resolved before it.
// Sets stack_flag::unknown_process and unnamed_jit.
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
        // Addresses of an address space that nobody can know mean nothing: one frame will say so.
        if (!processes.maps_known(process)) {
            stack_flags |= stack_flag::unknown_process;
            break;
        }
        key.generation = generation = processes.generation(process);
        const LocatedFrames::Located found =
            resolved.jit ? locate_jit(resolved, flags) : LocatedFrames::Located{dictionary.address(resolved, flags)};
        locations.push_back(found.location);
        if (found.unnamed_jit) stack_flags |= stack_flag::unnamed_jit;
        // What is in no mapping now may be in one that is still to be read.
        if (resolved.module != 0) located.put(key, found);
    }
    return processes.generation(process) == before;
}

wire::Id Folder::State::locate_kernel(const ChainFrame& frame, std::uint32_t flags) {
    const ResolvedAddress resolved = processes.resolve_kernel(frame.address);
    const std::string_view program = programs.name_at(frame.address - (frame.return_address ? 1 : 0));
    if (!program.empty())
        return dictionary.function_of(resolved.module, {program, {}, 0}, flags & ~wire::location_flag::return_address);
    kernel_names.saw(resolved.address);
    return dictionary.address(resolved, flags);
}

// Where code comes and goes, an address says nothing later: its function is looked up now. One that is not known yet
// stays an address, which a symbol names.
LocatedFrames::Located Folder::State::locate_jit(const ResolvedAddress& resolved, std::uint32_t flags) {
    const bool return_address = (flags & wire::location_flag::return_address) != 0;
    const auto function = processes.jit_function(resolved.module, resolved.address - (return_address ? 1 : 0));
    if (!function) return {dictionary.address(resolved, flags), true};
    return {dictionary.function_of(resolved.module, *function, flags & wire::location_flag::joined)};
}

// Folds `frames`, innermost first, the last of them those of `user_stack`; `stop` says whether the outermost ones are missing.
FoldedStack Folder::State::fold_frames(ProcessHandle process, unwind::StopReason stop) {
    FoldedStack result;
    result.stop = stop;
    for (const KernelFunction& function : io_functions)
        for (const ChainFrame& frame : frames)
            if (frame.kernel && frame.address - function.address < function.size) result.flags |= stack_flag::io_wait;
    std::uint8_t flags = 0;
    // The second time finds everything in what the first has read.
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

// The call chain of the sample: kernel frames into `frames`, user addresses into `user_chain`.
void Folder::State::split(const SampleRecord& sample) {
    frames.clear();
    user_chain.clear();
    stored = split_callchain(sample.callchain, sample.user_mode, frames);
    const auto user = std::find_if(frames.begin(), frames.end(), [](const ChainFrame& frame) { return !frame.kernel; });
    for (auto frame = user; frame != frames.end(); ++frame) user_chain.push_back(frame->address);
    frames.erase(user, frames.end());
}

// Behind the kernel's frames.
void Folder::State::append_user_stack() {
    for (const unwind::Frame& frame : user_stack.frames)
        frames.push_back(
            {frame.pc, false, frame.return_address, frame.found_by == unwind::FoundBy::joined, frame.caller_missing});
}

void Folder::State::remember(std::uint64_t chain_hash, ProcessHandle process, const FoldedStack& stack) {
    folded.push_back(stack);
    // The generation as it is now: resolving may have read the maps anew.
    chains.find_or_add({chain_hash, processes.generation(process)}, static_cast<std::uint32_t>(folded.size()));
}

// Nothing new can be told apart until the next batch.
std::optional<FoldedStack> Folder::State::full_tables() {
    if (table_bytes() <= options.epoch_bytes * hard_bound_factor) return std::nullopt;
    epoch_due = true;
    FoldedStack result;
    result.stack = dictionary.stack(0, dictionary.name("[too many stacks]"));
    result.flags = stack_flag::truncated;
    return result;
}

// A stack that is a function of its call chain.
FoldedStack Folder::State::fold_chain(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process) {
    std::uint64_t chain_hash = sample.user_mode ? 1 : 0;
    for (const std::uint64_t entry : sample.callchain) chain_hash = mix_in(chain_hash, entry);
    // Only a chain without any address takes the ip into account; it is short then, and costs nothing.
    if (sample.callchain.size() <= 2) chain_hash = mix_in(chain_hash, sample.ip);
    if (const std::uint32_t known = chains.find({chain_hash, processes.generation(process)}); known != 0)
        return folded[known - 1];
    if (const auto full = full_tables()) return *full;

    split(sample);
    if (frames.empty() && user_chain.empty() && sample.ip != 0) {
        if (sample.user_mode)
            user_chain.push_back(sample.ip);
        else
            frames.push_back({sample.ip, true, false});
    }
    // Of a frame-pointer chain nobody knows whether it ended at the root; one of the kernel's limit was surely cut.
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
        if (const auto need = stacks->judge(sample, process, user_stack))
            result.need = static_cast<std::uint8_t>(*need);
    if (!user_stack.provisional) remember(chain_hash, process, result);
    return result;
}

// A stack that must be found for each sample; that it is one of those seen before shows afterwards.
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
    // A kernel thread has no user stack that could have ended.
    FoldedStack result = fold_frames(process, user_stack.frames.empty() ? unwind::StopReason::root : user_stack.stop);
    result.joined = user_stack.joined;
    result.other_stack = user_stack.walked == unwind::StopReason::other_stack;
    result.user_frames = static_cast<std::uint16_t>(user_stack.frames.size());
    if (const auto need = stacks->judge(sample, process, user_stack)) result.need = static_cast<std::uint8_t>(*need);
    if (!user_stack.provisional) remember(chain_hash, process, result);
    return result;
}

FoldedStack Folder::State::fold(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process) {
    return !stacks || UserStacks::by_chain_alone(sample) ? fold_chain(sample, thread, process)
                                                         : fold_walk(sample, thread, process);
}

}  // namespace flamewire::agent
