// The sessions of a data directory by id, as found on disk and in memory. Thread-safe: one mutex protects the map and
// the members of its entries; lock() holds it for several accesses. It is locked after CatalogEntry::loading and the
// mutex of CatalogLabels, and before those of a session. Only for a session that is still being read, which nobody else
// locks, it is locked after them. Methods marked "blocking" read files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "server/session/label.h"
#include "server/session/session.h"

namespace flamewire::server {

struct CatalogEntry {
    std::string id, stream_path, sidecar_path, label_path;  // constant
    std::optional<wire::RecordingId> recording;
    std::optional<SessionInfo> info;  // as of the stream's size then
    std::string search_text;          // of `info` with the label; empty: not computed yet
    Label label;
    bool label_unsaved = false;  // the disk refused it; retried with the sidecar
    std::string label_problem;   // why its existing file cannot be read
    std::string unreadable;      // why nothing of the stream is readable, as of `unreadable_as`
    FileStatus unreadable_as;
    std::shared_ptr<Session> session;  // set as soon as part of it can be shown
    std::int64_t last_used_ns = 0;     // when it was last used in memory; CLOCK_MONOTONIC
    bool cannot_continue = false;      // damaged in the middle: a returning recording gets a new session
    std::mutex loading;                // held while its stream is read
};

class CatalogIndex {
public:
    using EntryPtr = std::shared_ptr<CatalogEntry>;
    using Entries = std::map<std::string, EntryPtr, std::less<>>;
    using Lock = std::unique_lock<std::mutex>;

    // `log_unreadable`: warn about files that cannot be read.
    CatalogIndex(std::string sessions_dir, bool log_unreadable)
        : sessions_dir_(std::move(sessions_dir)), log_unreadable_(log_unreadable) {}

    [[nodiscard]] Lock lock() { return Lock(mutex_); }
    [[nodiscard]] Entries& entries(const Lock& /*held*/) { return entries_; }

    static EntryPtr make_entry(std::string id, std::string stream_path);
    // Null if there is none.
    EntryPtr find(std::string_view id);
    // In memory or on disk. Blocking only if a new file may have appeared.
    bool exists(std::string_view id);

    // Finds new and removed sessions. Almost free if the directory has not changed. Blocking.
    void scan();
    // The next scan reads the directory, changed or not.
    void rescan(const Lock& /*held*/) { scanned_ns_ = 0; }
    // Rereads unreadable files that have changed. Blocking.
    void recheck_unreadable();

    [[nodiscard]] const std::string& sessions_dir() const { return sessions_dir_; }

private:
    void read_entry(const EntryPtr& entry);

    const std::string sessions_dir_;
    const bool log_unreadable_;
    std::mutex mutex_;
    Entries entries_;
    std::int64_t scanned_ns_ = 0;  // modification time of sessions_dir_ at the last scan; 0: scan again
};

}  // namespace flamewire::server
