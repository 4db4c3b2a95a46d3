// Keeps samples of traced events with their values, from a trigger on and up to a number.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/perf/record.h"
#include "agent/pipeline/frame_locator.h"
#include "agent/process/process_table.h"
#include "recording/hit_table.h"
#include "wire/batch.h"

namespace flamewire::agent {

class HitKeeper {
public:
    // `locator` must outlive this.
    explicit HitKeeper(FrameLocator& locator) : locator_(locator) {}

    struct Limits {
        std::optional<std::uint32_t> trigger;  // the event whose first sample begins the trace; nullopt: at once
        std::uint64_t first = 0;               // samples that are kept; 0: all
    };
    // Keeps the sample of a traced event, of which `row` is the row. `event` counts as Limits::trigger.
    void add(const SampleRecord& sample, std::uint32_t event, ProcessHandle process, const wire::Row& row,
             const Limits& limits);
    std::vector<wire::Hits> take() { return table_.take(); }

private:
    FrameLocator& locator_;
    recording::HitTable table_;
    bool triggered_ = false;
    std::uint64_t kept_ = 0;
};

}  // namespace flamewire::agent
