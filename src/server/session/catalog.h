// All sessions: those on disk under DATA_DIR/sessions and those in memory. A session is a directory NAME/stream.flw
// with a sidecar session.json, or a single file NAME.flw that somebody put there. The disk is the truth: the sidecar is
// rebuilt from the stream when it is missing or older; what a person said of the session is in label.json beside it
// (NAME.flw.label.json). Thread-safe; methods marked "blocking" read files and belong on
// a worker.
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

// What of the list somebody wants to see.
struct SessionQuery {
    std::string_view words;  // separated by spaces; each must occur, see search_text()
    std::uint64_t offset = 0, limit = 100;
};
struct SessionPage {
    std::vector<SessionInfo> sessions;        // newest first, `limit` of them from `offset` on
    std::uint64_t total = 0, size_bytes = 0;  // of all that match
};

// As the rules of keeping (prune.h) see a session.
struct StoredSession {
    std::string id;
    std::int64_t written_ns = 0;  // when its file was last written, or came here
    std::uint64_t size_bytes = 0;
    bool keep = false;    // pinned
    bool in_use = false;  // recorded, awaited, read or looked at lately
};

class Catalog {
public:
    // Creates the directories and locks them; busy when another server has them. New sessions get `tags`. Blocking.
    static Result<std::unique_ptr<Catalog>> open(const std::string& data_dir, SessionLimits limits, Tags tags = {});

    // For who only looks, beside a server that may have them. Blocking.
    static std::unique_ptr<Catalog> look_at(const std::string& data_dir, SessionLimits limits);

    // Every session, newest first. Blocking.
    std::vector<SessionInfo> list();
    // Costs a pass over what is in memory; only what the page shows is compared with the disk. Blocking.
    SessionPage search(const SessionQuery& query);
    std::vector<StoredSession> stored();
    // A message for each file without any readable record. Such files are not listed as sessions and never deleted.
    std::vector<std::string> unreadable();

    // In memory now, or nothing. Cheap. loaded(): the whole of it; opened(): also what is still being read.
    std::shared_ptr<Session> loaded(std::string_view id);
    std::shared_ptr<Session> opened(std::string_view id);
    // In memory or on disk. Blocking only when a new file may have appeared.
    bool exists(std::string_view id);
    // Loads it when necessary; `more` as Session::load() has it. not_found. Blocking.
    Result<std::shared_ptr<Session>> get(std::string_view id, const Session::More& more = {});
    // The session of a recording, from memory or disk, ready to be continued; nothing when there is none. Blocking.
    Result<std::shared_ptr<Session>> of_recording(const wire::RecordingId& recording);
    // Begins one. `target` names the directory, `made_by` is as Session::create() has it. Blocking.
    Result<std::shared_ptr<Session>> create(const wire::RecordingId& recording, std::string_view target,
                                            const std::string& made_by = {});

    // Takes a copy of a session file that was written elsewhere; its id. No agent continues it. Blocking.
    Result<std::string> adopt(const std::string& path, std::string_view name);

    // The session of an unpacked archive (archive.h); its id is the one that it had, where that is free. Blocking.
    Result<std::string> adopt_archive(profile::ImportSource& archive, std::string_view name);

    // Which session a request without `session=` means.
    struct Default {
        std::string id;                    // empty: there is none
        std::vector<std::string> several;  // live ones, when there is more than one
    };
    Default default_session();

    // Renames, tags or pins a session, also a live one; what is known of it then. invalid: over a bound. Blocking.
    Result<SessionInfo> relabel(std::string_view id, const LabelChange& change);

    // Removes it from disk; busy while its agent is attached. Blocking.
    Result<bool> remove(const std::string& id);
    // The same, but busy also when it is in use or pinned. Blocking.
    Result<bool> remove_unused(const std::string& id);

    // The whole of them in memory: all, and those that an agent feeds or may continue.
    std::vector<std::shared_ptr<Session>> all_loaded();
    std::vector<std::shared_ptr<Session>> live();

    // Writes the sidecar, and of a session that no agent feeds the symbols that it keeps. Blocking.
    void save(Session& session);
    // Lets go of ended sessions that nobody asked for lately, but for the `keep` last used.
    void unload_idle(std::size_t keep);

    [[nodiscard]] const std::string& data_dir() const { return data_dir_; }

private:
    struct Entry {
        std::string id, stream_path, sidecar_path, label_path;
        std::optional<wire::RecordingId> recording;
        std::optional<SessionInfo> info;  // as of the stream's size then
        std::string search_text;          // of `info` with the label; empty: to be made
        Label label;
        bool label_unsaved = false;  // the disk refused it; tried again with the sidecar
        std::string label_problem;   // its file is there and cannot be read
        std::string unreadable;      // why nothing of the stream can be read, as it was then
        FileStatus unreadable_as;
        std::shared_ptr<Session> session;  // from when there is something of it to show
        std::int64_t last_used_ns = 0;     // when it was in memory; CLOCK_MONOTONIC
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
    // Finds what appeared and vanished; next to nothing when the directory is as it was.
    void scan();
    void learn(const EntryPtr& entry);
    // Reads unreadable files again if they changed.
    void recheck_unreadable();
    EntryPtr find(std::string_view id);
    Result<std::shared_ptr<Session>> load(const EntryPtr& entry, const Session::More& more = {});
    Result<bool> remove_when(const std::string& id, const std::function<Result<bool>(const Entry&)>& allowed);
    void label_new(const EntryPtr& entry);
    void save_label(const EntryPtr& entry);
    // catalog_list.cc
    void read_missing(std::chrono::steady_clock::time_point until);
    SessionInfo read_info(const EntryPtr& entry);
    std::optional<SessionInfo> shown_info(const EntryPtr& entry, std::chrono::steady_clock::time_point until);
    static bool in_use(const Entry& entry, const std::optional<FileStatus>& stream);

    const std::string data_dir_, sessions_dir_;
    const SessionLimits limits_;
    const Tags tags_;
    UniqueFd lock_;

    std::mutex mutex_;
    std::map<std::string, EntryPtr, std::less<>> entries_;
    std::int64_t scanned_ns_ = 0;  // modification time of sessions_dir_ that entries_ is up to; 0: scan anew
    std::mutex label_mutex_;       // one change of a label at a time
};

// Letters, digits, '.', '_' and '-' of `target`, the rest as '_', at most 40 characters; "session" when nothing is
// left.
std::string directory_word(std::string_view target);

// For the name of a new session: the local time and directory_word().
std::string session_word(std::string_view target);

// What the words of a SessionQuery are looked for in: id, name, target, host, agent, tags as "key=value" and events,
// in lower case (A to Z only). Words of the query are lowered in the same way.
std::string search_text(const SessionInfo& info);

// The recording id in the first batch of a stream.
Result<wire::RecordingId> recording_of_stream(const std::string& stream_path);

}  // namespace flamewire::server
