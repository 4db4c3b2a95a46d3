// All data of one session in memory: tables, the two tries, the rows. The owner adds batches and symbolized frames, and
// queries (query.h) read. Not thread-safe: the owner serializes writers and lets readers share (a shared mutex). Most of
// its functions return one table or one total.
//
// Rows refer to the address trie (one node per distinct address path). The function trie is derived: each address node
// maps to the node of its innermost frame, inlined frames expanded. When symbols get better, the function trie is
// rebuilt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/code_address.h"
#include "base/result.h"
#include "profile/store/counter_history.h"
#include "profile/store/hits.h"
#include "profile/store/marks.h"
#include "profile/store/model.h"
#include "profile/store/thread_times.h"
#include "symbol/types/module_identity.h"
#include "symbol/types/source_frames.h"
#include "wire/batch.h"

namespace flamewire::profile {

struct Module {
    symbol::ModuleIdentity identity;
    std::string name;  // file name without directories
};

struct Process {
    wire::Process wire;                                              // its ids are not used; the texts are below
    std::string_view comm, exe, command_line, cgroup, container_id;  // valid as long as the store
    // Unwinding results of its stacks since the recording began; nullopt before the first samples. Its process id is
    // not used.
    std::optional<wire::ProcessUnwind> unwind;
};

struct Thread {
    ProcessId process = 0;
    std::uint32_t pid = 0, tid = 0;
    std::string_view comm;       // the latest one; valid as long as the store
    std::uint64_t ended_ns = 0;  // CLOCK_MONOTONIC of the target; 0: no end was reported
};

struct Event {
    std::string name, unit;
    std::uint32_t frequency_hz = 0;
    std::uint64_t period = 0;
    bool traced = false;  // its samples are in hits()
    // As in Filter. NOLINTBEGIN(readability-redundant-member-init)
    std::vector<wire::EventField> fields = {};  // of hits
    std::string print_format = {};              // how the kernel prints them; may be empty
    std::uint32_t description = 0;              // rises when the fields change
    // NOLINTEND(readability-redundant-member-init)
};

// A loss of the session, summed over batches by (reason, event).
struct LossTotal {
    wire::LossReason reason = wire::LossReason::unknown;
    EventId event = 0;
    std::uint64_t count = 0, first_ns = 0, last_ns = 0;
    // Not reported by the target, but caused by the row limit of this store. Reason time_coarsened: shown in less
    // detail than recorded. Reason unknown: dropped and no longer shown (a session file still has these rows).
    bool by_store = false;
};

// A stretch of time whose rows have the same level of detail.
struct Coverage {
    std::uint64_t start_ns = 0, end_ns = 0;
    std::uint64_t bucket_ns = 0;  // widest bucket in it; 0 if dropped
    bool whole = true;            // in the detail in which it arrived
    bool cpu_folded = false, thread_folded = false;
    bool dropped = false;  // no rows of it are left
    bool operator==(const Coverage&) const = default;
};

// Addresses of one module that have no frames yet, or that have frames older than the module's current symbols.
struct PendingModule {
    ModuleId module = 0;
    std::vector<LocationId> locations;
    std::vector<CodeAddress> addresses;
};

struct StoreLimits {
    std::size_t max_rows = 500'000;  // above it the oldest rows are coarsened, then dropped and counted as a loss
    // Limits names, stacks and everything else except the rows. Once the tables exceed it (by one batch at most), new
    // batches are only counted as a loss and not shown, because no part of a batch is small.
    std::size_t max_table_bytes = std::size_t{1} << 30;
};

class Store {
public:
    explicit Store(StoreLimits limits = {});
    ~Store();
    Store(Store&&) noexcept;
    Store& operator=(Store&&) noexcept;

    // Takes one batch. invalid: a reference points nowhere, and nothing of the batch is applied. Batches must come in
    // order of seq, without duplicates. Returns true if a query could see a difference.
    Result<bool> apply(const wire::Batch& batch);

    // Locations that need frames. Each is returned once per symbol generation.
    std::vector<PendingModule> take_pending();
    // The agent was disconnected from the server. The samples of that time come later.
    void note_reconnect(std::uint64_t start_ns, std::uint64_t end_ns);
    // Batches of this time are missing. Adds a loss mark with count 0, because the number of samples is unknown.
    void note_missing(std::uint64_t start_ns, std::uint64_t end_ns);

    // Locations that need frames, or that take_pending() returned and that have no answer yet.
    [[nodiscard]] std::size_t pending_locations() const;

    // Sets symbol::ModuleIdentity::owner of modules that come from now on.
    void set_owner(const std::string& owner);
    // Frames for locations of take_pending().
    void set_frames(const PendingModule& pending, const symbol::Resolved& resolved);
    // All frames of these modules (empty: of all modules) must be resolved again, because symbols got better.
    void forget_frames(std::span<const ModuleId> modules);
    // Addresses of kernel-like modules that neither the wire's symbols nor set_frames() could name. The caller can
    // request them from the agent.
    [[nodiscard]] std::size_t unresolved_kernel_locations() const;

    // Counts as a change: something outside of the store that views show changed (for example, a source file arrived).
    void touch();
    // Rises with every change that a query could see.
    [[nodiscard]] std::uint64_t version() const;
    [[nodiscard]] std::size_t row_count() const;
    // Bytes of rows and tries together.
    [[nodiscard]] std::size_t memory_bytes() const;
    // max_table_bytes was reached, so batches are only counted.
    [[nodiscard]] bool tables_full() const;
    // Some addresses lack their inlined functions, because these would exceed max_table_bytes.
    [[nodiscard]] bool inlined_left_out() const;

    [[nodiscard]] std::span<const Module> modules() const;  // [0] is reserved, as in all tables
    [[nodiscard]] std::span<const Process> processes() const;
    // Processes with `unwind`, in order of its arrival. Few of many short-lived processes have samples.
    [[nodiscard]] std::span<const ProcessId> processes_with_stacks() const;
    [[nodiscard]] std::span<const Thread> threads() const;
    [[nodiscard]] std::span<const Event> events() const;
    [[nodiscard]] const CounterHistory& counters() const;
    [[nodiscard]] const ThreadTimesHistory& thread_times() const;
    [[nodiscard]] const HitHistory& hits() const;
    [[nodiscard]] const Marks& marks() const;
    [[nodiscard]] std::span<const LossTotal> losses() const;
    [[nodiscard]] const std::vector<wire::Notice>& notices() const;
    [[nodiscard]] const std::optional<wire::Recording>& recording() const;
    [[nodiscard]] const std::optional<wire::AgentStats>& agent_stats() const;
    [[nodiscard]] const std::optional<wire::End>& end() const;
    [[nodiscard]] std::string_view string(StringId id) const;

    // Start and end of the time that rows cover (bucket edges as they arrived); both 0 without rows.
    [[nodiscard]] std::uint64_t first_ns() const;
    [[nodiscard]] std::uint64_t end_ns() const;
    // The time until which everything is known, including times without samples: the later of end_ns() and the time at
    // which the newest batch was closed. 0 before the first batch.
    [[nodiscard]] std::uint64_t known_until_ns() const;
    [[nodiscard]] Weight total(EventId event) const;  // of the remaining rows; event 0: samples of all events, weight 0
    // The effect of max_rows on the time range, oldest first: dropped, coarse and whole stretches. Adjacent equal ones
    // are merged.
    [[nodiscard]] std::vector<Coverage> coverage() const;

    struct Tables;
    [[nodiscard]] const Tables& tables() const { return *tables_; }  // for query.cc

private:
    std::unique_ptr<Tables> tables_;
};

}  // namespace flamewire::profile
