// All that is kept in memory of one session: tables, the two tries, the rows. Batches go in, symbolized frames go in,
// queries (query.h) read. Not thread-safe: the owner serializes writers and lets readers share (a shared mutex).
//
// Rows refer to the address trie (one node per distinct address path). The function trie is derived: each address node
// maps to the node of its innermost frame, inlined frames expanded. When symbols get better the function trie is
// rebuilt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/store/counter_history.h"
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
    wire::Process wire;                                              // ids inside are not used: the texts are below
    std::string_view comm, exe, command_line, cgroup, container_id;  // these live as long as the store
    // What became of its stacks since the recording began; none before the first samples. Its process id is not used.
    std::optional<wire::ProcessUnwind> unwind;
};

struct Thread {
    ProcessId process = 0;
    std::uint32_t pid = 0, tid = 0;
    std::string_view comm;       // the last one; lives as long as the store
    std::uint64_t ended_ns = 0;  // CLOCK_MONOTONIC of the target; 0: not that anybody said
};

struct Event {
    std::string name, unit;
    std::uint32_t frequency_hz = 0;
    std::uint64_t period = 0;
};

// A loss of the session, summed over batches by (reason, event).
struct LossTotal {
    wire::LossReason reason = wire::LossReason::unknown;
    EventId event = 0;
    std::uint64_t count = 0, first_ns = 0, last_ns = 0;
    // Not stated by the target: this store's own row limit. Reason time_coarsened: shown, in less detail than recorded;
    // reason unknown: dropped, no longer shown (a session file has them still).
    bool by_store = false;
};

// A stretch of time whose rows have one level of detail.
struct Coverage {
    std::uint64_t start_ns = 0, end_ns = 0;
    std::uint64_t bucket_ns = 0;  // widest bucket in it; 0 when dropped
    bool whole = true;            // as it arrived
    bool cpu_folded = false, thread_folded = false;
    bool dropped = false;  // no rows of it are left
    bool operator==(const Coverage&) const = default;
};

// Addresses of one module that have no frames yet or older ones than the module's symbols could give now.
struct PendingModule {
    ModuleId module = 0;
    std::vector<LocationId> locations;
    std::vector<symbol::Address> addresses;
};

struct StoreLimits {
    std::size_t max_rows = 500'000;  // above it the oldest rows are coarsened, then dropped with a loss
    // Of names, stacks and all else but the rows. Once they are over it (by one batch at most) what comes is counted as a
    // loss and not shown: nothing of it would be small.
    std::size_t max_table_bytes = std::size_t{1} << 30;
};

class Store {
public:
    explicit Store(StoreLimits limits = {});
    ~Store();
    Store(Store&&) noexcept;
    Store& operator=(Store&&) noexcept;

    // Takes one batch. invalid when a reference points nowhere: then nothing of the batch is applied. Batches come in
    // order of seq; the caller has dropped duplicates. The answer is true when a query could see a difference.
    Result<bool> apply(const wire::Batch& batch);

    // Locations that want frames. Each is given out once per symbol generation.
    std::vector<PendingModule> take_pending();
    // The agent was away from the server; what it sampled meanwhile comes later.
    void note_reconnect(std::uint64_t start_ns, std::uint64_t end_ns);
    // Batches of this time are missing: a mark of a loss whose count is 0, as nothing says how many samples it is.
    void note_missing(std::uint64_t start_ns, std::uint64_t end_ns);

    // Locations that want frames or were given out, and have no answer yet.
    [[nodiscard]] std::size_t pending_locations() const;

    // Of the modules that come from now on: symbol::ModuleIdentity::owner.
    void set_owner(const std::string& owner);
    // Frames for locations of take_pending().
    void set_frames(const PendingModule& pending, const symbol::Resolved& resolved);
    // All frames of these modules (empty: of all) want to be resolved anew: symbols got better.
    void forget_frames(std::span<const ModuleId> modules);
    // Addresses of kernel-like modules that neither the wire's symbols nor set_frames() could name, for asking the
    // agent.
    [[nodiscard]] std::size_t unresolved_kernel_locations() const;

    // What views show beside its data is another thing now (a source file came): counts as a change.
    void touch();
    // Rises with every change that a query could see.
    [[nodiscard]] std::uint64_t version() const;
    [[nodiscard]] std::size_t row_count() const;
    // Bytes of rows and tries together.
    [[nodiscard]] std::size_t memory_bytes() const;
    // max_table_bytes was reached: batches are only counted.
    [[nodiscard]] bool tables_full() const;
    // Inlined functions are not shown of some addresses, as they would exceed it.
    [[nodiscard]] bool inlined_left_out() const;

    [[nodiscard]] std::span<const Module> modules() const;  // [0] reserved, as in all tables
    [[nodiscard]] std::span<const Process> processes() const;
    // Those with `unwind`, in the order in which it came: of many short-lived ones few have samples.
    [[nodiscard]] std::span<const ProcessId> processes_with_stacks() const;
    [[nodiscard]] std::span<const Thread> threads() const;
    [[nodiscard]] std::span<const Event> events() const;
    [[nodiscard]] const CounterHistory& counters() const;
    [[nodiscard]] const ThreadTimesHistory& thread_times() const;
    [[nodiscard]] const Marks& marks() const;
    [[nodiscard]] std::span<const LossTotal> losses() const;
    [[nodiscard]] const std::vector<wire::Notice>& notices() const;
    [[nodiscard]] const std::optional<wire::Recording>& recording() const;
    [[nodiscard]] const std::optional<wire::AgentStats>& agent_stats() const;
    [[nodiscard]] const std::optional<wire::End>& end() const;
    [[nodiscard]] std::string_view string(StringId id) const;

    // First and end of the time that rows cover (edges of buckets as they came); both 0 without rows.
    [[nodiscard]] std::uint64_t first_ns() const;
    [[nodiscard]] std::uint64_t end_ns() const;
    // Until when everything is known, a time without samples included: the later one of end_ns() and the moment at which
    // the newest batch was closed. 0 before the first batch.
    [[nodiscard]] std::uint64_t known_until_ns() const;
    [[nodiscard]] Weight total(
        EventId event) const;  // of the rows that are left; event 0: samples of all events, weight 0
    // What max_rows has done to the time range, oldest first: dropped, coarse and whole stretches, each merged with its
    // like.
    [[nodiscard]] std::vector<Coverage> coverage() const;

    struct Tables;
    [[nodiscard]] const Tables& tables() const { return *tables_; }  // for query.cc

private:
    std::unique_ptr<Tables> tables_;
};

}  // namespace flamewire::profile
