// All sessions: those on disk under DATA_DIR/sessions and those in memory. A session is a directory NAME/stream.flw
// with a sidecar session.json, or a single file NAME.flw that a user put there. The disk is authoritative: the sidecar
// is rebuilt from the stream if it is missing or outdated. The user's label is in label.json beside the stream
// (NAME.flw.label.json for a single file).
// Made of an index, which all parts share, the labels and the list. Thread-safe, as each part is; their headers state
// what their mutexes protect. Methods marked "blocking" read files and belong on a worker.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "profile/formats/import.h"
#include "server/session/catalog_index.h"
#include "server/session/catalog_labels.h"
#include "server/session/catalog_list.h"
#include "server/session/label.h"
#include "server/session/session.h"

namespace flamewire::server {

class Catalog {
public:
    // Creates and locks the directories. busy: another server uses them. New sessions get `tags`. Blocking.
    static Result<std::unique_ptr<Catalog>> open(const std::string& data_dir, const SessionLimits& limits,
                                                 Tags tags = {});

    // For commands that only read, possibly while a server uses the directory. Takes no lock. Blocking.
    static std::unique_ptr<Catalog> open_read_only(const std::string& data_dir, const SessionLimits& limits);

    // The list of all sessions.
    [[nodiscard]] CatalogList& list() { return list_; }

    // The session in memory, or null. Cheap. loaded(): only if it is complete. opened(): also while it is still being
    // read.
    std::shared_ptr<Session> loaded(std::string_view id);
    std::shared_ptr<Session> opened(std::string_view id);
    // In memory or on disk. Blocking only if a new file may have appeared.
    bool exists(std::string_view id) { return index_.exists(id); }
    // Loads the session if necessary; for `on_partial`, see Session::load(). not_found. Blocking.
    Result<std::shared_ptr<Session>> get(std::string_view id, const Session::OnPartial& on_partial = {});
    // The session of a recording, from memory or disk, ready to be continued. Null if there is none. Blocking.
    Result<std::shared_ptr<Session>> find_recording(const wire::RecordingId& recording);
    // Creates a session. `target` goes into the directory name; for `owner_key`, see Session::create(). Blocking.
    Result<std::shared_ptr<Session>> create(const wire::RecordingId& recording, std::string_view target,
                                            const std::string& owner_key = {});

    // Adds a copy of a session file written elsewhere and returns its id. No agent continues it. Blocking.
    Result<std::string> import_stream(const std::string& path, std::string_view name);

    // Adds the session of an unpacked archive (archive.h). It keeps its id if that is free. Blocking.
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
    using EntryPtr = CatalogIndex::EntryPtr;

    Catalog(std::string data_dir, const SessionLimits& limits, Tags tags, UniqueFd lock)
        : data_dir_(std::move(data_dir)),
          limits_(limits),
          lock_(std::move(lock)),
          index_(data_dir_ + "/sessions", static_cast<bool>(lock_)),
          labels_(index_, std::move(tags)),
          list_(index_, limits_) {}

    Result<std::shared_ptr<Session>> load(const EntryPtr& entry, const Session::OnPartial& on_partial = {});
    Result<bool> remove_if_allowed(const std::string& id,
                                   const std::function<Result<bool>(const CatalogEntry&)>& allowed);

    const std::string data_dir_;
    const SessionLimits limits_;
    const UniqueFd lock_;  // of the data directory, if this is the server
    CatalogIndex index_;
    CatalogLabels labels_;
    CatalogList list_;
};

}  // namespace flamewire::server
