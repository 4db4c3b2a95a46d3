#include "server/session/catalog_list.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/clock.h"
#include "server/session/side_files.h"

namespace flamewire::server {
namespace {

using Clock = CatalogList::Clock;

// Time limit for rebuilding missing sidecars in one listing. The next listing continues.
constexpr std::chrono::milliseconds rebuild_budget{1500};
// A page that shows a session requests it every four minutes.
constexpr std::int64_t recent_use_ns = std::int64_t{10} * 60 * 1'000'000'000;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Info from the file system alone, for a session whose stream has not been read.
SessionInfo minimal_info(const std::string& id, const std::string& stream_path) {
    const FileStatus stream = file_status(stream_path).value_or(FileStatus{});
    SessionInfo info;
    info.id = id;
    info.started_ns = info.target_started_ns = stream.modified_ns;
    info.size_bytes = stream.size_bytes;
    return info;
}

std::vector<std::string> split_words(std::string_view text) {
    std::vector<std::string> words;
    for (bool inside = false; const char c : text) {
        const bool space = c == ' ' || c == '\t';
        if (!space && !inside) words.emplace_back();
        if (!space) words.back() += lower(c);
        inside = !space;
    }
    return words;
}

bool contains_all(std::string_view text, const std::vector<std::string>& words) {
    return std::ranges::all_of(words, [&](const std::string& word) { return text.contains(word); });
}

}  // namespace

std::string search_text(const SessionInfo& info) {
    std::string text;
    const auto add = [&](std::string_view part) { (text += part) += '\n'; };
    for (const std::string* part : {&info.id, &info.label.name, &info.target, &info.host, &info.agent}) add(*part);
    for (const auto& [key, value] : info.label.tags) {
        (text += key) += '=';
        add(value);
    }
    for (const EventInfo& event : info.events) add(event.name);
    std::ranges::transform(text, text.begin(), lower);
    return text;
}

std::vector<SessionInfo> CatalogList::all() {
    return search({.words = {}, .offset = 0, .limit = std::numeric_limits<std::uint64_t>::max()}).sessions;
}

// `size_bytes`: the sum of all that match.
std::vector<CatalogList::Row> CatalogList::matches(std::string_view text, std::uint64_t& size_bytes) {
    std::vector<Row> rows;
    const std::vector<std::string> words = split_words(text);
    const auto lock = index_.lock();
    rows.reserve(index_.entries(lock).size());
    for (const auto& [id, entry] : index_.entries(lock)) {
        if (!entry->unreadable.empty()) continue;
        std::optional<SessionInfo> own;  // not kept in the entry
        if (entry->session)
            own = entry->session->info();
        else if (!entry->info) {
            own = minimal_info(id, entry->stream_path);
            own->label = entry->label;
        }
        const SessionInfo& info = own ? *own : *entry->info;
        if (!words.empty()) {
            if (!own && entry->search_text.empty()) entry->search_text = search_text(info);
            if (!contains_all(own ? search_text(info) : entry->search_text, words)) continue;
        }
        rows.push_back({info.started_ns, entry});
        size_bytes += info.size_bytes;
    }
    return rows;
}

SessionPage CatalogList::search(const SessionQuery& query) {
    index_.scan();
    index_.recheck_unreadable();
    const auto until = Clock::now() + rebuild_budget;
    rebuild_sidecars(until);
    SessionPage page;
    std::vector<Row> rows = matches(query.words, page.size_bytes);
    page.total = rows.size();
    std::ranges::sort(rows, [](const Row& a, const Row& b) {
        return a.started_ns != b.started_ns ? a.started_ns > b.started_ns : a.entry->id > b.entry->id;
    });
    const std::uint64_t begin = std::min<std::uint64_t>(query.offset, rows.size());
    const std::uint64_t end = begin + std::min<std::uint64_t>(query.limit, rows.size() - begin);
    for (std::uint64_t i = begin; i < end; ++i) {
        auto info = current_info(rows[i].entry, until);
        // The session's file is gone: search again without it.
        if (!info) return search(query);
        page.sessions.push_back(*std::move(info));
    }
    return page;
}

// Reads the newest sessions first: ids begin with the time.
void CatalogList::rebuild_sidecars(Clock::time_point until) {
    std::vector<EntryPtr> missing;
    {
        const auto lock = index_.lock();
        for (auto at = index_.entries(lock).rbegin(); at != index_.entries(lock).rend(); ++at)
            if (!at->second->session && !at->second->info && at->second->unreadable.empty())
                missing.push_back(at->second);
    }
    for (const EntryPtr& entry : missing) {
        if (Clock::now() >= until) return;
        (void)rebuild_sidecar(entry);
    }
}

// Reads the stream and writes the sidecar.
SessionInfo CatalogList::rebuild_sidecar(const EntryPtr& entry) {
    const std::lock_guard loading(entry->loading);
    const auto stream = file_status(entry->stream_path);
    {
        const auto lock = index_.lock();
        if (entry->session) return entry->session->info();
        if (entry->info && stream && entry->info->size_bytes == stream->size_bytes) return *entry->info;
    }
    auto session = Session::load(entry->id, entry->stream_path, limits_);
    SessionInfo info = session ? (*session)->info() : minimal_info(entry->id, entry->stream_path);
    if (!session) info.notices.push_back({"stream-unreadable", session.error().message, ""});
    // Record the whole size, so that a torn tail does not make the sidecar look outdated forever.
    if (stream) info.size_bytes = stream->size_bytes;
    {
        const auto lock = index_.lock();
        if (entry->info && info.agent.empty()) info.agent = entry->info->agent;
        info.label = entry->label;
        info.retention.reset();
        entry->info = info;
        entry->search_text.clear();
        if (session) entry->recording = (*session)->recording();
    }
    (void)replace_file(entry->sidecar_path, as_bytes_view(encode_sidecar(info)));
    return info;
}

std::optional<SessionInfo> CatalogList::current_info(const EntryPtr& entry, Clock::time_point until) {
    std::optional<SessionInfo> info;
    std::string label_problem;
    bool loaded = false;
    {
        const auto lock = index_.lock();
        label_problem = entry->label_problem;
        loaded = entry->session != nullptr;
        if (loaded)
            info = entry->session->info();
        else if (entry->info)
            info = entry->info;
    }
    if (!loaded) info = info_on_disk(entry, std::move(info), until);
    if (!info) return {};
    info->id = entry->id;
    if (!label_problem.empty())
        info->notices.push_back({"label-unreadable", "Name and tags are not shown: " + label_problem + ".",
                                 "naming or tagging the session again replaces the file"});
    return info;
}

// Of a session that is not in memory. `known`: its info so far. If the file is gone, drops the entry.
std::optional<SessionInfo> CatalogList::info_on_disk(const EntryPtr& entry, std::optional<SessionInfo> known,
                                                     Clock::time_point until) {
    const auto stream = file_status(entry->stream_path);
    if (!stream) {
        const auto lock = index_.lock();
        auto& entries = index_.entries(lock);
        if (const auto at = entries.find(entry->id); at != entries.end() && at->second == entry) entries.erase(at);
        return {};
    }
    std::optional<SessionInfo> info = std::move(known);
    if (!info || info->size_bytes != stream->size_bytes) {
        if (Clock::now() < until) {
            info = rebuild_sidecar(entry);
        } else if (!info) {
            info = minimal_info(entry->id, entry->stream_path);
            const auto lock = index_.lock();
            info->label = entry->label;
        }
    }
    // The file was written while the session ran. Nothing feeds it now, but its agent may still return for a while.
    info->state = SessionState::ended;
    if (info->end_reason.empty()) {
        const std::int64_t age = realtime_ns() - stream->modified_ns;
        if (age < std::chrono::nanoseconds(reconnect_timeout).count() && !info->agent.empty() &&
            !is_imported(entry->stream_path))
            info->state = SessionState::waiting;
        else
            info->end_reason = "the agent disconnected";
    }
    return info;
}

bool CatalogList::in_use(const CatalogEntry& entry, const std::optional<FileStatus>& stream) {
    const auto now = static_cast<std::int64_t>(monotonic_ns());
    if (const auto& session = entry.session) {
        // Code elsewhere reads it, exports it or has jobs for it.
        if (session.use_count() > 1 || session->status().attached() || session->info().state != SessionState::ended)
            return true;
        if (session->last_used_ns != 0 && now - session->last_used_ns < recent_use_ns) return true;
    }
    if (entry.last_used_ns != 0 && now - entry.last_used_ns < recent_use_ns) return true;
    // Its agent may also return after a restart of the server.
    return stream && realtime_ns() - stream->modified_ns < std::chrono::nanoseconds(reconnect_timeout).count() &&
           (!entry.info || entry.info->end_reason.empty());
}

std::vector<StoredSession> CatalogList::stored() {
    index_.scan();
    std::vector<StoredSession> result;
    const auto lock = index_.lock();
    result.reserve(index_.entries(lock).size());
    for (const auto& [id, entry] : index_.entries(lock))
        if (const auto stream = file_status(entry->stream_path); stream && entry->unreadable.empty())
            result.push_back({id, stream->changed_ns, stream->size_bytes, entry->label.keep, in_use(*entry, stream)});
    return result;
}

std::vector<std::string> CatalogList::unreadable() {
    std::vector<std::string> sentences;
    const auto lock = index_.lock();
    for (const auto& [id, entry] : index_.entries(lock))
        if (!entry->unreadable.empty()) sentences.push_back(entry->unreadable + ".");
    return sentences;
}

}  // namespace flamewire::server
