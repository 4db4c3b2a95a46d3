// All sessions: those on disk under DATA_DIR/sessions and those in memory. A session is a directory NAME/stream.flw
// with a sidecar session.json, or a single file NAME.flw that a user put there. The disk is authoritative: the sidecar
// is rebuilt from the stream if it is missing or outdated. The user's label is in label.json beside the stream
// (NAME.flw.label.json for a single file).
// Thread-safe. Methods marked "blocking" read files and belong on a worker.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "base/result.h"
#include "profile/formats/import.h"
#include "server/session/label.h"
#include "server/session/session.h"

namespace flamewire::server {

// Selects a page of the session list.
struct SessionQuery {
    std::string_view words;  // separated by spaces; each must match, see search_text()
    std::uint64_t offset = 0, limit = 100;
};
struct SessionPage {
    std::vector<SessionInfo> sessions;        // newest first: `limit` of them, starting at `offset`
    std::uint64_t total = 0, size_bytes = 0;  // of all matches
};

// A session as the retention rules (prune.h) see it.
struct StoredSession {
    std::string id;
    std::int64_t written_ns = 0;  // when its file was last written or imported
    std::uint64_t size_bytes = 0;
    bool keep = false;    // pinned
    bool in_use = false;  // recorded, awaited, read or viewed recently
};

class Catalog {
public:
    // Creates and locks the directories. busy: another server uses them. New sessions get `tags`. Blocking.
    static Result<std::unique_ptr<Catalog>> open(const std::string& data_dir, SessionLimits limits, Tags tags = {});

    // For commands that only read, possibly while a server uses the directory. Takes no lock. Blocking.
    static std::unique_ptr<Catalog> open_read_only(const std::string& data_dir, SessionLimits limits);

    // Every session, newest first. Blocking.
    std::vector<SessionInfo> list();
    // Scans everything in memory, but compares only the sessions of the page with the disk. Blocking.
    SessionPage search(const SessionQuery& query);
    std::vector<StoredSession> stored();
    // A message for each file without any readable record. These files are not listed as sessions and are never
    // deleted.
    std::vector<std::string> unreadable();

    // The session in memory, or null. Cheap. loaded(): only if it is complete. opened(): also while it is still being
    // read.
    std::shared_ptr<Session> loaded(std::string_view id);
    std::shared_ptr<Session> opened(std::string_view id);
    // In memory or on disk. Blocking only if a new file may have appeared.
    bool exists(std::string_view id);
    // Loads the session if necessary; for `on_partial`, see Session::load(). not_found. Blocking.
    Result<std::shared_ptr<Session>> get(std::string_view id, const Session::OnPartial& on_partial = {});
    // The session of a recording, from memory or disk, ready to be continued. Null if there is none. Blocking.
    Result<std::shared_ptr<Session>> find_recording(const wire::RecordingId& recording);
    // Creates a session. `target` goes into the directory name; for `owner_key`, see Session::create(). Blocking.
    Result<std::shared_ptr<Session>> create(const wire::RecordingId& recording, std::string_view target,
                                            const std::string& owner_key = {});

    // Adopts a copy of a session file written elsewhere and returns its id. No agent continues it. Blocking.
    Result<std::string> import_stream(const std::string& path, std::string_view name);

    // Adopts the session of an unpacked archive (archive.h). It keeps its id if that is free. Blocking.
    Result<std::string> import_archive(profile::ImportSource& archive, std::string_view name);

    // The session of a request without `session=`.
    struct Default {
        std::string id;                    // empty: there is none
        std::vector<std::string> several;  // live ones, if there is more than one
    };
    Default default_session();

    // Renames, tags or pins a session, which may be live. Returns its updated info. invalid: over a limit. Blocking.
    Result<SessionInfo> relabel(std::string_view id, const LabelChange& change);

    // Deletes it from disk. busy: its agent is attached. Blocking.
    Result<bool> remove(const std::string& id);
    // The same, but also busy if the session is in use or pinned. Blocking.
    Result<bool> remove_unused(const std::string& id);

    // Sessions that are completely in memory: all, and those that an agent feeds or may continue.
    std::vector<std::shared_ptr<Session>> all_loaded();
    std::vector<std::shared_ptr<Session>> live();

    // Writes the sidecar. If no agent feeds the session, also writes its symbols. Blocking.
    void save(Session& session);
    // Unloads ended sessions that had no recent requests and that nobody holds, except the `keep` most recently used.
    void unload_idle(std::size_t keep);

    [[nodiscard]] const std::string& data_dir() const { return data_dir_; }

private:
    struct Entry {
        std::string id, stream_path, sidecar_path, label_path;
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
        std::mutex loading;
    };
    using EntryPtr = std::shared_ptr<Entry>;

    Catalog(std::string data_dir, SessionLimits limits, Tags tags, UniqueFd lock)
        : data_dir_(std::move(data_dir)),
          sessions_dir_(data_dir_ + "/sessions"),
          limits_(limits),
          tags_(std::move(tags)),
          lock_(std::move(lock)) {}

    static EntryPtr make_entry(std::string id, std::string stream_path);
    // Finds new and removed sessions. Almost free if the directory has not changed.
    void scan();
    void read_entry(const EntryPtr& entry);
    // Rereads unreadable files that have changed.
    void recheck_unreadable();
    EntryPtr find(std::string_view id);
    Result<std::shared_ptr<Session>> load(const EntryPtr& entry, const Session::OnPartial& on_partial = {});
    Result<bool> remove_if_allowed(const std::string& id, const std::function<Result<bool>(const Entry&)>& allowed);
    void apply_default_tags(const EntryPtr& entry);
    void save_label(const EntryPtr& entry);
    // Implemented in catalog_list.cc.
    void rebuild_sidecars(std::chrono::steady_clock::time_point until);
    SessionInfo rebuild_sidecar(const EntryPtr& entry);
    std::optional<SessionInfo> current_info(const EntryPtr& entry, std::chrono::steady_clock::time_point until);
    static bool in_use(const Entry& entry, const std::optional<FileStatus>& stream);

    const std::string data_dir_, sessions_dir_;
    const SessionLimits limits_;
    const Tags tags_;
    UniqueFd lock_;

    std::mutex mutex_;
    std::map<std::string, EntryPtr, std::less<>> entries_;
    std::int64_t scanned_ns_ = 0;  // modification time of sessions_dir_ at the last scan; 0: scan again
    std::mutex label_mutex_;       // serializes changes of labels
};

// Up to 40 characters of `target`: letters, digits, '.', '_' and '-' stay, others become '_'. "session" if nothing is
// left.
std::string sanitized_name(std::string_view target);

// For the name of a new session: local time and sanitized_name().
std::string timestamped_name(std::string_view target);

// The text in which the words of a SessionQuery are searched: id, name, target, host, agent, tags as "key=value", and
// events. It is in lower case (A to Z only), as are the query's words.
std::string search_text(const SessionInfo& info);

// Reads the recording id from the first batch of a stream.
Result<wire::RecordingId> read_recording_id(const std::string& stream_path);

}  // namespace flamewire::server
