#include "agent/pipeline/stack_account.h"

namespace flamewire::agent {

using unwind::StopReason;

void StackAccount::add(ProcessHandle process, std::optional<wire::StackMode> mode, StopReason stop, bool joined,
                       std::size_t frames, std::size_t stack_bytes) {
    if (last_ == nullptr || process != last_process_) {
        last_ = &entries_[process];
        last_process_ = process;
    }
    last_->changed = true;
    wire::ProcessUnwind& counts = last_->counts;
    if (mode) counts.mode = *mode;
    ++counts.samples;
    counts.frames += frames;
    counts.stack_bytes += stack_bytes;
    switch (stop) {
        case StopReason::root: ++(joined ? counts.joined : counts.whole); break;
        case StopReason::truncated_copy:
        case StopReason::max_depth: ++counts.truncated; break;
        case StopReason::chain_end: ++counts.open_end; break;
        case StopReason::no_map:
        case StopReason::no_info:
        case StopReason::bad_read:
        case StopReason::not_advancing:
        case StopReason::other_stack:
        case StopReason::too_much_work: ++counts.stopped; break;
    }
}

}  // namespace flamewire::agent
