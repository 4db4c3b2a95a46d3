#include "server/session/catalog_index.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <system_error>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/hex.h"
#include "server/session/session_name.h"
#include "server/session/side_files.h"
#include "wire/session_scan.h"

namespace flamewire::server {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view sidecar_name = "session.json";
// A directory that changed more recently may change again within the same tick of its timestamp.
constexpr std::int64_t settled_after_ns = 1'000'000'000;
constexpr std::size_t max_sidecar_bytes = std::size_t{4} << 20;

}  // namespace

CatalogIndex::EntryPtr CatalogIndex::make_entry(std::string id, std::string stream_path) {
    auto entry = std::make_shared<CatalogEntry>();
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

void CatalogIndex::scan() {
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

void CatalogIndex::recheck_unreadable() {
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

// Reads the label beside a newly found stream, and the recording that the stream belongs to.
void CatalogIndex::read_entry(const EntryPtr& entry) {
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
    // Other programs than the server report unreadable files themselves.
    if (!unreadable.empty() && entry->unreadable.empty() && log_unreadable_) spdlog::warn("{}", unreadable);
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

CatalogIndex::EntryPtr CatalogIndex::find(std::string_view id) {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(id);
    return at == entries_.end() ? nullptr : at->second;
}

bool CatalogIndex::exists(std::string_view id) {
    if (find(id)) return true;
    scan();
    return find(id) != nullptr;
}

}  // namespace flamewire::server
