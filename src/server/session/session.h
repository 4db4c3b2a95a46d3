// One recording: its stream on disk, its store in memory, its symbols. Live and replay are one code path: take() gets
// the same frames, from the link or from the file. Thread-safe: frames go in one caller at a time, queries share,
// symbols are resolved without holding up either.
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
#include "profile/symbols/kept_symbols.h"
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

// What one session takes at most.
struct SessionLimits {
    profile::StoreLimits store;                            // of memory
    std::uint64_t stream_bytes = std::uint64_t{32} << 30;  // of its file, while it is recorded
};

// How long a session whose agent is away counts as waiting for it.
inline constexpr std::chrono::seconds waiting_time{120};

// How far the file of a module is on its way from the agent, or its debug info from a debuginfod server.
struct ModuleFetch {
    enum class State : std::uint8_t { asked, arriving, arrived, refused, interrupted };
    State state = State::asked;
    std::uint64_t got = 0, total = 0;  // bytes; total 0: not known yet
    std::string problem;               // refused: one sentence with the remedy
    std::string module{};              // name of its file, of what an agent sends
};

class Session {
public:
    // A new session, written to `stream_path` (whose directory exists). `made_by`: id of the pairing key of its agent,
    // which is kept in the stream and alone may continue it; empty: whoever is let in.
    static Result<std::shared_ptr<Session>> create(std::string id, std::string stream_path,
                                                   const wire::RecordingId& recording, SessionLimits limits,
                                                   const std::string& made_by = {});
    // A session on disk. A notice reports its unreadable parts; invalid if nothing is readable.
    // `more` is called every now and then on the way, for the first time when there is something to show: the session
    // can be queried from then on, but not continued before this returns. Whoever loads it sees to that.
    using More = std::function<void(const std::shared_ptr<Session>&)>;
    static Result<std::shared_ptr<Session>> load(std::string id, std::string stream_path, SessionLimits limits,
                                                 const More& more = {});

    // What became of a frame.
    struct Taken {
        bool stored = false;  // false: it was here already
        bool urgent = false;  // the agent should not wait for its acknowledgement
        std::uint64_t seq = 0;
        std::uint64_t monotonic_ns = 0;
        std::int64_t clock_difference_ns = 0;  // arrival minus the target's wall clock: offset + latency
        std::optional<wire::AgentStats> stats;
        bool same_boot = false;  // the agent runs on this machine: no clock offset
        std::optional<wire::End> end;
    };
    // Appends one batch frame to the file, then to the store. not_found: of another recording; invalid: no batch (the
    // connection is not to be trusted); busy: the disk refused it (try the same frame again later; nothing was taken).
    Result<Taken> take(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);
    // Other frames that belong to the recording: kept in the file as received. Health can be asked for; the hello of an
    // agent that comes back marks the time in which it was away.
    Result<bool> keep(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);

    // Makes what was appended so far durable; the answer is the last seq that is.
    Result<std::uint64_t> sync();
    [[nodiscard]] std::uint64_t last_seq() const;
    [[nodiscard]] std::uint64_t synced_seq() const { return synced_seq_; }
    // Opens the file for appending, cutting a torn tail. invalid if the file is damaged beyond its torn tail.
    Result<bool> make_writable();

    // Resolves what has no frames yet, in slices; calls `progress` after each that changed something.
    void symbolize(symbol::Symbolizer& symbolizer, const std::function<void()>& progress);
    // All frames are to be resolved anew by the next symbolize().
    void forget_frames();
    // Writes what was found beside the stream when it is not there yet, for machines that find less. Nothing while
    // symbolize() runs: call it again after that. Blocking.
    void keep_symbols();
    // Naming its addresses ended with an exception: a notice with the reason, until it succeeds.
    void symbols_failed(const std::string& why);
    [[nodiscard]] std::size_t unresolved_kernel() const { return unresolved_kernel_; }
    // Of module ids; absent while nothing is known.
    [[nodiscard]] std::map<profile::ModuleId, symbol::ModuleReport> module_reports() const;

    // Modules that have samples and nothing here that names them well, and whose file on the target may have more.
    struct WantedModule {
        profile::ModuleId id = 0;
        symbol::ModuleIdentity identity;
        bool no_program = false;  // nor is the program or library here that has its code
    };
    [[nodiscard]] std::vector<WantedModule> wanted_modules() const;
    void set_fetch(profile::ModuleId module, ModuleFetch fetch);
    [[nodiscard]] std::map<profile::ModuleId, ModuleFetch> fetches() const;
    // Modules that have samples and a build-id, but no debug info here.
    [[nodiscard]] std::vector<WantedModule> lacking_debug_info() const;
    // A source file that it names is here now, or surely is not: views look again.
    void source_came();
    // The same as fetches(), of debuginfod servers.
    void set_debug_fetch(profile::ModuleId module, ModuleFetch fetch);
    [[nodiscard]] std::map<profile::ModuleId, ModuleFetch> debug_fetches() const;

    // Runs `query` on the store, shared with other queries; a query must not begin another one of this session. It may
    // wait for a batch that waits for another query: not on the io thread.
    template <class Query>
    auto read(Query query) const {
        const std::shared_lock lock(store_mutex_);
        return query(store_);
    }

    // What its machine told of itself meanwhile.
    [[nodiscard]] const HealthHistory& health() const { return health_; }

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] const wire::RecordingId& recording() const { return recording_; }
    // Id of the pairing key of the agent that began it; empty: not encrypted, or not from an agent.
    [[nodiscard]] const std::string& made_by() const { return made_by_; }
    [[nodiscard]] const std::string& stream_path() const { return stream_path_; }
    // As of now.
    [[nodiscard]] SessionInfo info() const;
    [[nodiscard]] SessionState state() const;
    // Of ms 0.
    [[nodiscard]] std::uint64_t start_ns() const;

    void attach_agent(const std::string& address);
    void detach_agent();
    void set_paused(bool paused);
    [[nodiscard]] bool attached() const { return attached_; }
    [[nodiscard]] bool ended() const { return ended_; }
    // Its file is not read to the end yet.
    [[nodiscard]] bool reading() const { return reading_; }
    // More is coming from an agent.
    [[nodiscard]] bool fed() const { return attached_ && !ended_; }
    // A notice of the server, replacing an older one with the same code; empty text removes it.
    void set_notice(const std::string& code, const std::string& text, const std::string& remedy);

    // What info() says of it from now on; the catalog keeps it on disk.
    void set_label(Label label);

    // Computes what info() says anew; `thorough` with what costs a pass over the rows.
    void publish(bool thorough);

    // Bookkeeping of the owner: one symbol job at a time is queued.
    std::atomic<bool> symbols_queued{false};
    std::atomic<std::int64_t> last_used_ns{0};

private:
    Session(std::string id, std::string stream_path, SessionLimits limits);
    Result<bool> read_stream(const std::function<void(const Session&)>& more);
    void take_record(const wire::SoundRecord& record);
    // Where a frame comes from, and what its time of arrival is worth.
    enum class Origin : std::uint8_t { link, file, behind_damage };
    Result<Taken> take_locked(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns, Origin origin);
    void state_damage();
    Result<bool> append(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);
    void read_kept_symbols();
    void symbolize_module(symbol::Symbolizer& symbolizer, const profile::PendingModule& module,
                          const symbol::ModuleIdentity& identity);
    std::vector<WantedModule> listed(const std::map<profile::ModuleId, WantedModule>& modules) const;
    void learn_clock(const wire::Batch& batch, std::int64_t arrival_ns, Origin origin);
    void learn_from_kept(wire::Flag flag, std::string_view payload, std::int64_t arrival_ns);
    void fill_from_store(SessionInfo& info, bool thorough);
    [[nodiscard]] SessionState state_locked() const;  // under info_mutex_

    const std::string id_, stream_path_;
    const std::uint64_t max_stream_bytes_;
    wire::RecordingId recording_{};
    std::string made_by_;       // as recording_: does not change once there is something to show
    bool first_record_ = true;  // of the file
    bool stream_full_ = false;  // said

    // Ingestion: one frame at a time.
    std::mutex ingest_mutex_;
    std::optional<wire::SessionWriter> writer_;
    Sequence sequence_;
    wire::EventPeriods periods_;
    profile::GapRepair repair_;
    FileDamage damage_;
    std::uint64_t known_until_ns_ = 0;  // when the last batch was closed
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
    std::optional<std::vector<profile::KeptModule>> kept_;  // as on disk; not read before the first symbolize()
    bool symbols_changed_ = false;                          // since they were kept
    bool kept_unreadable_ = false;                          // then it is left as it is
    std::atomic<std::size_t> unresolved_kernel_{0};

    mutable std::mutex info_mutex_;
    SessionInfo info_;
    std::map<profile::ModuleId, symbol::ModuleReport> reports_;
    std::map<profile::ModuleId, WantedModule> wanted_, lacking_debug_info_;
    std::map<profile::ModuleId, ModuleFetch> fetches_, debug_fetches_;
    std::vector<wire::Notice> own_notices_, damage_notices_;
    std::int64_t clock_difference_ns_ = 0;  // smallest seen
    std::int64_t realtime_minus_monotonic_ns_ = 0;
    std::uint64_t last_closed_ns_ = 0;  // of the batch that came last, on the target's clock
    bool clock_known_ = false, clock_difference_known_ = false;
    std::chrono::steady_clock::time_point thorough_at_{};
    std::chrono::steady_clock::time_point away_since_{};
    std::int64_t last_arrival_ns_ = 0;

    std::atomic<bool> attached_{false}, paused_{false}, ended_{false}, reading_{false};
};

// What a person can do about a session that cannot be written; empty: nothing that is known.
std::string_view disk_remedy(int errno_value);
// The error with that behind its sentence.
Error with_disk_remedy(Error error);

// This machine's boot id; empty when it cannot be read.
const std::string& own_boot_id();

}  // namespace flamewire::server
