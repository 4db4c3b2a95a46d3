// Samples in, batches out: resolves call chains to locations, folds them into the stack trie and rows, and closes a batch when
// told. Owns the tables of the epoch. One thread. DESIGN: the hot path is a hash of the raw chain; everything else happens once a new chain.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/perf/record.h"
#include "agent/process/process_table.h"
#include "base/result.h"
#include "wire/batch.h"

namespace flamewire::agent {

struct FolderOptions {
    wire::RecordingId recording_id{};
    wire::Recording recording;
    std::vector<wire::Event> events;     // names and units are in the two lists below: the folder interns them
    std::vector<std::string> event_names, event_units;
    std::uint32_t max_stack = 127;       // chains of this length were cut by the kernel
    std::size_t epoch_bytes = std::size_t{2} << 20;  // tables larger than this start a new epoch
};

class Folder {
public:
    Folder(FolderOptions options, ProcessTable& processes);
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    // `event` is the index into FolderOptions::events.
    void add_sample(const SampleRecord& sample, std::uint32_t event);
    void add_lifecycle(const ProcessTable::LifecycleEvent& event);
    void add_loss(const wire::Loss& loss);
    void add_notice(wire::Notice notice);
    void add_symbols(std::span<const TargetSymbol> symbols);

    // Takes what was folded since the last call as the next batch (seq counts from 1), with its time pair; stats and end are the
    // caller's. Rows are empty when nothing happened.
    wire::Batch close_batch();
    // Periods of the events of the current epoch, for wire::encode.
    [[nodiscard]] const wire::EventPeriods& periods() const;

    // Distinct kernel addresses of this recording, relative to _text, that have no symbol sent yet.
    [[nodiscard]] std::vector<std::uint64_t> unnamed_kernel_addresses() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::agent
