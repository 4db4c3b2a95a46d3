// `--stat sched`: adds up the thread states and prints them as a table, on a terminal every second, and when the
// recording ends. Ignores everything else in the batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/batch_sink.h"
#include "counters/sched_table.h"

namespace flamewire::agent {

class SchedSink final : public BatchSink {
public:
    // `live`: standard output is a terminal, and only the agent writes to it.
    explicit SchedSink(bool live) : live_(live) {}
    Result<bool> begin(const wire::RecordingId&) override { return true; }
    Result<bool> push(wire::Batch& batch, const wire::EventPeriods&) override;
    [[nodiscard]] bool names_kernel_at_end() const override { return false; }
    [[nodiscard]] Backlog backlog() const override { return {}; }

private:
    std::uint32_t line_of(std::uint32_t tid, const std::string& name);
    void print(bool last);

    bool live_;
    std::uint32_t epoch_ = 0;
    std::vector<std::string> strings_{1};    // of the epoch
    std::vector<std::uint32_t> line_of_{0};  // thread of the epoch -> lines_
    std::vector<counters::SchedLine> lines_;
    std::uint64_t next_ns_ = 0;
};

}  // namespace flamewire::agent
