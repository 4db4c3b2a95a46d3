// Prepares a recording's samples for unwinding.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "perf_data.h"
#include "processes.h"
#include "unwind/frame/registers.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::perf_data {

// The architecture that uname -m calls `machine`; x86_64 if the recording does not contain it.
unwind::Arch arch_of(const std::string& machine);

// The registers and the stack copy of a sample; none if the kernel had none (a kernel thread, an exiting process).
struct Start {
    unwind::Registers registers;
    unwind::StackCopy stack;
};
std::optional<Start> start_of(const Recording& recording, const Sample& sample);

// The kernel and user parts of a call chain, without markers.
std::vector<std::uint64_t> kernel_chain(const Sample& sample);
std::vector<std::uint64_t> user_chain(const Sample& sample);

// Calls `visit` for each sample in time order, with the processes as they were at that time.
void replay(const Recording& recording, Processes& processes, const std::function<void(const Sample&)>& visit);

}  // namespace flamewire::perf_data
