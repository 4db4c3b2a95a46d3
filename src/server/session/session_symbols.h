// The symbols of a session. The symbolizer finds them, and they are stored in the symbol cache beside the stream. The
// cached ones are used where the symbolizer finds less. Also what is fetched for modules that have none. Thread-safe:
// resolve_mutex_ admits one resolver at a time and protects the cache; the mutexes of SessionStore and SessionStatus are
// locked after it. mutex_ protects the lists by module, and nothing else is locked while it is held.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "profile/store/model.h"
#include "profile/symbols/symbol_cache.h"
#include "server/session/session_status.h"
#include "server/session/session_store.h"
#include "symbol/types/module_identity.h"
#include "symbol/types/module_report.h"

namespace flamewire::symbol {
class Symbolizer;
}

namespace flamewire::server {

// Progress of fetching a module's file from the agent, or its debug info from a debuginfod server.
struct ModuleFetch {
    enum class State : std::uint8_t { asked, arriving, arrived, refused, interrupted };
    State state = State::asked;
    std::uint64_t got = 0, total = 0;  // bytes; total 0: not known yet
    std::string problem;               // refused: one sentence with the remedy
    std::string module{};              // file name of the module, if an agent sends it
};

// A module that has samples, and whose file elsewhere may have more symbols than what is here.
struct WantedModule {
    profile::ModuleId id = 0;
    symbol::ModuleIdentity identity;
    bool no_executable = false;  // the executable or library with its code is missing here, too
};

class SessionSymbols {
public:
    SessionSymbols(std::string cache_path, SessionStore& store, SessionStatus& status)
        : cache_path_(std::move(cache_path)), store_(store), status_(status) {}

    // Resolves pending addresses in slices. Calls `progress` after each slice that changed something.
    void symbolize(symbol::Symbolizer& symbolizer, const std::function<void()>& progress);
    // The next symbolize() resolves all frames again.
    void reset();
    // Resolving threw an exception. Sets a notice with the reason, which stays until resolving succeeds.
    void failed(const std::string& why);

    // Writes the resolved symbols beside the stream, for machines that can resolve fewer, unless they are written
    // already. Waits for a symbolize() that runs, which has most of them. Blocking.
    void write_cache();
    // The same, but does nothing while symbolize() runs: call it again after that.
    void try_write_cache();

    [[nodiscard]] std::size_t unresolved_kernel() const { return unresolved_kernel_; }
    // By module id. A module without a report is missing.
    [[nodiscard]] std::map<profile::ModuleId, symbol::ModuleReport> reports() const;
    // Modules that have samples but no good symbols here, and whose file on the target may have more.
    [[nodiscard]] std::vector<WantedModule> wanted_modules() const;
    // Modules that have samples and a build-id, but no debug info on this machine.
    [[nodiscard]] std::vector<WantedModule> missing_debug_info() const;

    // What agents send.
    void set_fetch(profile::ModuleId module, ModuleFetch fetch);
    [[nodiscard]] std::map<profile::ModuleId, ModuleFetch> fetches() const;
    // What debuginfod servers send.
    void set_debug_fetch(profile::ModuleId module, ModuleFetch fetch);
    [[nodiscard]] std::map<profile::ModuleId, ModuleFetch> debug_fetches() const;
    // A source file that the profile names has arrived, or is known to be unavailable: views must reload.
    void source_changed();

private:
    void load_cache();
    void write_cache_locked();  // under resolve_mutex_
    void symbolize_module(symbol::Symbolizer& symbolizer, const profile::PendingModule& module,
                          const symbol::ModuleIdentity& identity);
    // Resolves the addresses of a module. `cached`: may be null.
    void resolve_slices(symbol::Symbolizer& symbolizer, const profile::PendingModule& module,
                        const symbol::ModuleIdentity& identity, const profile::CachedModule* cached,
                        bool cached_is_better);
    std::vector<WantedModule> listed(const std::map<profile::ModuleId, WantedModule>& modules) const;

    const std::string cache_path_;
    SessionStore& store_;
    SessionStatus& status_;

    std::mutex resolve_mutex_;
    std::uint64_t generation_ = 0;                             // of the symbolizer
    std::optional<std::vector<profile::CachedModule>> cache_;  // as on disk; not read before the first symbolize()
    bool cache_dirty_ = false;                                 // changed since it was last written
    bool cache_unreadable_ = false;                            // do not overwrite the file then
    std::atomic<std::size_t> unresolved_kernel_{0};

    mutable std::mutex mutex_;
    std::map<profile::ModuleId, symbol::ModuleReport> reports_;
    std::map<profile::ModuleId, WantedModule> wanted_, missing_debug_info_;
    std::map<profile::ModuleId, ModuleFetch> fetches_, debug_fetches_;
};

}  // namespace flamewire::server
