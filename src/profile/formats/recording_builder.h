// Converts imported data to batches, as if an agent had recorded it: interns names, threads and stacks, and passes a
// batch on whenever enough has accumulated. One epoch unless begin_epoch() is called; ids refer to the tables of the
// current epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "profile/store/model.h"
#include "profile/store/string_table.h"
#include "recording/interned_tables.h"
#include "wire/batch.h"

namespace flamewire::profile {

class RecordingBuilder {
public:
    // Receives batches in order. An error (for example a full disk) ends the import with that error.
    using Sink = std::function<Result<bool>(wire::Batch batch)>;

    // `about.start_ns` is the time of the first row, or earlier. `realtime_ns` is the wall clock at that time.
    RecordingBuilder(const wire::RecordingId& id, wire::Recording about, std::int64_t realtime_ns, Sink sink);

    wire::Id string(std::string_view text);
    wire::Id event(std::string_view name, std::string_view unit);
    wire::Id module(wire::ModuleKind kind, std::string_view path, std::string_view build_id = {});
    // The thread belongs to the current process of its pid, until process() creates a new one.
    wire::Id thread(std::uint32_t pid, std::uint32_t tid, std::string_view comm);
    wire::Id process(const wire::Process& process);

    struct Name {
        std::string_view function, file{};
        std::uint32_t line = 0;
        wire::Id module = 0;
        std::uint32_t flags = 0;  // wire::location_flag
    };
    wire::Id location(const Name& name);
    // A location whose name is looked up later: an ELF virtual address of the module (kernel: relative to _stext).
    wire::Id location(wire::Id module, std::uint64_t address, std::uint32_t flags) {
        return tables_.location({module, address, flags, 0, 0, 0});
    }
    // The frame `location` called by the stack `parent` (0: none). Frames deeper than the store's limit are dropped,
    // and finish() adds a note about it.
    wire::Id stack(wire::Id parent, wire::Id location);
    // Returns whether stack() drops every frame that this stack calls.
    [[nodiscard]] bool is_full(wire::Id stack) const { return depths_[stack] == max_stack_depth; }
    // Adds a row. Passes a batch on if enough has accumulated.
    Result<bool> add(const wire::Row& row);
    // Call this now and then when adding much besides rows: it passes a batch on if enough has accumulated.
    Result<bool> give_if_enough();

    // These are sent with the next batch. Ids are those that this builder returned.
    void lifecycle(const wire::Lifecycle& change) { batch_.lifecycle.push_back(change); }
    void loss(const wire::Loss& loss) { batch_.losses.push_back(loss); }
    void unwinding(wire::ProcessUnwind counts) { batch_.unwinds.push_back(std::move(counts)); }
    void counters(wire::CounterReading reading) { batch_.counters.push_back(std::move(reading)); }
    void symbol(const wire::Symbol& symbol) { batch_.symbols.push_back(symbol); }
    // Adds a note: about content of the file that the import drops, or about anything that the user must be aware of.
    void note(std::string code, std::string text, std::string remedy = "");
    // Passes on everything collected so far.
    Result<bool> give() { return flush(); }
    // Call this after give(). The tables start empty, and ids returned earlier become invalid.
    void begin_epoch();
    // The number of strings, locations and stacks of the epoch.
    [[nodiscard]] std::size_t entries() const {
        return std::size_t{tables_.strings.next()} + tables_.locations.next() + tables_.stacks.next();
    }
    // Passes on the last batch.
    Result<bool> finish(std::string reason);

    [[nodiscard]] std::uint64_t rows() const { return row_count_; }

private:
    Result<bool> flush();

    wire::RecordingId id_;
    std::int64_t realtime_ns_;
    std::uint64_t start_ns_;
    Sink sink_;

    recording::InternedTables tables_;
    StringTable strings_;
    std::size_t unsent_text_ = 0;           // bytes of unsent strings
    std::vector<std::uint16_t> depths_{0};  // of the stacks, by id
    std::uint64_t too_deep_ = 0;
    std::map<std::pair<std::string, std::string>, wire::Id> events_;
    std::map<std::tuple<wire::ModuleKind, std::string, std::string>, wire::Id> modules_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, wire::Id> threads_;
    std::map<std::uint32_t, wire::Id> processes_;  // by pid

    wire::Batch batch_;  // without its tables
    std::uint64_t seq_ = 0, row_count_ = 0;
    std::uint32_t epoch_ = 1;
};

}  // namespace flamewire::profile
