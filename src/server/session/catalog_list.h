// The list of the catalog's sessions: facts about each without reading its stream, the search, and the state that the
// retention rules use. Thread-safe: it has no state but the index. Blocking.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/session/catalog_index.h"
#include "server/session/session.h"
#include "server/session/session_info.h"

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

class CatalogList {
public:
    using EntryPtr = CatalogIndex::EntryPtr;
    using Clock = std::chrono::steady_clock;

    CatalogList(CatalogIndex& index, const SessionLimits& limits) : index_(index), limits_(limits) {}

    // Every session, newest first.
    std::vector<SessionInfo> all();
    // Scans everything in memory, but compares only the sessions of the page with the disk.
    SessionPage search(const SessionQuery& query);
    std::vector<StoredSession> stored();
    // A message for each file without any readable record. These files are not listed as sessions and are never
    // deleted.
    std::vector<std::string> unreadable();

    // The info as the list shows it now. If the file is gone, drops the entry and returns nothing. `until`: a missing
    // sidecar is rebuilt only before this time.
    std::optional<SessionInfo> current_info(const EntryPtr& entry, Clock::time_point until);
    // Whether a session is needed, so that no rule deletes it. Call it while the index is locked. `stream`: its file.
    static bool in_use(const CatalogEntry& entry, const std::optional<FileStatus>& stream);

private:
    struct Row {
        std::int64_t started_ns = 0;
        EntryPtr entry;
    };
    std::vector<Row> matches(std::string_view words, std::uint64_t& size_bytes);
    void rebuild_sidecars(Clock::time_point until);
    SessionInfo rebuild_sidecar(const EntryPtr& entry);
    std::optional<SessionInfo> info_on_disk(const EntryPtr& entry, std::optional<SessionInfo> known,
                                            Clock::time_point until);

    CatalogIndex& index_;
    const SessionLimits limits_;
};

// The text in which the words of a SessionQuery are searched: id, name, target, host, agent, tags as "key=value", and
// events. It is in lower case (A to Z only), as are the query's words.
std::string search_text(const SessionInfo& info);

}  // namespace flamewire::server
