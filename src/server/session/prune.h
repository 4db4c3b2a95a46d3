// Applies the retention rules (--keep-count, --keep-days, --keep-size): decides which sessions to delete, and deletes
// them. Pinned sessions are exempt: they are neither counted nor deleted. Sessions in use are counted but not deleted.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/session/catalog.h"

namespace flamewire::server {

// 0: no such rule.
struct RetentionRules {
    std::uint64_t count = 0;       // sessions
    std::uint64_t days = 0;        // since the session was last written
    std::uint64_t size_bytes = 0;  // of all their files
    [[nodiscard]] bool any() const { return count != 0 || days != 0 || size_bytes != 0; }
};

// "500M", "20G", "2T" in units of 1024; a plain number is bytes. invalid: one sentence.
Result<std::uint64_t> parse_size(std::string_view text);

struct Pruned {
    std::string id, reason;  // "--keep-count 3: it was the oldest of 4"
    bool operator==(const Pruned&) const = default;
};

// The sessions to delete, oldest first. The newest session is deleted only for its age, never for count or size: a
// recording must not disappear as it ends.
std::vector<Pruned> select_expired(std::vector<StoredSession> sessions, const RetentionRules& rules,
                                   std::int64_t now_ns);

// Applies the rules; one thread at a time.
class Pruner {
public:
    Pruner(Catalog& catalog, RetentionRules rules) : catalog_(catalog), rules_(rules) {}
    // Deletes those sessions and logs a line for each. Returns how many were deleted. Blocking.
    std::size_t run();

private:
    Catalog& catalog_;
    const RetentionRules rules_;
    std::set<std::string> refused_;  // failed deletions that are already logged
};

}  // namespace flamewire::server
