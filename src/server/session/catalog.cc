#include "server/session/catalog.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <set>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "server/session/archive.h"
#include "server/session/disk_remedy.h"
#include "server/session/side_files.h"

namespace flamewire::server {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view sidecar_name = "session.json";
// A directory that changed more recently may change again within the same tick of its timestamp.
constexpr std::int64_t settled_after_ns = 1'000'000'000;
// Ended sessions that stay in memory for further requests.
constexpr std::size_t max_idle_sessions = 4;
// Archives are read into folders with this prefix before they become sessions.
constexpr std::string_view staging_prefix = "arriving-";
constexpr std::size_t max_sidecar_bytes = std::size_t{4} << 20;

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

std::string local_timestamp() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    return fmt::format("{:04}{:02}{:02}_{:02}{:02}{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                       local.tm_hour, local.tm_min, local.tm_sec);
}

// A folder for one archive. It is deleted with this object unless the archive became a session.
class StagingFolder {
public:
    static Result<StagingFolder> create(const std::string& data_dir) {
        std::string path = fmt::format("{}/{}XXXXXX", data_dir, staging_prefix);
        if (::mkdtemp(path.data()) == nullptr) return fail_errno("cannot write into " + data_dir, errno);
        return StagingFolder(std::move(path));
    }
    StagingFolder(StagingFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    StagingFolder& operator=(StagingFolder&&) = delete;
    ~StagingFolder() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    explicit StagingFolder(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

// Removes folders that a killed server left behind.
void remove_staging_folders(const std::string& data_dir) {
    std::error_code error;
    for (fs::directory_iterator at(data_dir, error); !error && at != fs::directory_iterator(); at.increment(error)) {
        std::error_code ignored;
        if (at->path().filename().string().starts_with(staging_prefix)) fs::remove_all(at->path(), ignored);
    }
}

}  // namespace

std::string sanitized_name(std::string_view target) {
    std::string word;
    for (const char c : target.substr(0, 40)) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        const bool plain = letter || (!word.empty() && word.back() != '_' && (c == '.' || c == '-'));
        if (plain)
            word += c;
        else if (!word.empty() && word.back() != '_')
            word += '_';
    }
    while (!word.empty() && (word.back() == '_' || word.back() == '.')) word.pop_back();
    return word.empty() ? "session" : word;
}

std::string timestamped_name(std::string_view target) {
    return fmt::format("{}_{}", local_timestamp(), sanitized_name(target));
}

Result<wire::RecordingId> read_recording_id(const std::string& stream_path) {
    wire::SessionScanner scanner = TRY(wire::SessionScanner::open(stream_path));
    bool damaged = false;
    while (const auto record = TRY(scanner.next())) {
        damaged = damaged || record->unread_bytes != 0;
        if (record->frame.flag == wire::Flag::batch)
            return TRY(wire::peek_header(as_bytes_view(record->frame.payload))).recording_id;
    }
    if (damaged || scanner.tail().kind == wire::SessionTail::Kind::damaged)
        return fail(ErrorCode::invalid, wire::unreadable_session(stream_path, scanner.size_bytes()));
    return fail(ErrorCode::not_found, stream_path + " has no batch");
}

Result<std::unique_ptr<Catalog>> Catalog::open(const std::string& data_dir, SessionLimits limits, Tags tags) {
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
    catalog->scan();
    return catalog;
}

std::unique_ptr<Catalog> Catalog::open_read_only(const std::string& data_dir, SessionLimits limits) {
    std::unique_ptr<Catalog> catalog(new Catalog(data_dir, limits, {}, UniqueFd()));
    catalog->scan();
    return catalog;
}

Catalog::EntryPtr Catalog::make_entry(std::string id, std::string stream_path) {
    auto entry = std::make_shared<Entry>();
    entry->id = std::move(id);
    const fs::path stream(stream_path);
    if (stream.filename() == stream_name) {
        entry->sidecar_path = stream.parent_path() / sidecar_name;
        entry->label_path = stream.parent_path() / label_name;
    } else {
        entry->sidecar_path = stream_path + ".json";
        entry->label_path = fmt::format("{}.{}", stream_path, label_name);
    }
    entry->stream_path = std::move(stream_path);
    return entry;
}

void Catalog::scan() {
    const std::int64_t now = realtime_ns();
    const auto directory = file_status(sessions_dir_);
    std::set<std::string, std::less<>> known;
    {
        const std::lock_guard lock(mutex_);
        if (directory && scanned_ns_ != 0 && directory->modified_ns == scanned_ns_) return;
        for (const auto& [id, entry] : entries_) known.insert(id);
    }
    bool settled = directory && now - directory->modified_ns > settled_after_ns;
    std::vector<EntryPtr> fresh;
    std::error_code error;
    fs::directory_iterator at(sessions_dir_, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
        const fs::path& path = at->path();
        std::error_code ignored;
        const bool is_file = path.extension() == ".flw" && !at->is_directory(ignored);
        std::string id = (is_file ? path.stem() : path.filename()).string();
        if (known.erase(id) != 0) continue;
        if (is_file && fs::is_regular_file(path, ignored))
            fresh.push_back(make_entry(std::move(id), path.string()));
        else if (fs::is_regular_file(path / stream_name, ignored))
            fresh.push_back(make_entry(std::move(id), (path / stream_name).string()));
        else if (at->is_directory(ignored))
            settled = false;  // its stream may still appear, which does not change this directory
    }
    {
        const std::lock_guard lock(mutex_);
        // The sessions that are left were not found on disk.
        for (const std::string& id : known)
            if (const auto gone = entries_.find(id); gone != entries_.end() && !gone->second->session)
                entries_.erase(gone);
        std::erase_if(fresh, [&](const EntryPtr& entry) { return !entries_.try_emplace(entry->id, entry).second; });
        scanned_ns_ = settled && !error ? directory->modified_ns : 0;
    }
    for (const EntryPtr& entry : fresh) read_entry(entry);
}

void Catalog::recheck_unreadable() {
    std::vector<EntryPtr> changed;
    {
        const std::lock_guard lock(mutex_);
        // Forget files that are gone. If one comes back, it is found again.
        std::erase_if(entries_, [&](const auto& item) {
            const EntryPtr& entry = item.second;
            if (entry->unreadable.empty()) return false;
            const auto stream = file_status(entry->stream_path);
            if (stream && (stream->size_bytes != entry->unreadable_as.size_bytes ||
                           stream->modified_ns != entry->unreadable_as.modified_ns))
                changed.push_back(entry);
            return !stream;
        });
    }
    for (const EntryPtr& entry : changed) read_entry(entry);
}

std::vector<std::string> Catalog::unreadable() {
    std::vector<std::string> sentences;
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_)
        if (!entry->unreadable.empty()) sentences.push_back(entry->unreadable + ".");
    return sentences;
}

// Reads the label beside a newly found stream, and the recording that the stream belongs to.
void Catalog::read_entry(const EntryPtr& entry) {
    const std::lock_guard loading(entry->loading);
    auto label = read_label(entry->label_path);
    std::optional<wire::RecordingId> recording;
    std::optional<SessionInfo> info;
    const auto stream = file_status(entry->stream_path);
    if (const auto text = read_file(entry->sidecar_path, max_sidecar_bytes))
        if (auto parsed = parse_sidecar(*text); parsed && stream && parsed->size_bytes == stream->size_bytes)
            info = std::move(*parsed);
    if (info)
        if (const auto bytes = from_hex(info->recording); bytes && bytes->size() == wire::RecordingId{}.size())
            std::ranges::copy(*bytes, recording.emplace().begin());
    std::string unreadable;
    if (!recording) {
        if (const auto read = read_recording_id(entry->stream_path))
            recording = *read;
        else if (read.error().code == ErrorCode::invalid && !wire::is_being_written(entry->stream_path))
            unreadable = read.error().message;
    }
    const std::lock_guard lock(mutex_);
    // Warn only if this is the server, which holds the lock. Other programs report unreadable files themselves.
    if (!unreadable.empty() && entry->unreadable.empty() && lock_) spdlog::warn("{}", unreadable);
    entry->unreadable = std::move(unreadable);
    entry->unreadable_as = stream.value_or(FileStatus{});
    if (label)
        entry->label = *std::move(label);
    else
        entry->label_problem = label.error().message;
    if (recording && !entry->recording) entry->recording = recording;
    if (!info || entry->info) return;
    info->id = entry->id;
    info->label = entry->label;
    entry->info = std::move(info);
}

Catalog::EntryPtr Catalog::find(std::string_view id) {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(id);
    return at == entries_.end() ? nullptr : at->second;
}

std::shared_ptr<Session> Catalog::loaded(std::string_view id) {
    auto session = opened(id);
    return session && !session->status().reading() ? session : nullptr;
}

std::shared_ptr<Session> Catalog::opened(std::string_view id) {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(id);
    if (at == entries_.end() || !at->second->session) return nullptr;
    at->second->session->last_used_ns = static_cast<std::int64_t>(monotonic_ns());
    return at->second->session;
}

bool Catalog::exists(std::string_view id) {
    if (find(id)) return true;
    scan();
    return find(id) != nullptr;
}

Result<std::shared_ptr<Session>> Catalog::get(std::string_view id, const Session::OnPartial& on_partial) {
    if (!exists(id)) return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
    const EntryPtr entry = find(id);
    if (!entry) return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
    return load(entry, on_partial);
}

Result<std::shared_ptr<Session>> Catalog::load(const EntryPtr& entry, const Session::OnPartial& on_partial) {
    const std::lock_guard loading(entry->loading);
    if (auto session = loaded(entry->id)) return session;
    const auto place = [&](const std::shared_ptr<Session>& session) {
        session->last_used_ns = static_cast<std::int64_t>(monotonic_ns());
        if (is_imported(entry->stream_path)) session->status().set_imported();
        const std::lock_guard lock(mutex_);
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
        const std::lock_guard lock(mutex_);
        for (const auto& [id, candidate] : entries_)
            if (candidate->recording == recording && !candidate->cannot_continue &&
                !is_imported(candidate->stream_path))
                entry = candidate;
    }
    if (!entry) return std::shared_ptr<Session>{};
    auto session = TRY(load(entry));
    if (auto writable = session->stream().make_writable(); !writable) {
        if (writable.error().code != ErrorCode::invalid) return std::unexpected(writable.error());
        const std::lock_guard lock(mutex_);
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
        const std::lock_guard lock(mutex_);
        for (int attempt = 2; ::mkdir((sessions_dir_ + "/" + id).c_str(), 0700) != 0; ++attempt) {
            if (errno != EEXIST || attempt > 100) return fail_errno("cannot create " + sessions_dir_ + "/" + id, errno);
            id = fmt::format("{}_{}", base, attempt);
        }
        const std::string directory = sessions_dir_ + "/" + id;
        session = Session::create(id, fmt::format("{}/{}", directory, stream_name), recording, limits_, owner_key);
        if (!session) {
            std::error_code ignored;
            fs::remove_all(directory, ignored);
            return session;
        }
        entry = make_entry(id, (*session)->stream_path());
        entry->recording = recording;
        entry->session = *session;
        entries_[id] = entry;
    }
    apply_default_tags(entry);
    sync_directory(sessions_dir_ + "/" + id);
    sync_directory(sessions_dir_);
    unload_idle(max_idle_sessions);
    return session;
}

Result<std::string> Catalog::import_stream(const std::string& path, std::string_view name) {
    TRY(read_recording_id(path));
    const std::string base = timestamped_name(fs::path(name).stem().string());
    std::string id = base;
    for (int attempt = 2; exists(id); ++attempt) id = fmt::format("{}_{}", base, attempt);
    const std::string to = fmt::format("{}/{}.flw", sessions_dir_, id), part = to + ".part";
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
    sync_directory(sessions_dir_);
    scan();
    if (const EntryPtr entry = find(id)) apply_default_tags(entry);
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
    for (int attempt = 2; exists(id) || ::rename(folder.path().c_str(), (sessions_dir_ + "/" + id).c_str()) != 0;
         ++attempt) {
        if (!exists(id) && errno != EEXIST && errno != ENOTEMPTY)
            return fail_errno(fmt::format("cannot write {}/{}", sessions_dir_, id), errno);
        if (attempt > 1000) return fail(ErrorCode::busy, fmt::format("there are too many sessions {}", base));
        id = fmt::format("{}_{}", base, attempt);
    }
    sync_directory(sessions_dir_);
    scan();
    return id;
}

Catalog::Default Catalog::default_session() {
    Default result;
    std::vector<std::string> attached, waiting;
    for (const auto& session : live()) (session->status().attached() ? attached : waiting).push_back(session->id());
    const auto& candidates = attached.empty() ? waiting : attached;
    if (candidates.size() == 1) result.id = candidates.front();
    if (candidates.size() > 1) result.several = candidates;
    if (candidates.empty())
        if (const auto newest = search({.words = {}, .offset = 0, .limit = 1}).sessions; !newest.empty())
            result.id = newest.front().id;
    return result;
}

Result<bool> Catalog::remove(const std::string& id) {
    return remove_if_allowed(id, [](const Entry& entry) -> Result<bool> {
        if (entry.session && entry.session->status().attached() && !entry.session->status().ended())
            return fail(ErrorCode::busy, "the session is live: stop it first");
        return true;
    });
}

Result<bool> Catalog::remove_unused(const std::string& id) {
    return remove_if_allowed(id, [](const Entry& entry) -> Result<bool> {
        if (entry.label.keep || in_use(entry, file_status(entry.stream_path)))
            return fail(ErrorCode::busy, fmt::format("session {} is in use", entry.id));
        return true;
    });
}

Result<bool> Catalog::remove_if_allowed(const std::string& id,
                                        const std::function<Result<bool>(const Entry&)>& allowed) {
    if (!exists(id)) return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
    EntryPtr entry;
    {
        const std::lock_guard lock(mutex_);
        const auto at = entries_.find(id);
        if (at == entries_.end()) return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
        TRY(allowed(*at->second));
        entry = at->second;
        entries_.erase(at);
        scanned_ns_ = 0;  // if it could not be deleted, the next scan finds it again
    }
    std::error_code error;
    const fs::path stream(entry->stream_path);
    if (stream.filename() == stream_name) {
        fs::remove_all(stream.parent_path(), error);
    } else {
        fs::remove(stream, error);
        std::error_code ignored;
        fs::remove(entry->sidecar_path, ignored);
        if (!error) {
            for (const std::string_view name : portable_files) fs::remove(side_file(entry->stream_path, name), ignored);
            fs::remove(side_file(entry->stream_path, imported_name), ignored);
        }
    }
    if (error)
        return std::unexpected(
            with_disk_remedy(fail_errno("cannot delete " + entry->stream_path, error.value()).error()));
    return true;
}

std::vector<std::shared_ptr<Session>> Catalog::all_loaded() {
    std::vector<std::shared_ptr<Session>> result;
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_)
        if (entry->session && !entry->session->status().reading()) result.push_back(entry->session);
    return result;
}

std::vector<std::shared_ptr<Session>> Catalog::live() {
    auto result = all_loaded();
    std::erase_if(result, [](const auto& session) { return session->status().state() == SessionState::ended; });
    return result;
}

void Catalog::save(Session& session) {
    const EntryPtr entry = find(session.id());
    if (!entry || session.status().reading()) return;
    if (!session.status().receiving()) session.symbols().try_write_cache();
    SessionInfo info = session.info();
    if (!session.status().ended()) info.end_reason.clear();
    info.notices.erase(std::remove_if(info.notices.begin(), info.notices.end(),
                                      [](const wire::Notice& notice) { return notice.code == "disk"; }),
                       info.notices.end());
    (void)replace_file(entry->sidecar_path, as_bytes_view(encode_sidecar(info)));
    {
        const std::lock_guard labelling(label_mutex_);
        save_label(entry);
    }
    const std::lock_guard lock(mutex_);
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
        const std::lock_guard lock(mutex_);
        if (const auto at = entries_.find(idle[i]->id()); at != entries_.end()) {
            at->second->last_used_ns = idle[i]->last_used_ns;
            at->second->session = nullptr;
        }
    }
}

}  // namespace flamewire::server
