// Finds names of sampled kernel addresses for a receiver that cannot read them itself. A pass over the kernel's symbols
// runs in pieces between two drains, and not too often.
#pragma once

#include <cstdint>

#include "agent/pipeline/folder.h"
#include "agent/process/process_table.h"
#include "agent/recording/names_rate_limit.h"
#include "agent/recording/open_batch.h"

namespace flamewire::agent {

class KernelNamesPass {
public:
    // All arguments must outlive this.
    KernelNamesPass(ProcessTable& processes, const Folder& folder, OpenBatch& batch)
        : processes_(processes), folder_(folder), batch_(batch) {}

    // The next pass names the addresses seen until it begins.
    void request() { requested_ = true; }
    [[nodiscard]] bool requested() const { return requested_; }
    // Begins a pass if one was requested and the rate limit allows it.
    void begin_if_due(std::uint64_t now_ns);
    void begin();
    // True while a pass is not over.
    [[nodiscard]] bool active() const { return processes_.kernel_symbols_begun(); }
    // Continues a pass until the deadline. Adds its names to the batch.
    void advance(std::uint64_t deadline_ns);

private:
    ProcessTable& processes_;
    const Folder& folder_;
    OpenBatch& batch_;
    NamesRateLimit rate_limit_;
    bool requested_ = false;
};

}  // namespace flamewire::agent
