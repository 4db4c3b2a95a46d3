// Counts the unwind results of each process, for wire::ProcessUnwind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "agent/process/process_table.h"
#include "unwind/frame/stop_reason.h"
#include "wire/batch.h"

namespace flamewire::agent {

class StackAccount {
public:
    struct Entry {
        wire::ProcessUnwind counts;
        bool changed = false;  // since the last take_changed()
    };

    // Adds one sample with a user stack of `frames` frames. `mode`: the mode of its process, if the sample shows it.
    void add(ProcessHandle process, std::optional<wire::StackMode> mode, unwind::StopReason stop, bool joined,
             std::size_t frames, std::size_t stack_bytes);
    // Calls `use(process, counts)` for every entry that changed since the last call. If there are many entries, removes
    // unchanged ones, whose processes have most likely exited.
    template <class Use>
    void take_changed(Use use) {
        const bool crowded = entries_.size() > most_entries;
        for (auto it = entries_.begin(); it != entries_.end();) {
            const bool changed = std::exchange(it->second.changed, false);
            if (changed) use(it->first, it->second.counts);
            it = crowded && !changed ? entries_.erase(it) : std::next(it);
        }
        last_ = nullptr;
    }
    // Marks all entries as changed, for a receiver that has none of them.
    void emit_all_again() {
        for (auto& [process, entry] : entries_) entry.changed = true;
    }
    [[nodiscard]] const std::unordered_map<ProcessHandle, Entry>& entries() const { return entries_; }

private:
    static constexpr std::size_t most_entries = 4096;
    std::unordered_map<ProcessHandle, Entry> entries_;
    ProcessHandle last_process_ = 0;
    Entry* last_ = nullptr;  // consecutive samples are often of one process
};

}  // namespace flamewire::agent
