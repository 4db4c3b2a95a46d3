// The stacks of threads and interrupts that wake others.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "agent/perf/record.h"
#include "agent/pipeline/dictionary.h"
#include "agent/pipeline/stack_folder.h"
#include "agent/process/process_table.h"
#include "wire/batch.h"

namespace flamewire::agent {

class WakerStacks {
public:
    // All arguments must outlive this.
    WakerStacks(ProcessTable& processes, Dictionary& dictionary, StackFolder& folder)
        : processes_(processes), dictionary_(dictionary), folder_(folder) {}

    // Returns the waker's stack as a stack of the woken thread's process, with an innermost frame that names the waker.
    // If the waker is another process or an interrupt, the stack has only kernel frames, as other addresses are
    // meaningless.
    wire::Id fold(const SampleRecord& sample, ThreadHandle woken);

private:
    const std::string& name_of_external(const SampleRecord& sample);

    ProcessTable& processes_;
    Dictionary& dictionary_;
    StackFolder& folder_;
    struct External {
        std::uint32_t tid = 0;
        std::uint64_t asked_ns = 0;
        std::string name;
    };
    std::array<External, 64> external_;  // wakers outside the target, by tid
};

}  // namespace flamewire::agent
