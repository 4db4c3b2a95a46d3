// Keeps samples of traced events with their values, from a trigger on and up to a number.
#pragma once

#include <cstdint>
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
        std::uint64_t triggers = 0;  // bits of the events of which a sample begins the trace; 0: it begins at once
        std::uint64_t first = 0;     // samples that are kept; 0: all
        bool operator==(const Limits&) const = default;
    };
    // The trace begins again, with other events or limits.
    void restart() {
        triggered_ = false;
        kept_ = 0;
    }
    // Keeps the sample of a traced event, of which `row` is the row. `event` counts as in Limits::triggers.
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
