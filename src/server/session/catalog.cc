#include "server/session/catalog.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/hex.h"
#include "server/session/archive.h"
#include "server/session/side_files.h"

namespace flamewire::server {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view sidecar_name = "session.json";
// Ended sessions that stay in memory for the next question.
constexpr std::size_t idle_sessions_kept = 4;
// Where an archive is read into before it is a session.
constexpr std::string_view arriving_prefix = "arriving-";
constexpr std::size_t max_sidecar_bytes = std::size_t{4} << 20;
// A listing rebuilds missing sidecars for this long; the rest follows with the next one.
constexpr std::chrono::milliseconds rebuild_budget{1500};

Result<bool> make_directory(const std::string& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) return fail_errno("cannot create " + path, error.value());
    return true;
}

void sync_directory(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd) (void)::fsync(fd.get());
}

std::uint64_t file_size(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

std::int64_t modified_ns(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return 0;
    return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

std::string local_time_word() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    return fmt::format("{:04}{:02}{:02}_{:02}{:02}{:02}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                       local.tm_hour, local.tm_min, local.tm_sec);
}

// A folder for one archive, gone with it unless it became a session.
class ArrivingFolder {
public:
    static Result<ArrivingFolder> create(const std::string& data_dir) {
        std::string path = fmt::format("{}/{}XXXXXX", data_dir, arriving_prefix);
        if (::mkdtemp(path.data()) == nullptr) return fail_errno("cannot write into " + data_dir, errno);
        return ArrivingFolder(std::move(path));
    }
    ArrivingFolder(ArrivingFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ArrivingFolder& operator=(ArrivingFolder&&) = delete;
    ~ArrivingFolder() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    explicit ArrivingFolder(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

// What a server that was killed had not finished.
void remove_arriving(const std::string& data_dir) {
    std::error_code error;
    for (fs::directory_iterator at(data_dir, error); !error && at != fs::directory_iterator(); at.increment(error)) {
        std::error_code ignored;
        if (at->path().filename().string().starts_with(arriving_prefix)) fs::remove_all(at->path(), ignored);
    }
}

// Nothing but what the file system says, for a session whose stream was not read yet.
SessionInfo bare_info(const std::string& id, const std::string& stream_path) {
    SessionInfo info;
    info.id = id;
    info.started_ns = info.target_started_ns = modified_ns(stream_path);
    info.size_bytes = file_size(stream_path);
    return info;
}

}  // namespace

std::string directory_word(std::string_view target) {
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

std::string session_word(std::string_view target) {
    return fmt::format("{}_{}", local_time_word(), directory_word(target));
}

Result<wire::RecordingId> recording_of_stream(const std::string& stream_path) {
    wire::SessionReader reader = TRY(wire::SessionReader::open(stream_path));
    while (true) {
        const auto record = TRY(reader.next());
        if (!record) return fail(ErrorCode::not_found, stream_path + " has no batch");
        if (record->frame.flag != wire::Flag::batch && record->frame.flag != wire::Flag::batch_zstd) continue;
        const std::string bytes = TRY(wire::batch_bytes(record->frame));
        return TRY(wire::peek_header(as_bytes_view(bytes))).recording_id;
    }
}

Result<std::unique_ptr<Catalog>> Catalog::open(const std::string& data_dir, profile::StoreLimits limits) {
    TRY(make_directory(data_dir + "/sessions"));
    const std::string lock_path = data_dir + "/lock";
    UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!lock) return fail_errno("cannot open " + lock_path, errno);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
        return fail(
            ErrorCode::busy,
            fmt::format("another flamewire-server uses {}: stop it, or give this one its own --data-dir", data_dir));
    remove_arriving(data_dir);
    std::unique_ptr<Catalog> catalog(new Catalog(data_dir, limits, std::move(lock)));
    catalog->scan();
    return catalog;
}

std::unique_ptr<Catalog> Catalog::look_at(const std::string& data_dir, profile::StoreLimits limits) {
    std::unique_ptr<Catalog> catalog(new Catalog(data_dir, limits, UniqueFd()));
    catalog->scan();
    return catalog;
}

void Catalog::scan() {
    struct Found {
        std::string id, stream, sidecar;
    };
    std::vector<Found> found;
    std::error_code error;
    fs::directory_iterator at(sessions_dir_, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
        const fs::path& path = at->path();
        std::error_code ignored;
        if (fs::is_regular_file(path / stream_name, ignored))
            found.push_back({path.filename().string(), (path / stream_name).string(), (path / sidecar_name).string()});
        else if (path.extension() == ".flw" && fs::is_regular_file(path, ignored))
            found.push_back({path.stem().string(), path.string(), path.string() + ".json"});
    }
    std::vector<EntryPtr> fresh;
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(entries_, [&](const auto& entry) {
            return entry.second->session == nullptr &&
                   std::none_of(found.begin(), found.end(), [&](const Found& it) { return it.id == entry.first; });
        });
        for (Found& it : found) {
            auto [position, added] = entries_.try_emplace(it.id, nullptr);
            if (!added) continue;
            position->second = std::make_shared<Entry>();
            position->second->id = it.id;
            position->second->stream_path = std::move(it.stream);
            position->second->sidecar_path = std::move(it.sidecar);
            fresh.push_back(position->second);
        }
    }
    for (const EntryPtr& entry : fresh) {
        const std::lock_guard loading(entry->loading);
        auto recording = recording_of_stream(entry->stream_path);
        std::optional<SessionInfo> info;
        if (auto text = read_file(entry->sidecar_path, max_sidecar_bytes))
            if (auto parsed = parse_sidecar(*text); parsed && parsed->size_bytes == file_size(entry->stream_path))
                info = std::move(*parsed);
        const std::lock_guard lock(mutex_);
        if (recording && !entry->recording) entry->recording = *recording;
        if (info && !entry->info) entry->info = std::move(info);
    }
}

Catalog::EntryPtr Catalog::find(std::string_view id) {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(id);
    return at == entries_.end() ? nullptr : at->second;
}

std::shared_ptr<Session> Catalog::loaded(std::string_view id) {
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

Result<std::shared_ptr<Session>> Catalog::get(std::string_view id) {
    if (!exists(id)) return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
    const EntryPtr entry = find(id);
    if (!entry) return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
    return load(entry);
}

Result<std::shared_ptr<Session>> Catalog::load(const EntryPtr& entry) {
    const std::lock_guard loading(entry->loading);
    if (auto session = loaded(entry->id)) return session;
    auto session = TRY(Session::load(entry->id, entry->stream_path, limits_));
    session->last_used_ns = static_cast<std::int64_t>(monotonic_ns());
    {
        const std::lock_guard lock(mutex_);
        // The agent's address is known to the sidecar only.
        if (entry->info && !entry->info->agent.empty()) {
            session->attach_agent(entry->info->agent);
            session->detach_agent();
        }
        entry->session = session;
        entry->recording = session->recording();
    }
    unload_idle(idle_sessions_kept);
    return session;
}

Result<std::shared_ptr<Session>> Catalog::of_recording(const wire::RecordingId& recording) {
    EntryPtr entry;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, candidate] : entries_)
            if (candidate->recording == recording && !candidate->cannot_continue) entry = candidate;
    }
    if (!entry) return std::shared_ptr<Session>{};
    auto session = TRY(load(entry));
    if (auto writable = session->make_writable(); !writable) {
        if (writable.error().code != ErrorCode::invalid) return std::unexpected(writable.error());
        const std::lock_guard lock(mutex_);
        entry->cannot_continue = true;
        return std::shared_ptr<Session>{};
    }
    return session;
}

Result<std::shared_ptr<Session>> Catalog::create(const wire::RecordingId& recording, std::string_view target) {
    const std::string base =
        fmt::format("{}_{}", session_word(target), to_hex(std::as_bytes(std::span(recording))).substr(0, 8));
    std::string id = base;
    Result<std::shared_ptr<Session>> session = fail(ErrorCode::io, "");
    {
        // From the file's first moment the entry has its session: a scan must not take the file for an ended one.
        const std::lock_guard lock(mutex_);
        for (int attempt = 2; ::mkdir((sessions_dir_ + "/" + id).c_str(), 0755) != 0; ++attempt) {
            if (errno != EEXIST || attempt > 100) return fail_errno("cannot create " + sessions_dir_ + "/" + id, errno);
            id = fmt::format("{}_{}", base, attempt);
        }
        const std::string directory = sessions_dir_ + "/" + id;
        session = Session::create(id, fmt::format("{}/{}", directory, stream_name), recording, limits_);
        if (!session) {
            std::error_code ignored;
            fs::remove_all(directory, ignored);
            return session;
        }
        auto entry = std::make_shared<Entry>();
        entry->id = id;
        entry->stream_path = (*session)->stream_path();
        entry->sidecar_path = fmt::format("{}/{}", directory, sidecar_name);
        entry->recording = recording;
        entry->session = *session;
        entries_[id] = std::move(entry);
    }
    sync_directory(sessions_dir_ + "/" + id);
    sync_directory(sessions_dir_);
    unload_idle(idle_sessions_kept);
    return session;
}

Result<std::string> Catalog::adopt(const std::string& path, std::string_view name) {
    TRY(recording_of_stream(path));
    const std::string base = session_word(fs::path(name).stem().string());
    std::string id = base;
    for (int attempt = 2; exists(id); ++attempt) id = fmt::format("{}_{}", base, attempt);
    const std::string to = fmt::format("{}/{}.flw", sessions_dir_, id), part = to + ".part";
    std::error_code error;
    fs::copy_file(path, part, fs::copy_options::overwrite_existing, error);
    if (!error) fs::rename(part, to, error);
    if (error) {
        std::error_code ignored;
        fs::remove(part, ignored);
        return fail_errno("cannot write " + to, error.value());
    }
    sync_directory(sessions_dir_);
    scan();
    if (const EntryPtr entry = find(id)) {
        const std::lock_guard lock(mutex_);
        entry->cannot_continue = true;
    }
    return id;
}

Result<std::string> Catalog::adopt_archive(profile::ImportSource& archive, std::string_view name) {
    const ArrivingFolder folder = TRY(ArrivingFolder::create(data_dir_));
    std::string base = TRY(read_archive(archive, folder.path()));
    TRY(recording_of_stream(fmt::format("{}/{}", folder.path(), stream_name)));
    if (base.empty()) base = fmt::format("{}_{}", local_time_word(), directory_word(fs::path(name).stem().string()));
    (void)::chmod(folder.path().c_str(), 0755);
    std::string id = base;
    // Onto a directory that is not empty it fails, so that no session is ever replaced.
    for (int attempt = 2; exists(id) || ::rename(folder.path().c_str(), (sessions_dir_ + "/" + id).c_str()) != 0;
         ++attempt) {
        if (!exists(id) && errno != EEXIST && errno != ENOTEMPTY)
            return fail_errno(fmt::format("cannot write {}/{}", sessions_dir_, id), errno);
        if (attempt > 1000) return fail(ErrorCode::busy, fmt::format("there are too many sessions {}", base));
        id = fmt::format("{}_{}", base, attempt);
    }
    sync_directory(sessions_dir_);
    scan();
    if (const EntryPtr entry = find(id)) {
        const std::lock_guard lock(mutex_);
        entry->cannot_continue = true;
    }
    return id;
}

SessionInfo Catalog::info_of(const EntryPtr& entry, bool& budget_left) {
    {
        const std::lock_guard lock(mutex_);
        if (entry->session) return entry->session->info();
        if (entry->info && entry->info->size_bytes == file_size(entry->stream_path)) return *entry->info;
    }
    if (!budget_left) return bare_info(entry->id, entry->stream_path);
    const std::lock_guard loading(entry->loading);
    auto session = Session::load(entry->id, entry->stream_path, limits_);
    SessionInfo info = session ? (*session)->info() : bare_info(entry->id, entry->stream_path);
    if (!session) info.notices.push_back({"stream-unreadable", session.error().message, ""});
    // The whole size, so that a torn tail does not make the sidecar look old for ever.
    info.size_bytes = file_size(entry->stream_path);
    {
        const std::lock_guard lock(mutex_);
        if (entry->info && info.agent.empty()) info.agent = entry->info->agent;
        entry->info = info;
        if (session) entry->recording = (*session)->recording();
    }
    (void)replace_file(entry->sidecar_path, encode_sidecar(info));
    return info;
}

std::vector<SessionInfo> Catalog::list() {
    scan();
    std::vector<EntryPtr> entries;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, entry] : entries_) entries.push_back(entry);
    }
    const auto begin = std::chrono::steady_clock::now();
    std::vector<SessionInfo> result;
    result.reserve(entries.size());
    for (const EntryPtr& entry : entries) {
        bool budget_left = std::chrono::steady_clock::now() - begin < rebuild_budget;
        SessionInfo info = info_of(entry, budget_left);
        info.id = entry->id;
        // Written while it ran; now nobody feeds it, and its agent may still come back for a while.
        if (!loaded(entry->id) && info.end_reason.empty()) {
            const std::int64_t age = realtime_ns() - modified_ns(entry->stream_path);
            const bool waiting = age < std::chrono::nanoseconds(waiting_time).count() && !info.agent.empty();
            info.state = waiting ? SessionState::waiting : SessionState::ended;
            if (!waiting) info.end_reason = "the agent went away";
        } else if (!loaded(entry->id)) {
            info.state = SessionState::ended;
        }
        result.push_back(std::move(info));
    }
    std::stable_sort(result.begin(), result.end(), [](const SessionInfo& a, const SessionInfo& b) {
        return a.started_ns != b.started_ns ? a.started_ns > b.started_ns : a.id > b.id;
    });
    return result;
}

Catalog::Default Catalog::default_session() {
    Default result;
    std::vector<std::string> attached, waiting;
    for (const auto& session : live()) (session->attached() ? attached : waiting).push_back(session->id());
    const auto& candidates = attached.empty() ? waiting : attached;
    if (candidates.size() == 1) result.id = candidates.front();
    if (candidates.size() > 1) result.several = candidates;
    if (candidates.empty())
        if (const auto sessions = list(); !sessions.empty()) result.id = sessions.front().id;
    return result;
}

Result<bool> Catalog::remove(const std::string& id) {
    if (!exists(id)) return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
    EntryPtr entry;
    {
        const std::lock_guard lock(mutex_);
        const auto at = entries_.find(id);
        if (at == entries_.end()) return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
        if (at->second->session && at->second->session->attached() && !at->second->session->ended())
            return fail(ErrorCode::busy, "the session is live: stop it first");
        entry = at->second;
        entries_.erase(at);
    }
    std::error_code error;
    const fs::path stream(entry->stream_path);
    if (stream.filename() == stream_name) {
        fs::remove_all(stream.parent_path(), error);
    } else {
        fs::remove(stream, error);
        std::error_code ignored;
        fs::remove(entry->sidecar_path, ignored);
        for (const std::string_view name : travelling_files) fs::remove(side_file(entry->stream_path, name), ignored);
    }
    if (error) return fail_errno("cannot delete " + entry->stream_path, error.value());
    return true;
}

std::vector<std::shared_ptr<Session>> Catalog::all_loaded() {
    std::vector<std::shared_ptr<Session>> result;
    const std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_)
        if (entry->session) result.push_back(entry->session);
    return result;
}

std::vector<std::shared_ptr<Session>> Catalog::live() {
    auto result = all_loaded();
    std::erase_if(result, [](const auto& session) { return session->info().state == SessionState::ended; });
    return result;
}

void Catalog::save(Session& session) {
    const EntryPtr entry = find(session.id());
    if (!entry) return;
    if (!session.fed()) session.keep_symbols();
    SessionInfo info = session.info();
    if (!session.ended()) info.end_reason.clear();
    info.notices.erase(std::remove_if(info.notices.begin(), info.notices.end(),
                                      [](const wire::Notice& notice) { return notice.code == "disk"; }),
                       info.notices.end());
    (void)replace_file(entry->sidecar_path, encode_sidecar(info));
    const std::lock_guard lock(mutex_);
    entry->info = std::move(info);
}

void Catalog::unload_idle(std::size_t keep) {
    // Who was handed out just now may be about to be continued.
    const auto long_ago = static_cast<std::int64_t>(monotonic_ns()) - std::int64_t{30'000'000'000};
    std::vector<std::shared_ptr<Session>> idle;
    for (auto& session : all_loaded())
        if (!session->attached() && session->info().state == SessionState::ended && session->last_used_ns < long_ago)
            idle.push_back(session);
    if (idle.size() <= keep) return;
    std::sort(idle.begin(), idle.end(), [](const auto& a, const auto& b) { return a->last_used_ns > b->last_used_ns; });
    for (std::size_t i = keep; i < idle.size(); ++i) {
        save(*idle[i]);
        const std::lock_guard lock(mutex_);
        if (const auto at = entries_.find(idle[i]->id()); at != entries_.end()) at->second->session = nullptr;
    }
}

}  // namespace flamewire::server
