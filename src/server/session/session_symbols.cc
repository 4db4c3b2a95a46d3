#include "server/session/session_symbols.h"

#include <fmt/format.h>
#include <system_error>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "server/limits.h"
#include "symbol/symbolizer.h"

namespace flamewire::server {
namespace {

// Addresses per module and lock. Between slices, queries and batches get a turn and the page gets its first symbols.
constexpr std::size_t symbol_slice = 4096;

// If a file of the same size is used here, it is the target's own file, and the agent has nothing better.
bool is_wanted(const symbol::ModuleIdentity& module, const symbol::ModuleReport& report) {
    if (module.kind != symbol::ModuleKind::file || report.quality >= symbol::Quality::symbols) return false;
    if (report.file.empty()) return true;
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(report.file, error);
    return error || size != module.size;
}

bool is_debug_info_missing(const symbol::ModuleIdentity& module, const symbol::ModuleReport& report) {
    const bool has_file = module.kind == symbol::ModuleKind::file || module.kind == symbol::ModuleKind::kernel;
    return has_file && !module.build_id.empty() && report.quality < symbol::Quality::debug_info;
}

// Files that agents send have holes in place of the code.
bool is_executable_missing(const symbol::ModuleIdentity& module, const symbol::ModuleReport& report) {
    return module.kind == symbol::ModuleKind::file && (report.file.empty() || report.found == symbol::FoundBy::agent);
}

// One slice of a module's pending addresses.
profile::PendingModule slice_of(const profile::PendingModule& module, std::size_t begin, std::size_t end) {
    const auto from = static_cast<std::ptrdiff_t>(begin), to = static_cast<std::ptrdiff_t>(end);
    return {module.module,
            {module.locations.begin() + from, module.locations.begin() + to},
            {module.addresses.begin() + from, module.addresses.begin() + to}};
}

}  // namespace

void SessionSymbols::symbolize(symbol::Symbolizer& symbolizer, const std::function<void()>& progress) {
    const std::lock_guard resolve_lock(resolve_mutex_);
    const std::uint64_t generation = symbolizer.generation();
    if (generation != generation_) {
        if (generation_ != 0) reset();
        generation_ = generation;
    }
    std::vector<profile::PendingModule> pending;
    std::vector<symbol::ModuleIdentity> identities;
    store_.change([&](profile::Store& store) {
        pending = store.take_pending();
        for (const auto& module : pending) identities.push_back(store.modules()[module.module].identity);
    });
    if (!pending.empty()) load_cache();
    for (std::size_t i = 0; i < pending.size(); ++i) symbolize_module(symbolizer, pending[i], identities[i]);
    unresolved_kernel_ = store_.read([](const profile::Store& store) { return store.unresolved_kernel_locations(); });
    if (pending.empty()) return;
    cache_dirty_ = true;
    status_.set_notice("symbols-failed", "", "");
    status_.publish(true);
    progress();
}

void SessionSymbols::resolve_slices(symbol::Symbolizer& symbolizer, const profile::PendingModule& module,
                                    const symbol::ModuleIdentity& identity, const profile::CachedModule* cached,
                                    bool cached_is_better) {
    for (std::size_t at = 0; at < module.locations.size(); at += symbol_slice) {
        const profile::PendingModule slice = slice_of(module, at, std::min(module.locations.size(), at + symbol_slice));
        symbol::Resolved resolved = symbolizer.resolve(identity, slice.addresses);
        if (cached != nullptr) {
            const symbol::Resolved cached_frames = cached->resolve(slice.addresses);
            resolved = cached_is_better ? profile::coalesce(cached_frames, resolved)
                                        : profile::coalesce(resolved, cached_frames);
        }
        store_.change([&](profile::Store& store) { store.set_frames(slice, resolved); });
    }
}

// A result from this machine wins over a cached one of equal quality. Its files may be newer than what the other
// machine used, and they also have source and code.
void SessionSymbols::symbolize_module(symbol::Symbolizer& symbolizer, const profile::PendingModule& module,
                                      const symbol::ModuleIdentity& identity) {
    symbol::ModuleReport report = symbolizer.report(identity);
    const profile::CachedModule* cached = profile::find_cached(*cache_, identity);
    const bool cached_is_better = cached != nullptr && cached->report.quality > report.quality;
    resolve_slices(symbolizer, module, identity, cached, cached_is_better);
    if (store_.read([](const profile::Store& store) { return store.inlined_left_out(); })) {
        limit_reached(Limit::table_bytes);
        status_.set_notice("inlined-left-out",
                           "Names and stacks of this session fill the memory that it may use: of some addresses the "
                           "inlined functions are not shown.",
                           "--table-memory SIZE of flamewire-server, then open it again");
    }
    if (!cached_is_better)
        report = symbolizer.report(identity);  // the lookup may have found that its debug info is too large
    const bool no_executable = is_executable_missing(identity, report);
    if (cached_is_better) {
        std::vector<std::string> tried = std::move(report.tried);
        report = cached->report;
        report.tried = std::move(tried);
        report.from_cache = true;
    }
    const bool wanted = is_wanted(identity, report), lacks = is_debug_info_missing(identity, report);
    const std::lock_guard lock(mutex_);
    if (wanted)
        wanted_[module.module] = {module.module, identity};
    else
        wanted_.erase(module.module);
    if (lacks)
        missing_debug_info_[module.module] = {module.module, identity, no_executable};
    else
        missing_debug_info_.erase(module.module);
    reports_[module.module] = std::move(report);
}

void SessionSymbols::failed(const std::string& why) {
    status_.set_notice("symbols-failed", fmt::format("Not all names of this session could be looked up: {}.", why),
                       "free memory where the server runs, then open the session again");
}

void SessionSymbols::load_cache() {
    if (cache_) return;
    cache_.emplace();
    const auto bytes = read_file(cache_path_, profile::max_symbol_cache_bytes);
    if (!bytes && bytes.error().code == ErrorCode::not_found) return;
    auto modules = bytes ? profile::decode_symbol_cache(as_bytes_view(*bytes)) : std::unexpected(bytes.error());
    if (modules) {
        cache_ = std::move(*modules);
        return;
    }
    cache_unreadable_ = true;
    status_.set_notice("kept-symbols",
                       fmt::format("The symbols that the session keeps are not used: {}.", modules.error().message),
                       "delete " + cache_path_ + ": it is written again from the files found here");
}

void SessionSymbols::write_cache() {
    const std::lock_guard resolve_lock(resolve_mutex_);
    write_cache_locked();
}

void SessionSymbols::try_write_cache() {
    const std::unique_lock resolve_lock(resolve_mutex_, std::try_to_lock);
    if (resolve_lock) write_cache_locked();
}

void SessionSymbols::write_cache_locked() {
    if (!cache_dirty_ || cache_unreadable_ || status_.reading()) return;
    cache_dirty_ = false;
    std::vector<profile::CachedModule> modules;
    const auto found = reports();
    for (profile::SymbolizedModule& named :
         store_.read([](const profile::Store& store) { return profile::symbolized_modules(store); })) {
        const auto report = found.find(named.module);
        if (report == found.end()) continue;
        named.cached.report = report->second;
        named.cached.report.from_cache = false;
        modules.push_back(std::move(named.cached));
    }
    if (modules.empty()) return;
    const profile::EncodedSymbolCache encoded = profile::encode_symbol_cache(modules);
    cache_ = std::move(modules);
    if (const auto before = read_file(cache_path_, profile::max_symbol_cache_bytes); before && *before == encoded.bytes)
        return;
    Result<bool> written = replace_file(cache_path_, as_bytes_view(encoded.bytes));
    std::string problem;
    if (!written)
        problem = fmt::format("The symbols of this session are not kept with it: {}.", written.error().message);
    else if (encoded.left_out > 0)
        problem = fmt::format("The symbols of {} modules are not kept with this session: they have more than {} MiB.",
                              encoded.left_out, profile::max_symbol_cache_bytes >> 20);
    status_.set_notice("kept-symbols", problem, written ? "" : "free some space under the data directory");
}

void SessionSymbols::reset() {
    store_.change([](profile::Store& store) { store.forget_frames({}); });
    const std::lock_guard lock(mutex_);
    reports_.clear();
    wanted_.clear();
    missing_debug_info_.clear();
}

std::map<profile::ModuleId, symbol::ModuleReport> SessionSymbols::reports() const {
    const std::lock_guard lock(mutex_);
    return reports_;
}

std::vector<WantedModule> SessionSymbols::listed(const std::map<profile::ModuleId, WantedModule>& modules) const {
    const std::lock_guard lock(mutex_);
    std::vector<WantedModule> list;
    list.reserve(modules.size());
    for (const auto& [id, module] : modules) list.push_back(module);
    return list;
}

std::vector<WantedModule> SessionSymbols::wanted_modules() const { return listed(wanted_); }

std::vector<WantedModule> SessionSymbols::missing_debug_info() const { return listed(missing_debug_info_); }

void SessionSymbols::set_fetch(profile::ModuleId module, ModuleFetch fetch) {
    const std::lock_guard lock(mutex_);
    fetches_[module] = std::move(fetch);
}

std::map<profile::ModuleId, ModuleFetch> SessionSymbols::fetches() const {
    const std::lock_guard lock(mutex_);
    return fetches_;
}

void SessionSymbols::set_debug_fetch(profile::ModuleId module, ModuleFetch fetch) {
    const std::lock_guard lock(mutex_);
    debug_fetches_[module] = std::move(fetch);
}

std::map<profile::ModuleId, ModuleFetch> SessionSymbols::debug_fetches() const {
    const std::lock_guard lock(mutex_);
    return debug_fetches_;
}

void SessionSymbols::source_changed() {
    store_.change([](profile::Store& store) { store.touch(); });
    status_.publish(true);
}

}  // namespace flamewire::server
