// Inside of a Store: every table that batches fill, the frames of locations, and the two tries. For src/profile only.
//
//   wire id --epoch--> Location --frames--> Function          rows --stack--> address trie --node_of_stack--> function
//   trie
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/code_address.h"
#include "profile/store/counter_history.h"
#include "profile/store/functions.h"
#include "profile/store/hits.h"
#include "profile/store/id_index.h"
#include "profile/store/marks.h"
#include "profile/store/rows.h"
#include "profile/store/store.h"
#include "profile/store/string_table.h"
#include "profile/store/symbol_intervals.h"
#include "profile/store/trie.h"

namespace flamewire::profile {

// Which source may still provide the frames of a location.
enum class FrameState : std::uint8_t {
    named,     // the wire named it; needs no symbolizer
    wanted,    // take_pending() will return it
    asked,     // returned by take_pending(), no answer yet
    resolved,  // the symbolizer answered with frames
    unknown,   // the symbolizer answered without frames
};

struct Location {
    std::uint64_t address = 0;
    ModuleId module = 0;
    StringId name = 0, file = 0;
    std::uint32_t line = 0;
    std::uint8_t flags = 0;
    FrameState state = FrameState::named;
    bool by_symbolizer = false;     // its frames are from the symbolizer; else from the wire, or a placeholder
    std::uint16_t frame_count = 0;  // 0 only for location 0: a location without a name shows its address
    std::uint32_t first_frame = 0;  // into Tables::frames, innermost first

    [[nodiscard]] CodeAddress code_address() const {
        return {address, (flags & wire::location_flag::return_address) != 0};
    }
};

struct LocationFrame {
    FunctionId function = 0;
    StringId file = 0;
    std::uint32_t line = 0;
    bool operator==(const LocationFrame&) const = default;
};

// Identifies a module beyond symbol::ModuleIdentity. Not compared if there is a build-id.
struct FileIdentity {
    std::uint64_t device = 0, inode = 0;
    std::int64_t mtime_ns = 0;
    bool operator==(const FileIdentity&) const = default;
};

// Maps ids of the current epoch to ids of the store. [0] is 0 in all of them.
struct EpochMaps {
    wire::RecordingId recording_id{};
    std::uint32_t epoch = 0;
    std::vector<std::uint32_t> strings{0}, modules{0}, locations{0}, stacks{0}, processes{0}, threads{0}, events{0};
};

struct Store::Tables {
    explicit Tables(StoreLimits store_limits);

    StoreLimits limits;
    EpochMaps epoch;
    StringTable strings;

    std::vector<Module> modules{1};
    std::vector<FileIdentity> module_files{1};
    std::vector<SymbolIntervals> module_symbols{1};
    IdIndex module_index;

    std::vector<Location> locations{1};
    IdIndex location_index;
    std::vector<LocationId> wanted;     // locations in state wanted, without duplicates
    std::size_t asked = 0;              // number of locations in state asked
    std::vector<LocationFrame> frames;  // may hold unused entries until the next rebuild
    FunctionTable functions;

    Trie stacks;  // labels: LocationId
    std::vector<std::uint16_t> stack_depth{0};
    std::vector<NodeId> node_of_stack{0};  // the node of the innermost frame
    Trie nodes;                            // labels: FunctionId; may hold unused nodes until the next rebuild
    std::size_t nodes_at_rebuild = 0, frames_at_rebuild = 0;
    std::size_t bytes_beside_frames = 0;  // of all tables except rows, frames and nodes, at the last count
    bool inlined_left_out = false;        // for some addresses, because of frames_full()

    std::vector<Process> processes{1};
    std::vector<ProcessId> processes_with_stacks;
    IdIndex process_index;
    std::vector<Thread> threads{1};
    IdIndex thread_index;
    std::vector<Event> events{1};
    std::vector<StringId> event_names{0};
    IdIndex event_index;

    RowTable rows;
    // Of the rows as they arrived. Their present coarse buckets may begin earlier and end later.
    std::uint64_t first_row_ns = std::numeric_limits<std::uint64_t>::max(), last_row_end_ns = 0;
    std::vector<Weight> event_totals{1};
    std::uint64_t dropped_first_ns = 0, dropped_end_ns = 0;  // equal: nothing was dropped

    CounterHistory counters;
    ThreadTimesHistory thread_times;
    HitHistory hits;
    Marks marks;
    std::uint64_t closed_ns = 0;  // of the newest batch

    std::vector<LossTotal> losses;
    std::unordered_map<std::uint64_t, std::size_t> loss_index;
    std::vector<wire::Notice> notices;
    std::optional<wire::Recording> recording;
    std::string owner;  // of all modules; see symbol::ModuleIdentity::owner
    std::optional<wire::AgentStats> agent_stats;
    std::optional<wire::End> end;
    std::uint64_t version = 0;
    std::size_t module_text_bytes = 0;  // not counted in the tables' own vectors
    bool full = false;                  // limits.max_table_bytes was reached

    // These return the id of an entry, which may exist already.
    ModuleId intern_module(const wire::Module& module, std::string_view path);
    LocationId intern_location(const Location& location);
    StackId intern_stack(StackId parent, LocationId location);
    ProcessId intern_process(const wire::Process& process, std::span<const std::uint32_t> strings_of_epoch);
    ThreadId intern_thread(ProcessId process, std::uint32_t tid, std::string_view comm);
    EventId intern_event(std::string_view name, std::string_view unit, const wire::Event& event);

    // profile/query/frames.cc
    [[nodiscard]] std::span<const LocationFrame> frames_of(LocationId location) const {
        const Location& entry = locations[location];
        return std::span(frames).subspan(entry.first_frame, entry.frame_count);
    }
    // The frame of a location from wire data alone: its name, a symbol that covers it, or its address.
    LocationFrame frame_from_wire(const Location& location);
    [[nodiscard]] StringId name_from_wire(const Location& location) const;
    // Whether the target reported a BPF program at this address that has ended since.
    [[nodiscard]] bool is_ended_program(const Location& location) const;
    // Frames and nodes have used up what limits.max_table_bytes leaves for them. An address then gets only its
    // outermost function: a few bytes may name a thousand inlined functions, and each stack repeats them.
    [[nodiscard]] bool frames_full() const;
    std::span<const LocationFrame> fitting(std::span<const LocationFrame> list);
    void count_beside_frames();
    bool replace_frames(LocationId location, std::span<const LocationFrame> with);  // true if they differ
    FunctionId intern_function(std::string_view name, const Location& location, bool inlined, StringId file,
                               std::uint32_t line);
    NodeId extend_node(NodeId parent, LocationId location);
    // Updates the function trie below the stacks of changed locations (indexed by location id: not 0 means changed).
    void remap_nodes(std::span<const std::uint8_t> changed);
    void rebuild_nodes();

    void add_loss(const LossTotal& loss);

    [[nodiscard]] std::size_t memory_bytes() const;
};

}  // namespace flamewire::profile
