#include "agent/pipeline/stack_folder.h"

#include <utility>

#include "perf/callchain.h"

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

// Folds `frames_`, innermost first, which end with those of `user_stack_`. `stop` determines whether the outermost
// frames are missing.
FoldedStack StackFolder::fold_frames(ProcessHandle process, unwind::StopReason stop) {
    FoldedStack result;
    result.stop = stop;
    for (const KernelFunction& function : io_functions_)
        for (const ChainFrame& frame : frames_)
            if (frame.kernel && frame.address - function.address < function.size) result.flags |= stack_flag::io_wait;
    std::uint8_t flags = 0;
    // The second pass finds everything in the mappings that the first one read.
    if (!locator_.locate(process, frames_, locations_, flags))
        (void)locator_.locate(process, frames_, locations_, flags);
    result.flags |= flags;
    if (locations_.size() == frames_.size())
        for (std::size_t i = frames_.size(); i-- > 0;)
            if (frames_[i].caller_missing)
                locations_.insert(locations_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                  dictionary_.name("[caller missing]"));
    if ((flags & stack_flag::unknown_process) != 0) {
        locations_.push_back(dictionary_.name("[unknown process]"));
    } else if (ended_without_root(stop)) {
        locations_.push_back(dictionary_.name("[incomplete]"));
    }
    if (stop == unwind::StopReason::max_depth || stop == unwind::StopReason::truncated_copy) {
        result.flags |= stack_flag::truncated;
        locations_.push_back(dictionary_.name("[truncated]"));
    }
    for (std::size_t i = locations_.size(); i-- > 0;) result.stack = dictionary_.stack(result.stack, locations_[i]);
    if (result.stack == 0) result.stack = dictionary_.stack(0, dictionary_.name("[no stack]"));
    return result;
}

// Splits the call chain of the sample: kernel frames into `frames_`, user addresses into `user_chain_`. Frames of a guest
// belong to another machine.
void StackFolder::split(const SampleRecord& sample) {
    frames_.clear();
    user_chain_.clear();
    using perf::CpuMode;
    stored_ = perf::split_callchain(sample.callchain, sample.user_mode() ? CpuMode::user : CpuMode::kernel,
                                    [&](std::uint64_t address, CpuMode mode, bool return_address) {
                                        if (mode == CpuMode::kernel) frames_.push_back({address, true, return_address});
                                        if (mode == CpuMode::user) user_chain_.push_back(address);
                                    });
}

// Appends `user_stack_` after the kernel frames.
void StackFolder::append_user_stack() {
    for (const unwind::Frame& frame : user_stack_.frames)
        frames_.push_back(
            {frame.pc, false, frame.return_address, frame.found_by == unwind::FoundBy::joined, frame.caller_missing});
}

// Like a return address, the address of the next instruction belongs to the line of the instruction before it.
void StackFolder::mark_innermost(const SampleRecord& sample) {
    if (sample.at_next_instruction && !frames_.empty()) frames_.front().return_address = true;
}

void StackFolder::remember(std::uint64_t chain_hash, ProcessHandle process, const FoldedStack& stack) {
    folded_.push_back(stack);
    // Use the current generation, because resolving may have read the mappings again.
    chains_.find_or_add({chain_hash, processes_.generation(process)}, static_cast<std::uint32_t>(folded_.size()));
}

// If the tables are full, returns the one stack that replaces all new stacks until the next batch.
std::optional<FoldedStack> StackFolder::full_tables() {
    if (table_bytes() <= limits_.epoch_bytes * hard_bound_factor) return std::nullopt;
    overflowed_ = true;
    FoldedStack result;
    result.stack = dictionary_.stack(0, dictionary_.name("[too many stacks]"));
    result.flags = stack_flag::truncated;
    return result;
}

// Folds a stack that depends only on its call chain.
FoldedStack StackFolder::fold_chain(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process) {
    std::uint64_t chain_hash = (sample.user_mode() ? 1U : 0U) | (sample.at_next_instruction ? 2U : 0U);
    for (const std::uint64_t entry : sample.callchain) chain_hash = mix_in(chain_hash, entry);
    // Only a chain without any address depends on the ip. Such a chain is short, so hashing the ip costs nothing.
    if (sample.callchain.size() <= 2) chain_hash = mix_in(chain_hash, sample.ip);
    if (const std::uint32_t known = chains_.find({chain_hash, processes_.generation(process)}); known != 0)
        return folded_[known - 1];
    if (const auto full = full_tables()) return *full;

    split(sample);
    if (frames_.empty() && user_chain_.empty() && sample.ip != 0) {
        if (sample.user_mode())
            user_chain_.push_back(sample.ip);
        else
            frames_.push_back({sample.ip, true, false});
    }
    // A frame-pointer chain does not show whether it ended at the root. At the kernel's limit it was truncated.
    const bool cut = stored_ >= limits_.max_stack;
    if (user_stacks_) {
        user_stacks_->find(sample, user_chain_, thread, process, user_stack_);
    } else {
        user_stack_ = {};
        for (std::size_t i = 0; i < user_chain_.size(); ++i) {
            unwind::Frame frame;
            frame.pc = user_chain_[i];
            frame.return_address = i > 0;
            user_stack_.frames.push_back(frame);
        }
    }
    append_user_stack();
    if (cut && user_stack_.stop != unwind::StopReason::root) user_stack_.stop = unwind::StopReason::max_depth;
    mark_innermost(sample);
    FoldedStack result = fold_frames(process, user_stack_.stop);
    result.user_frames = static_cast<std::uint16_t>(user_stack_.frames.size());
    if (user_stacks_ && !cut)
        if (const auto need = user_stacks_->need_of(sample, process, user_stack_))
            result.need = static_cast<std::uint8_t>(*need);
    if (!user_stack_.provisional) remember(chain_hash, process, result);
    return result;
}

// Folds a stack that must be unwound for each sample. Whether it was seen before is known only afterwards.
FoldedStack StackFolder::fold_walk(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process) {
    split(sample);
    user_stacks_->find(sample, user_chain_, thread, process, user_stack_);
    std::uint64_t chain_hash =
        (2 + static_cast<std::uint64_t>(user_stack_.stop)) << 1 | (sample.at_next_instruction ? 1U : 0U);
    for (const ChainFrame& frame : frames_) chain_hash = mix_in(chain_hash, frame.address);
    for (const unwind::Frame& frame : user_stack_.frames) {
        const bool joined = frame.found_by == unwind::FoundBy::joined;
        chain_hash = mix_in(chain_hash, frame.pc << 3 | (frame.caller_missing ? 4U : 0U) |
                                            (frame.return_address ? 2U : 0U) | (joined ? 1U : 0U));
    }
    if (const std::uint32_t known = chains_.find({chain_hash, processes_.generation(process)}); known != 0)
        return folded_[known - 1];
    if (const auto full = full_tables()) return *full;

    append_user_stack();
    mark_innermost(sample);
    // A kernel thread has no user stack, so no frames are missing.
    FoldedStack result = fold_frames(process, user_stack_.frames.empty() ? unwind::StopReason::root : user_stack_.stop);
    result.joined = user_stack_.joined;
    result.other_stack = user_stack_.walked == unwind::StopReason::other_stack;
    result.user_frames = static_cast<std::uint16_t>(user_stack_.frames.size());
    if (const auto need = user_stacks_->need_of(sample, process, user_stack_))
        result.need = static_cast<std::uint8_t>(*need);
    if (!user_stack_.provisional) remember(chain_hash, process, result);
    return result;
}

FoldedStack StackFolder::fold(const SampleRecord& sample, ThreadHandle thread, ProcessHandle process) {
    return !user_stacks_ || UserStacks::by_chain_alone(sample) ? fold_chain(sample, thread, process)
                                                               : fold_walk(sample, thread, process);
}

void StackFolder::change_unwinding(const std::optional<UserStackOptions>& options) {
    user_stacks_.reset();
    if (options) user_stacks_ = std::make_unique<UserStacks>(processes_, *options);
    forget_chains();
}

void StackFolder::set_io_functions(std::vector<KernelFunction> functions) {
    io_functions_ = std::move(functions);
    // Cached chains have no I/O wait flag yet.
    forget_chains();
}

void StackFolder::forget_chains() {
    chains_.clear();
    folded_.clear();
}

void StackFolder::begin_epoch() {
    chains_.clear();
    folded_ = {};
    overflowed_ = false;
}

std::size_t StackFolder::table_bytes() const {
    return dictionary_.bytes() + chains_.bytes() + folded_.capacity() * sizeof(FoldedStack);
}

}  // namespace flamewire::agent
