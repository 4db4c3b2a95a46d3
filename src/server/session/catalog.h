// All sessions: those on disk under DATA_DIR/sessions and those in memory. A session is a directory NAME/stream.flw
// with a sidecar session.json, or a single file NAME.flw that somebody put there. The disk is the truth: the sidecar is
// rebuilt from the stream when it is missing or older. Thread-safe; methods marked "blocking" read files and belong on
// a worker.
#pragma once

#include <atomic>
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
#include "base/result.h"
#include "profile/formats/import.h"
#include "server/session/session.h"

namespace flamewire::server {

class Catalog {
public:
    // Creates the directories and locks them; busy when another server has them. Blocking.
    static Result<std::unique_ptr<Catalog>> open(const std::string& data_dir, profile::StoreLimits limits);

    // For who only looks, beside a server that may have them. Blocking.
    static std::unique_ptr<Catalog> look_at(const std::string& data_dir, profile::StoreLimits limits);

    // Every session, newest first. Blocking.
    std::vector<SessionInfo> list();

    // In memory now, or nothing. Cheap.
    std::shared_ptr<Session> loaded(std::string_view id);
    // In memory or on disk. Blocking only when a new file may have appeared.
    bool exists(std::string_view id);
    // Loads it when necessary. not_found. Blocking.
    Result<std::shared_ptr<Session>> get(std::string_view id);
    // The session of a recording, from memory or disk, ready to be continued; nothing when there is none. Blocking.
    Result<std::shared_ptr<Session>> of_recording(const wire::RecordingId& recording);
    // Begins one. `target` names the directory. Blocking.
    Result<std::shared_ptr<Session>> create(const wire::RecordingId& recording, std::string_view target);

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

    // Removes it from disk; busy while its agent is attached. Blocking.
    Result<bool> remove(const std::string& id);

    // In memory: all, and those that an agent feeds or may continue.
    std::vector<std::shared_ptr<Session>> all_loaded();
    std::vector<std::shared_ptr<Session>> live();

    // Writes the sidecar, and of a session that no agent feeds the symbols that it keeps. Blocking.
    void save(Session& session);
    // Lets go of ended sessions that nobody asked for lately, but for the `keep` last used.
    void unload_idle(std::size_t keep);

    [[nodiscard]] const std::string& data_dir() const { return data_dir_; }

private:
    struct Entry {
        std::string id, stream_path, sidecar_path;
        std::optional<wire::RecordingId> recording;
        std::optional<SessionInfo> info;  // as of the stream's size then
        std::shared_ptr<Session> session;
        bool cannot_continue = false;  // damaged in the middle: a returning recording gets a new session
        std::mutex loading;
    };
    using EntryPtr = std::shared_ptr<Entry>;

    Catalog(std::string data_dir, profile::StoreLimits limits, UniqueFd lock)
        : data_dir_(std::move(data_dir)),
          sessions_dir_(data_dir_ + "/sessions"),
          limits_(limits),
          lock_(std::move(lock)) {}

    void scan();
    EntryPtr find(std::string_view id);
    Result<std::shared_ptr<Session>> load(const EntryPtr& entry);
    SessionInfo info_of(const EntryPtr& entry, bool& budget_left);

    const std::string data_dir_, sessions_dir_;
    const profile::StoreLimits limits_;
    UniqueFd lock_;

    std::mutex mutex_;
    std::map<std::string, EntryPtr, std::less<>> entries_;
};

// Letters, digits, '.', '_' and '-' of `target`, the rest as '_', at most 40 characters; "session" when nothing is
// left.
std::string directory_word(std::string_view target);

// For the name of a new session: the local time and directory_word().
std::string session_word(std::string_view target);

// The recording id in the first batch of a stream.
Result<wire::RecordingId> recording_of_stream(const std::string& stream_path);

}  // namespace flamewire::server
