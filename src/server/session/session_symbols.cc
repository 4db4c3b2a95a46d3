// The symbols of a session. The symbolizer finds them, and they are stored beside the stream. The stored ones are used
// where the symbolizer finds less.
#include <fmt/format.h>
#include <system_error>

#include <filesystem>

#include "base/file.h"
#include "server/limits.h"
#include "server/session/session.h"
#include "server/session/side_files.h"
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

void Session::symbolize(symbol::Symbolizer& symbolizer, const std::function<void()>& progress) {
    const std::lock_guard symbols_lock(symbols_mutex_);
    const std::uint64_t generation = symbolizer.generation();
    if (generation != symbol_generation_) {
        if (symbol_generation_ != 0) reset_frames();
        symbol_generation_ = generation;
    }
    std::vector<profile::PendingModule> pending;
    std::vector<symbol::ModuleIdentity> identities;
    {
        const std::unique_lock lock(store_mutex_);
        pending = store_.take_pending();
        for (const auto& module : pending) identities.push_back(store_.modules()[module.module].identity);
    }
    if (!pending.empty()) load_symbol_cache();
    for (std::size_t i = 0; i < pending.size(); ++i) symbolize_module(symbolizer, pending[i], identities[i]);
    unresolved_kernel_ = read([](const profile::Store& store) { return store.unresolved_kernel_locations(); });
    if (pending.empty()) return;
    symbol_cache_dirty_ = true;
    set_notice("symbols-failed", "", "");
    publish(true);
    progress();
}

// A result from this machine wins over a stored one of equal quality. Its files may be newer than what the other
// machine used, and they also have source and code.
void Session::symbolize_module(symbol::Symbolizer& symbolizer, const profile::PendingModule& module,
                               const symbol::ModuleIdentity& identity) {
    symbol::ModuleReport report = symbolizer.report(identity);
    const profile::CachedModule* cached = profile::find_cached(*symbol_cache_, identity);
    const bool cached_is_better = cached != nullptr && cached->report.quality > report.quality;
    for (std::size_t at = 0; at < module.locations.size(); at += symbol_slice) {
        const profile::PendingModule slice = slice_of(module, at, std::min(module.locations.size(), at + symbol_slice));
        symbol::Resolved resolved = symbolizer.resolve(identity, slice.addresses);
        if (cached != nullptr) {
            const symbol::Resolved cached_frames = cached->resolve(slice.addresses);
            resolved = cached_is_better ? profile::coalesce(cached_frames, resolved)
                                        : profile::coalesce(resolved, cached_frames);
        }
        const std::unique_lock lock(store_mutex_);
        store_.set_frames(slice, resolved);
    }
    if (read([](const profile::Store& store) { return store.inlined_left_out(); })) {
        limit_reached(Limit::table_bytes);
        set_notice("inlined-left-out",
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
    const std::lock_guard lock(info_mutex_);
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

void Session::symbolization_failed(const std::string& why) {
    set_notice("symbols-failed", fmt::format("Not all names of this session could be looked up: {}.", why),
               "free memory where the server runs, then open the session again");
}

void Session::load_symbol_cache() {
    if (symbol_cache_) return;
    symbol_cache_.emplace();
    const std::string path = side_file(stream_path_, symbols_name);
    const auto bytes = read_file(path, profile::max_symbol_cache_bytes);
    if (!bytes && bytes.error().code == ErrorCode::not_found) return;
    auto modules = bytes ? profile::decode_symbol_cache(as_bytes_view(*bytes)) : std::unexpected(bytes.error());
    if (modules) {
        symbol_cache_ = std::move(*modules);
        return;
    }
    symbol_cache_unreadable_ = true;
    set_notice("kept-symbols",
               fmt::format("The symbols that the session keeps are not used: {}.", modules.error().message),
               "delete " + path + ": it is written again from the files found here");
}

void Session::write_symbol_cache() {
    const std::lock_guard symbols_lock(symbols_mutex_);
    write_symbol_cache_locked();
}

void Session::try_write_symbol_cache() {
    const std::unique_lock symbols_lock(symbols_mutex_, std::try_to_lock);
    if (symbols_lock) write_symbol_cache_locked();
}

void Session::write_symbol_cache_locked() {
    if (!symbol_cache_dirty_ || symbol_cache_unreadable_ || reading_) return;
    symbol_cache_dirty_ = false;
    std::vector<profile::CachedModule> modules;
    const auto reports = module_reports();
    for (profile::SymbolizedModule& named :
         read([](const profile::Store& store) { return profile::symbolized_modules(store); })) {
        const auto report = reports.find(named.module);
        if (report == reports.end()) continue;
        named.cached.report = report->second;
        named.cached.report.from_cache = false;
        modules.push_back(std::move(named.cached));
    }
    if (modules.empty()) return;
    const profile::EncodedSymbolCache encoded = profile::encode_symbol_cache(modules);
    symbol_cache_ = std::move(modules);
    const std::string path = side_file(stream_path_, symbols_name);
    if (const auto before = read_file(path, profile::max_symbol_cache_bytes); before && *before == encoded.bytes)
        return;
    Result<bool> written = replace_file(path, as_bytes_view(encoded.bytes));
    std::string problem;
    if (!written)
        problem = fmt::format("The symbols of this session are not kept with it: {}.", written.error().message);
    else if (encoded.left_out > 0)
        problem = fmt::format("The symbols of {} modules are not kept with this session: they have more than {} MiB.",
                              encoded.left_out, profile::max_symbol_cache_bytes >> 20);
    set_notice("kept-symbols", problem, written ? "" : "free some space under the data directory");
}

void Session::reset_frames() {
    {
        const std::unique_lock lock(store_mutex_);
        store_.forget_frames({});
    }
    const std::lock_guard lock(info_mutex_);
    reports_.clear();
    wanted_.clear();
    missing_debug_info_.clear();
}

std::vector<Session::WantedModule> Session::listed(const std::map<profile::ModuleId, WantedModule>& modules) const {
    const std::lock_guard lock(info_mutex_);
    std::vector<WantedModule> list;
    list.reserve(modules.size());
    for (const auto& [id, module] : modules) list.push_back(module);
    return list;
}

std::vector<Session::WantedModule> Session::wanted_modules() const { return listed(wanted_); }

std::vector<Session::WantedModule> Session::missing_debug_info() const { return listed(missing_debug_info_); }

}  // namespace flamewire::server
