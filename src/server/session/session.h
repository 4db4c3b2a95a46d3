// One recording: its stream on disk, its store in memory, its symbols. Live recording and replay share one code path:
// ingest() gets the same frames, from the link or from the file. Thread-safe: frames are ingested one at a time,
// queries run in parallel, and resolving symbols blocks neither of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/store/gap_repair.h"
#include "profile/store/store.h"
#include "profile/symbols/symbol_cache.h"
#include "server/session/fair_shared_mutex.h"
#include "server/session/file_damage.h"
#include "server/session/health_history.h"
#include "server/session/sequence.h"
#include "server/session/session_info.h"
#include "symbol/types/module_identity.h"
#include "symbol/types/module_report.h"
#include "wire/batch.h"
#include "wire/frame.h"
#include "wire/session_file.h"
#include "wire/session_scan.h"

namespace flamewire::symbol {
class Symbolizer;
}

namespace flamewire::server {

// Limits of one session.
struct SessionLimits {
    profile::StoreLimits store;                            // for memory
    std::uint64_t stream_bytes = std::uint64_t{32} << 30;  // for its file, while it is recorded
};

// How long a session whose agent is disconnected counts as waiting for it.
inline constexpr std::chrono::seconds reconnect_timeout{120};

// Progress of fetching a module's file from the agent, or its debug info from a debuginfod server.
struct ModuleFetch {
    enum class State : std::uint8_t { asked, arriving, arrived, refused, interrupted };
    State state = State::asked;
    std::uint64_t got = 0, total = 0;  // bytes; total 0: not known yet
    std::string problem;               // refused: one sentence with the remedy
    std::string module{};              // file name of the module, if an agent sends it
};

class Session {
public:
    // Creates a session that is written to `stream_path`, whose directory must exist. `owner_key`: id of the agent's
    // pairing key. It is stored in the stream, and only this key may continue the session. Empty: any accepted agent
    // may.
    static Result<std::shared_ptr<Session>> create(std::string id, std::string stream_path,
                                                   const wire::RecordingId& recording, SessionLimits limits,
                                                   const std::string& owner_key = {});
    // Loads a session from disk. A notice reports its unreadable parts; invalid: nothing is readable.
    // Calls `on_partial` periodically, the first time when there is something to show. From then on the session can be
    // queried, but the caller must not let it be continued before this returns.
    using OnPartial = std::function<void(const std::shared_ptr<Session>&)>;
    static Result<std::shared_ptr<Session>> load(std::string id, std::string stream_path, SessionLimits limits,
                                                 const OnPartial& on_partial = {});

    // The result of a frame.
    struct IngestResult {
        bool stored = false;  // false: it was here already
        bool urgent = false;  // acknowledge it without delay
        std::uint64_t seq = 0;
        std::uint64_t monotonic_ns = 0;
        std::int64_t clock_difference_ns = 0;  // arrival minus the target's wall clock: offset + latency
        std::optional<wire::AgentStats> stats;
        bool same_boot = false;  // the agent runs on this machine: no clock offset
        std::optional<wire::End> end;
    };
    // Appends one batch frame to the file, then to the store. not_found: it belongs to another recording. invalid: not
    // a batch; do not trust the connection. busy: the disk refused it and nothing was stored; retry the same frame
    // later.
    Result<IngestResult> ingest(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);
    // Stores another frame of the recording in the file as received. Health frames can then be queried. The hello of an
    // agent that reconnects marks the time in which it was disconnected.
    Result<bool> append(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);

    // Makes all appended data durable and returns the last durable seq.
    Result<std::uint64_t> sync();
    [[nodiscard]] std::uint64_t last_seq() const;
    [[nodiscard]] std::uint64_t synced_seq() const { return synced_seq_; }
    // Opens the file for appending and cuts off a torn tail. invalid: the file has other damage.
    Result<bool> make_writable();

    // Resolves pending addresses in slices. Calls `progress` after each slice that changed something.
    void symbolize(symbol::Symbolizer& symbolizer, const std::function<void()>& progress);
    // The next symbolize() resolves all frames again.
    void reset_frames();
    // Writes the resolved symbols beside the stream, for machines that can resolve fewer, unless they are written
    // already. Waits for a symbolize() that runs, which has most of them. Blocking.
    void write_symbol_cache();
    // The same, but does nothing while symbolize() runs: call it again after that.
    void try_write_symbol_cache();
    // Resolving its symbols threw an exception. Sets a notice with the reason, which stays until resolving succeeds.
    void symbolization_failed(const std::string& why);
    [[nodiscard]] std::size_t unresolved_kernel() const { return unresolved_kernel_; }
    // By module id. A module without a report is missing.
    [[nodiscard]] std::map<profile::ModuleId, symbol::ModuleReport> module_reports() const;

    // Modules that have samples but no good symbols here, and whose file on the target may have more.
    struct WantedModule {
        profile::ModuleId id = 0;
        symbol::ModuleIdentity identity;
        bool no_executable = false;  // the executable or library with its code is missing here, too
    };
    [[nodiscard]] std::vector<WantedModule> wanted_modules() const;
    void set_fetch(profile::ModuleId module, ModuleFetch fetch);
    [[nodiscard]] std::map<profile::ModuleId, ModuleFetch> fetches() const;
    // Modules that have samples and a build-id, but no debug info on this machine.
    [[nodiscard]] std::vector<WantedModule> missing_debug_info() const;
    // A source file that the profile names has arrived, or is known to be unavailable: views must reload.
    void source_changed();
    // Like fetches(), for debuginfod servers.
    void set_debug_fetch(profile::ModuleId module, ModuleFetch fetch);
    [[nodiscard]] std::map<profile::ModuleId, ModuleFetch> debug_fetches() const;

    // Runs `query` on the store in parallel with other queries. A query must not start another one on this session. It
    // can block behind a batch that waits for another query, so do not call it on the io thread.
    template <class Query>
    auto read(Query query) const {
        const std::shared_lock lock(store_mutex_);
        return query(store_);
    }

    // Health of its machine during the recording.
    [[nodiscard]] const HealthHistory& health() const { return health_; }

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] const wire::RecordingId& recording() const { return recording_; }
    // Id of the pairing key of the agent that began it. Empty: not encrypted, or not from an agent.
    [[nodiscard]] const std::string& owner_key() const { return owner_key_; }
    [[nodiscard]] const std::string& stream_path() const { return stream_path_; }
    // A snapshot.
    [[nodiscard]] SessionInfo info() const;
    [[nodiscard]] SessionState state() const;
    // Time of ms 0.
    [[nodiscard]] std::uint64_t start_ns() const;

    void attach_agent(const std::string& address);
    void detach_agent();
    // An imported session: without an agent it has ended.
    void set_imported();
    void set_paused(bool paused);
    [[nodiscard]] bool attached() const { return attached_; }
    [[nodiscard]] bool ended() const { return ended_; }
    // Its file has not been read to the end yet.
    [[nodiscard]] bool reading() const { return reading_; }
    // An agent is connected and sends more.
    [[nodiscard]] bool receiving() const { return attached_ && !ended_; }
    // Sets a notice of the server, which replaces an older one with the same code. An empty text removes it.
    void set_notice(const std::string& code, const std::string& text, const std::string& remedy);

    // Sets the label that info() returns. The catalog stores it on disk.
    void set_label(Label label);

    // Recomputes what info() returns. `thorough`: including what requires a pass over the rows.
    void publish(bool thorough);

    // For the owner: at most one symbol job is queued.
    std::atomic<bool> symbols_queued{false};
    std::atomic<std::int64_t> last_used_ns{0};

private:
    Session(std::string id, std::string stream_path, SessionLimits limits);
    Result<bool> read_stream(const std::function<void(const Session&)>& on_partial);
    void replay_record(const wire::SoundRecord& record);
    // The origin of a frame, which determines how far its arrival time can be trusted.
    enum class Origin : std::uint8_t { link, file, after_damage };
    Result<IngestResult> ingest_locked(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns,
                                       Origin origin);
    void publish_damage();
    Result<bool> write_record(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);
    void load_symbol_cache();
    void write_symbol_cache_locked();  // under symbols_mutex_
    void symbolize_module(symbol::Symbolizer& symbolizer, const profile::PendingModule& module,
                          const symbol::ModuleIdentity& identity);
    std::vector<WantedModule> listed(const std::map<profile::ModuleId, WantedModule>& modules) const;
    void update_clock(const wire::Batch& batch, std::int64_t arrival_ns, Origin origin);
    void record_frame(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);
    void fill_from_store(SessionInfo& info, bool thorough);
    [[nodiscard]] SessionState state_locked() const;  // under info_mutex_

    const std::string id_, stream_path_;
    const std::uint64_t max_stream_bytes_;
    wire::RecordingId recording_{};
    std::string owner_key_;              // like recording_: constant once part of the session can be shown
    bool first_record_ = true;           // of the file
    bool stream_full_reported_ = false;  // already reported

    // Ingestion: one frame at a time.
    std::mutex ingest_mutex_;
    std::optional<wire::SessionWriter> writer_;
    Sequence sequence_;
    wire::EventPeriods periods_;
    profile::GapRepair repair_;
    FileDamage damage_;
    std::uint64_t last_batch_ns_ = 0;  // when the last batch was closed, on the target's clock
    std::uint64_t refused_batches_ = 0;
    std::atomic<std::uint64_t> appended_seq_{0}, synced_seq_{0};
    std::atomic<std::uint64_t> size_bytes_{0};
    std::atomic<std::uint64_t> first_row_ns_{
        0};  // earliest bucket ever seen: ms 0 of the session, whatever is dropped later

    mutable FairSharedMutex store_mutex_;
    profile::Store store_;

    HealthHistory health_;

    std::mutex symbols_mutex_;  // one resolver at a time
    std::uint64_t symbol_generation_ = 0;
    std::optional<std::vector<profile::CachedModule>>
        symbol_cache_;                      // as on disk; not read before the first symbolize()
    bool symbol_cache_dirty_ = false;       // since they were last written
    bool symbol_cache_unreadable_ = false;  // do not overwrite the file then
    std::atomic<std::size_t> unresolved_kernel_{0};

    mutable std::mutex info_mutex_;
    SessionInfo info_;
    std::map<profile::ModuleId, symbol::ModuleReport> reports_;
    std::map<profile::ModuleId, WantedModule> wanted_, missing_debug_info_;
    std::map<profile::ModuleId, ModuleFetch> fetches_, debug_fetches_;
    std::vector<wire::Notice> server_notices_, damage_notices_;
    std::int64_t clock_difference_ns_ = 0;  // minimum so far
    std::int64_t realtime_minus_monotonic_ns_ = 0;
    std::uint64_t last_closed_ns_ = 0;  // of the most recent batch, on the target's clock
    bool clock_known_ = false, clock_difference_known_ = false;
    std::chrono::steady_clock::time_point thorough_at_{};
    std::chrono::steady_clock::time_point detached_at_{};
    bool imported_ = false;
    std::int64_t last_arrival_ns_ = 0;

    std::atomic<bool> attached_{false}, paused_{false}, ended_{false}, reading_{false};
};

// What a user can do if a session cannot be written. Empty: no known remedy.
std::string_view disk_remedy(int errno_value);
// The error with that remedy appended.
Error with_disk_remedy(Error error);

// This machine's boot id. Empty if it cannot be read.
const std::string& own_boot_id();

}  // namespace flamewire::server
