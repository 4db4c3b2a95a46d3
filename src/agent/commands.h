// Commands of the server: JSON in, calls on a Control, JSON out. No state, no threads, no kernel here, so that every
// reply and every refusal can be tested against a Control that only remembers. docs/agent.md lists the fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/health/settings.h"
#include "agent/machine.h"
#include "agent/options.h"
#include "agent/perf/capabilities.h"
#include "agent/perf/counter_set.h"
#include "agent/perf/event_set.h"
#include "agent/process/control_groups.h"
#include "agent/process/process_list.h"
#include "base/result.h"
#include "wire/batch.h"
#include "wire/control.h"

namespace flamewire::agent {

enum class State { idle, profiling, paused };
std::string_view state_name(State state);

// What `start` and `configure` may change; what is absent stays.
struct SettingsChange {
    std::optional<std::uint32_t> frequency_hz;
    std::optional<std::uint64_t> period;
    std::optional<std::uint32_t> duration_s, interval_ms;
    std::optional<std::string> events, filter, stat, unwind;
    std::optional<std::uint32_t> stack_bytes, max_depth;
    std::optional<bool> kernel;
    std::vector<std::uint32_t> pids;  // of `configure`: another target; empty: it stays
    WideTarget wide;                  // the same; empty: pids
};
Settings changed(Settings settings, const SettingsChange& change);

struct StartRequest {
    std::vector<std::uint32_t> pids;  // empty: by name, or wide
    std::string name;
    WideTarget wide;
    SettingsChange change;
};

// How the user stacks of one process are found, and what became of them; see wire::ProcessUnwind.
struct UnwindState {
    std::uint32_t pid = 0;
    std::string comm;
    wire::StackMode mode = wire::StackMode::fp;
    std::string why;  // one sentence: what was measured
    std::uint64_t samples = 0, whole = 0, joined = 0, truncated = 0, open_end = 0, stopped = 0, frames = 0;
    std::uint64_t stack_bytes = 0;
};

// A recording as it really runs.
struct Running {
    std::string target;
    wire::RecordingId recording_id{};
    std::vector<std::uint32_t> pids;
    Scope scope;                      // wide: instead of pids
    Settings settings;                // as asked for
    std::vector<std::string> events;  // names after fallbacks
    std::vector<CounterState> counters;
    CountBy count_by = CountBy::total;  // beside the totals; total: nothing
    std::uint32_t effective_frequency_hz = 0;
    bool kernel = false;                        // kernel frames are recorded
    std::vector<wire::Notice> notices;          // of opening: fallbacks and clamps
    std::vector<UnwindState> unwind_processes;  // as of the last batch
    std::vector<std::uint32_t> members;         // pids and their children that live, as of the last batch
};

struct Accounting {
    std::uint64_t samples_read = 0, samples_duplicate = 0, samples_lost = 0;
    std::uint64_t rows_samples = 0;     // sum of the counts of all rows handed over
    std::uint64_t samples_dropped = 0;  // after the rings: stated as losses
    std::uint64_t batches = 0;
    std::uint64_t ring_bytes = 0;
    std::int64_t switches_not_told = 0;  // samples of context switches that are no row, less rows that are no sample
};

struct StatusReport {
    State state = State::idle;
    std::optional<Running> running;
    Settings settings;        // for the next start
    std::string waiting_for;  // --name: the process that has not appeared yet
    Accounting accounting;    // of the running or the last recording
    std::string link;         // the server's address; empty: not connected
    std::uint64_t spool_bytes = 0;
};

struct ProcessCheck {
    bool exists = false;
    ProcessIdentity identity;
    std::optional<Error> refused;  // why it cannot be sampled
};

// What commands do. stop, pause, … fail with `busy` and the sentence of the reply ("not profiling").
class Control {
public:
    virtual ~Control() = default;
    virtual StatusReport status() = 0;
    virtual Capabilities capabilities() = 0;
    virtual Result<Running> start(const StartRequest& request) = 0;
    virtual Result<Running> stop() = 0;
    virtual Result<Running> pause() = 0;
    virtual Result<Running> resume() = 0;
    // While recording: changes that recording alone and returns it. When idle: changes the settings of the next start and
    // returns nothing.
    virtual Result<std::optional<Running>> configure(const SettingsChange& change) = 0;
    // Counts by thread or by CPU, too; total: no more.
    virtual Result<Running> count_by(CountBy by) = 0;
    virtual Result<bool> resolve_kernel() = 0;
    // The settings as they are now; a change of nothing only reads.
    virtual HealthSettings configure_metrics(const HealthChange& change) = 0;
    // These three may take up to a second and are called beside everything else: thread-safe.
    virtual std::vector<ProcessEntry> list_processes() = 0;
    virtual ProcessCheck verify_pid(std::uint32_t pid) = 0;
    virtual Result<Capabilities> reprobe() = 0;
};

// True for commands that must not hold up others: run handle_command for them on a thread of its own.
bool is_slow(std::string_view command);

// The reply, one JSON object with the command's id.
std::string handle_command(const wire::Command& command, const Machine& machine, Control& control);

}  // namespace flamewire::agent
