#include "server/session/catalog.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "server/session/archive.h"
#include "server/session/disk_remedy.h"
#include "server/session/session_name.h"
#include "server/session/side_files.h"
#include "server/session/staging_folder.h"

namespace flamewire::server {
namespace fs = std::filesystem;
namespace {

// Ended sessions that stay in memory for further requests.
constexpr std::size_t max_idle_sessions = 4;

// The error with which a server exits that cannot store anything.
Error not_writable(const std::string& path, int errno_value) {
    Error error = fail_errno("cannot write " + path, errno_value).error();
    if (errno_value == ENOSPC)
        error.message += ": free some space there, or name another place by --data-dir";
    else
        error.message += ": make it writable for this user, or name another place by --data-dir";
    return error;
}

Result<bool> make_directory(const std::string& path) {
    if (const auto made = make_private_folders(path); !made)
        return std::unexpected(not_writable(path, made.error().errno_value));
    return true;
}

std::unexpected<Error> no_session(std::string_view id) {
    return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
}

// Deletes the files of a session.
std::error_code remove_files(const CatalogEntry& entry) {
    std::error_code error;
    const fs::path stream(entry.stream_path);
    if (stream.filename() == stream_name) {
        fs::remove_all(stream.parent_path(), error);
        return error;
    }
    fs::remove(stream, error);
    std::error_code ignored;
    fs::remove(entry.sidecar_path, ignored);
    if (error) return error;
    for (const std::string_view name : portable_files) fs::remove(side_file(entry.stream_path, name), ignored);
    fs::remove(side_file(entry.stream_path, imported_name), ignored);
    return error;
}

}  // namespace

Result<std::unique_ptr<Catalog>> Catalog::open(const std::string& data_dir, const SessionLimits& limits, Tags tags) {
    const std::string sessions_dir = data_dir + "/sessions", lock_path = data_dir + "/lock";
    TRY(make_directory(sessions_dir));
    UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock) return std::unexpected(not_writable(lock_path, errno));
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
        return fail(
            ErrorCode::busy,
            fmt::format("another flamewire-server uses {}: stop it, or give this one its own --data-dir", data_dir));
    remove_staging_folders(data_dir);
    // Report the problem now, not when the first agent connects.
    if (::access(sessions_dir.c_str(), W_OK | X_OK) != 0) return std::unexpected(not_writable(sessions_dir, errno));
    std::unique_ptr<Catalog> catalog(new Catalog(data_dir, limits, std::move(tags), std::move(lock)));
    catalog->index_.scan();
    return catalog;
}

std::unique_ptr<Catalog> Catalog::open_read_only(const std::string& data_dir, const SessionLimits& limits) {
    std::unique_ptr<Catalog> catalog(new Catalog(data_dir, limits, {}, UniqueFd()));
    catalog->index_.scan();
    return catalog;
}

std::shared_ptr<Session> Catalog::loaded(std::string_view id) {
    auto session = opened(id);
    return session && !session->status().reading() ? session : nullptr;
}

std::shared_ptr<Session> Catalog::opened(std::string_view id) {
    const auto lock = index_.lock();
    const auto at = index_.entries(lock).find(id);
    if (at == index_.entries(lock).end() || !at->second->session) return nullptr;
    at->second->session->last_used_ns = static_cast<std::int64_t>(monotonic_ns());
    return at->second->session;
}

Result<std::shared_ptr<Session>> Catalog::get(std::string_view id, const Session::OnPartial& on_partial) {
    if (!index_.exists(id)) return no_session(id);
    const EntryPtr entry = index_.find(id);
    if (!entry) return no_session(id);
    return load(entry, on_partial);
}

Result<std::shared_ptr<Session>> Catalog::load(const EntryPtr& entry, const Session::OnPartial& on_partial) {
    const std::lock_guard loading(entry->loading);
    if (auto session = loaded(entry->id)) return session;
    const auto place = [&](const std::shared_ptr<Session>& session) {
        session->last_used_ns = static_cast<std::int64_t>(monotonic_ns());
        if (is_imported(entry->stream_path)) session->status().set_imported();
        const auto lock = index_.lock();
        // Only the sidecar has the agent's address.
        if (entry->info && !entry->info->agent.empty()) {
            session->status().attach_agent(entry->info->agent);
            session->status().detach_agent();
        }
        session->status().set_label(entry->label);
        entry->session = session;
        entry->recording = session->recording();
    };
    bool placed = false;
    auto session = TRY(Session::load(entry->id, entry->stream_path, limits_, [&](const auto& begun) {
        if (!std::exchange(placed, true)) place(begun);
        if (on_partial) on_partial(begun);
    }));
    if (!placed) place(session);
    unload_idle(max_idle_sessions);
    return session;
}

Result<std::shared_ptr<Session>> Catalog::find_recording(const wire::RecordingId& recording) {
    EntryPtr entry;
    {
        const auto lock = index_.lock();
        for (const auto& [id, candidate] : index_.entries(lock))
            if (candidate->recording == recording && !candidate->cannot_continue &&
                !is_imported(candidate->stream_path))
                entry = candidate;
    }
    if (!entry) return std::shared_ptr<Session>{};
    auto session = TRY(load(entry));
    if (auto writable = session->stream().make_writable(); !writable) {
        if (writable.error().code != ErrorCode::invalid) return std::unexpected(writable.error());
        const auto lock = index_.lock();
        entry->cannot_continue = true;
        return std::shared_ptr<Session>{};
    }
    return session;
}

Result<std::shared_ptr<Session>> Catalog::create(const wire::RecordingId& recording, std::string_view target,
                                                 const std::string& owner_key) {
    const std::string base =
        fmt::format("{}_{}", timestamped_name(target), to_hex(std::as_bytes(std::span(recording))).substr(0, 8));
    std::string id = base;
    Result<std::shared_ptr<Session>> session = fail(ErrorCode::io, "");
    EntryPtr entry;
    {
        // Create the entry's session together with the file, so that no scan mistakes the file for an ended session.
        const auto lock = index_.lock();
        for (int attempt = 2; ::mkdir((index_.sessions_dir() + "/" + id).c_str(), 0700) != 0; ++attempt) {
            if (errno != EEXIST || attempt > 100)
                return fail_errno("cannot create " + index_.sessions_dir() + "/" + id, errno);
            id = fmt::format("{}_{}", base, attempt);
        }
        const std::string directory = index_.sessions_dir() + "/" + id;
        session = Session::create(id, fmt::format("{}/{}", directory, stream_name), recording, limits_, owner_key);
        if (!session) {
            std::error_code ignored;
            fs::remove_all(directory, ignored);
            return session;
        }
        entry = CatalogIndex::make_entry(id, (*session)->stream_path());
        entry->recording = recording;
        entry->session = *session;
        index_.entries(lock)[id] = entry;
    }
    labels_.apply_default_tags(entry);
    sync_directory(index_.sessions_dir() + "/" + id);
    sync_directory(index_.sessions_dir());
    unload_idle(max_idle_sessions);
    return session;
}

Result<std::string> Catalog::import_stream(const std::string& path, std::string_view name) {
    TRY(read_recording_id(path));
    const std::string base = timestamped_name(fs::path(name).stem().string());
    std::string id = base;
    for (int attempt = 2; index_.exists(id); ++attempt) id = fmt::format("{}_{}", base, attempt);
    const std::string to = fmt::format("{}/{}.flw", index_.sessions_dir(), id), part = to + ".part";
    TRY(replace_file(side_file(to, imported_name), {}, Durable::yes));
    std::error_code error;
    fs::copy_file(path, part, fs::copy_options::overwrite_existing, error);
    // The copy has the mode of its source.
    if (!error) fs::permissions(part, fs::perms::owner_read | fs::perms::owner_write, error);
    if (!error) fs::rename(part, to, error);
    if (error) {
        std::error_code ignored;
        fs::remove(part, ignored);
        fs::remove(side_file(to, imported_name), ignored);
        return fail_errno("cannot write " + to, error.value());
    }
    sync_directory(index_.sessions_dir());
    index_.scan();
    if (const EntryPtr entry = index_.find(id)) labels_.apply_default_tags(entry);
    return id;
}

Result<std::string> Catalog::import_archive(profile::ImportSource& archive, std::string_view name) {
    const StagingFolder folder = TRY(StagingFolder::create(data_dir_));
    std::string base = TRY(read_archive(archive, folder.path()));
    const std::string stream = fmt::format("{}/{}", folder.path(), stream_name);
    TRY(read_recording_id(stream));
    TRY(replace_file(side_file(stream, imported_name), {}, Durable::yes));
    if (base.empty()) base = timestamped_name(fs::path(name).stem().string());
    std::string id = base;
    // rename() fails onto a directory that is not empty, so no session is ever replaced.
    for (int attempt = 2;
         index_.exists(id) || ::rename(folder.path().c_str(), (index_.sessions_dir() + "/" + id).c_str()) != 0;
         ++attempt) {
        if (!index_.exists(id) && errno != EEXIST && errno != ENOTEMPTY)
            return fail_errno(fmt::format("cannot write {}/{}", index_.sessions_dir(), id), errno);
        if (attempt > 1000) return fail(ErrorCode::busy, fmt::format("there are too many sessions {}", base));
        id = fmt::format("{}_{}", base, attempt);
    }
    sync_directory(index_.sessions_dir());
    index_.scan();
    return id;
}

Result<SessionInfo> Catalog::relabel(std::string_view id, const LabelChange& change) {
    const EntryPtr entry = index_.exists(id) ? index_.find(id) : nullptr;
    if (!entry) return no_session(id);
    TRY(labels_.change(entry, change));
    auto info = list_.current_info(entry, std::chrono::steady_clock::time_point::max());
    if (!info) return no_session(id);
    return *std::move(info);
}

Catalog::Default Catalog::default_session() {
    Default result;
    std::vector<std::string> attached, waiting;
    for (const auto& session : live()) (session->status().attached() ? attached : waiting).push_back(session->id());
    const auto& candidates = attached.empty() ? waiting : attached;
    if (candidates.size() == 1) result.id = candidates.front();
    if (candidates.size() > 1) result.several = candidates;
    if (candidates.empty())
        if (const auto newest = list_.search({.words = {}, .offset = 0, .limit = 1}).sessions; !newest.empty())
            result.id = newest.front().id;
    return result;
}

Result<bool> Catalog::remove(const std::string& id) {
    return remove_if_allowed(id, [](const CatalogEntry& entry) -> Result<bool> {
        if (entry.session && entry.session->status().attached() && !entry.session->status().ended())
            return fail(ErrorCode::busy, "the session is live: stop it first");
        return true;
    });
}

Result<bool> Catalog::remove_unused(const std::string& id) {
    return remove_if_allowed(id, [](const CatalogEntry& entry) -> Result<bool> {
        if (entry.label.keep || CatalogList::in_use(entry, file_status(entry.stream_path)))
            return fail(ErrorCode::busy, fmt::format("session {} is in use", entry.id));
        return true;
    });
}

Result<bool> Catalog::remove_if_allowed(const std::string& id,
                                        const std::function<Result<bool>(const CatalogEntry&)>& allowed) {
    if (!index_.exists(id)) return no_session(id);
    EntryPtr entry;
    {
        const auto lock = index_.lock();
        const auto at = index_.entries(lock).find(id);
        if (at == index_.entries(lock).end()) return no_session(id);
        TRY(allowed(*at->second));
        entry = at->second;
        index_.entries(lock).erase(at);
        index_.rescan(lock);  // if it could not be deleted, the next scan finds it again
    }
    const std::error_code error = remove_files(*entry);
    if (error)
        return std::unexpected(
            with_disk_remedy(fail_errno("cannot delete " + entry->stream_path, error.value()).error()));
    return true;
}

std::vector<std::shared_ptr<Session>> Catalog::all_loaded() {
    std::vector<std::shared_ptr<Session>> result;
    const auto lock = index_.lock();
    for (const auto& [id, entry] : index_.entries(lock))
        if (entry->session && !entry->session->status().reading()) result.push_back(entry->session);
    return result;
}

std::vector<std::shared_ptr<Session>> Catalog::live() {
    auto result = all_loaded();
    std::erase_if(result, [](const auto& session) { return session->status().state() == SessionState::ended; });
    return result;
}

void Catalog::save(Session& session) {
    const EntryPtr entry = index_.find(session.id());
    if (!entry || session.status().reading()) return;
    if (!session.status().receiving()) session.symbols().try_write_cache();
    SessionInfo info = session.info();
    if (!session.status().ended()) info.end_reason.clear();
    info.notices.erase(std::remove_if(info.notices.begin(), info.notices.end(),
                                      [](const wire::Notice& notice) { return notice.code == "disk"; }),
                       info.notices.end());
    (void)replace_file(entry->sidecar_path, as_bytes_view(encode_sidecar(info)));
    labels_.save(entry);
    const auto lock = index_.lock();
    info.label = entry->label;
    info.retention.reset();
    entry->info = std::move(info);
    entry->search_text.clear();
}

void Catalog::unload_idle(std::size_t keep) {
    // A session that was just handed out may be about to be continued.
    const auto long_ago = static_cast<std::int64_t>(monotonic_ns()) - std::int64_t{30'000'000'000};
    std::vector<std::shared_ptr<Session>> idle;
    for (auto& session : all_loaded())
        if (!session->status().attached() && session->status().state() == SessionState::ended &&
            session->last_used_ns < long_ago)
            idle.push_back(session);
    if (idle.size() <= keep) return;
    std::sort(idle.begin(), idle.end(), [](const auto& a, const auto& b) { return a->last_used_ns > b->last_used_ns; });
    for (std::size_t i = keep; i < idle.size(); ++i) {
        // Code elsewhere reads it or, like an import, writes it: loaded again, it would be a second, partial session.
        if (idle[i].use_count() > 2) continue;
        save(*idle[i]);
        const auto lock = index_.lock();
        if (const auto at = index_.entries(lock).find(idle[i]->id()); at != index_.entries(lock).end()) {
            at->second->last_used_ns = idle[i]->last_used_ns;
            at->second->session = nullptr;
        }
    }
}

}  // namespace flamewire::server
