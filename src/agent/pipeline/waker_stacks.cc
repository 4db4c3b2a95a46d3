#include "agent/pipeline/waker_stacks.h"

#include <algorithm>

#include "base/file.h"
#include "perf/abi.h"

namespace flamewire::agent {
namespace {

// How long to cache the name of a waker outside the target.
constexpr std::uint64_t external_waker_lifetime_ns = 1'000'000'000;

}  // namespace

wire::Id WakerStacks::fold(const SampleRecord& sample, ThreadHandle woken) {
    const ProcessHandle process = processes_.thread(woken).process;
    SampleRecord seen = sample;
    const ThreadHandle waker = sample.by_interrupt ? 0 : processes_.newest_thread(sample.pid, sample.tid);
    const bool own = !sample.of_cpu && waker != 0 && processes_.thread(waker).process == process;
    if (!own) {
        const auto user = std::ranges::find(sample.callchain, perf::context::user);
        seen.callchain = sample.callchain.first(static_cast<std::size_t>(user - sample.callchain.begin()));
        seen.mode = wire::StackMode::fp;
        seen.ip = seen.register_abi = seen.register_mask = 0;
    }
    const wire::Id stack = folder_.fold(seen, own ? waker : woken, process).stack;
    std::string name = "an interrupt";
    if (!sample.by_interrupt) name = waker != 0 ? processes_.thread(waker).comm : name_of_external(sample);
    return dictionary_.stack(stack, dictionary_.name("[woken by " + name + "]"));
}

// Its exit is not reported, so it is not in the process table. Its name is read again after a second.
const std::string& WakerStacks::name_of_external(const SampleRecord& sample) {
    External& one = external_[sample.tid % external_.size()];
    if (one.tid == sample.tid && sample.time_ns - one.asked_ns < external_waker_lifetime_ns) return one.name;
    one = {sample.tid, sample.time_ns,
           read_file("/proc/" + std::to_string(sample.tid) + "/comm", 64).value_or("someone outside")};
    if (one.name.ends_with('\n')) one.name.pop_back();
    return one.name;
}

}  // namespace flamewire::agent
