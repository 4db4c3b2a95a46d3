// Applies records in time order to processes, threads and address spaces. /proc may be ahead of the records: data read
// from it at time T is not undone by a record older than T.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "agent/process/process_backfill.h"

namespace flamewire::agent {

class ProcessRecords {
public:
    using LifecycleEvent = ProcessTable::LifecycleEvent;

    // All references must outlive this.
    ProcessRecords(const ProcessTableOptions& options, ProcessRegistry& registry, ModuleCache& modules,
                   ProcessBackfill& backfill)
        : options_(options), registry_(registry), modules_(modules), backfill_(backfill) {}

    std::optional<LifecycleEvent> on_fork(const TaskRecord& record);
    std::optional<LifecycleEvent> on_exit(const TaskRecord& record);
    std::optional<LifecycleEvent> on_comm(const CommRecord& record);
    void on_mmap2(const MmapRecord& record);
    void on_lost(const LostRecord& record);
    std::vector<wire::Loss> take_losses() { return std::exchange(losses_, {}); }

private:
    std::optional<LifecycleEvent> on_exec(const CommRecord& record);

    const ProcessTableOptions& options_;
    ProcessRegistry& registry_;
    ModuleCache& modules_;
    ProcessBackfill& backfill_;
    std::vector<wire::Loss> losses_;
};

}  // namespace flamewire::agent
