// Commands of the server: JSON in, calls on a Control, JSON out. Uses no state, threads or kernel, so that every reply
// and every refusal can be tested with a fake Control. docs/agent/commands.md lists the fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/event_list.h"
#include "agent/health/settings.h"
#include "agent/machine.h"
#include "agent/options.h"
#include "agent/perf/capabilities.h"
#include "agent/perf/counter_set.h"
#include "agent/perf/event_set_options.h"
#include "agent/process/control_groups.h"
#include "agent/process/process_list.h"
#include "base/result.h"
#include "wire/batch.h"
#include "wire/control.h"

namespace flamewire::agent {

enum class State { idle, profiling, paused };
std::string_view state_name(State state);

// Settings that `start` and `configure` can change. Absent members leave the setting unchanged.
struct SettingsChange {
    std::optional<std::uint32_t> frequency_hz;
    std::optional<std::uint64_t> trace_first;
    std::optional<std::uint64_t> period;
    std::optional<std::uint32_t> duration_s, interval_ms;
    std::optional<std::string> events, filter, stat, unwind;
    std::optional<std::uint32_t> stack_bytes, max_depth;
    std::optional<bool> kernel;
    std::vector<std::uint32_t> pids;  // for `configure`: the new target; empty: unchanged
    WideTarget wide;                  // for `configure`: the new target; empty: pids
};
Settings changed(Settings settings, const SettingsChange& change);

struct StartRequest {
    std::vector<std::uint32_t> pids;  // empty: by name, or wide
    std::string name;
    WideTarget wide;
    SettingsChange change;
};

// How the user stacks of one process are unwound, and with which results. See wire::ProcessUnwind.
struct UnwindState {
    std::uint32_t pid = 0;
    std::string comm;
    wire::StackMode mode = wire::StackMode::fp;
    std::string why;  // one sentence: what was measured
    std::uint64_t samples = 0, whole = 0, joined = 0, truncated = 0, open_end = 0, stopped = 0, frames = 0;
    std::uint64_t stack_bytes = 0;
};

// A recording with its actual settings.
struct Running {
    std::string target;
    wire::RecordingId recording_id{};
    std::vector<std::uint32_t> pids;
    Scope scope;                      // wide: instead of pids
    Settings settings;                // as requested
    std::vector<std::string> events;  // names after fallbacks
    std::vector<CounterState> counters;
    CountBy count_by = CountBy::total;  // in addition to the totals; total: only these
    std::uint32_t effective_frequency_hz = 0;
    bool kernel = false;                        // kernel frames are recorded
    std::vector<wire::Notice> notices;          // of opening: fallbacks and clamps
    std::vector<UnwindState> unwind_processes;  // as of the last batch
    std::vector<std::uint32_t> members;         // live pids and their live children, as of the last batch
};

struct Accounting {
    std::uint64_t samples_read = 0, samples_duplicate = 0, samples_lost = 0;
    std::uint64_t rows_samples = 0;     // sum of the counts of all sent rows
    std::uint64_t samples_dropped = 0;  // dropped after they were read, and reported as losses
    std::uint64_t batches = 0;
    std::uint64_t ring_bytes = 0;
    std::int64_t unemitted_switches = 0;  // Folder::unemitted_switches()
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

// The actions of commands. stop, pause, … fail with `busy` and the message of the reply ("not profiling").
class Control {
public:
    virtual ~Control() = default;
    virtual StatusReport status() = 0;
    virtual Capabilities capabilities() = 0;
    virtual Result<Running> start(const StartRequest& request) = 0;
    virtual Result<Running> stop() = 0;
    virtual Result<Running> pause() = 0;
    virtual Result<Running> resume() = 0;
    // While recording: changes only that recording and returns it. When idle: changes the settings of the next start
    // and returns nothing.
    virtual Result<std::optional<Running>> configure(const SettingsChange& change) = 0;
    // Also counts per thread or per CPU. total: stops doing so.
    virtual Result<Running> count_by(CountBy by) = 0;
    virtual Result<bool> resolve_kernel() = 0;
    // Returns the new settings. An empty change only reads them.
    virtual HealthSettings configure_metrics(const HealthChange& change) = 0;
    // These four can take a second or longer and are called concurrently with everything else, so they must be
    // thread-safe.
    virtual std::vector<ProcessEntry> list_processes() = 0;
    virtual ProcessCheck verify_pid(std::uint32_t pid) = 0;
    virtual Result<Capabilities> reprobe() = 0;
    virtual Result<EventList> list_events(const EventQuery& query) = 0;
};

// True for commands that would delay others. Run handle_command for them on a separate thread.
bool is_slow(std::string_view command);

// Returns the reply, a JSON object with the command's id.
std::string handle_command(const wire::Command& command, const Machine& machine, Control& control);

}  // namespace flamewire::agent
