// Which sessions the rules of keeping delete (--keep-count, --keep-days, --keep-size), and the deleting. Pinned sessions
// stand outside of the rules: they neither count nor go. What is in use counts and stays.
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
struct KeepRules {
    std::uint64_t count = 0;       // sessions
    std::uint64_t days = 0;        // since a session was written last
    std::uint64_t size_bytes = 0;  // of all their files
    [[nodiscard]] bool any() const { return count != 0 || days != 0 || size_bytes != 0; }
};

// "500M", "20G", "2T", in units of 1024; a number alone is bytes. invalid: one sentence.
Result<std::uint64_t> parse_size(std::string_view text);

struct Pruned {
    std::string id, reason;  // "--keep-count 3: it was the oldest of 4"
    bool operator==(const Pruned&) const = default;
};

// What is to go, the oldest first. The newest session goes by its age only, never for count or size: a recording must not
// vanish as it ends.
std::vector<Pruned> to_prune(std::vector<StoredSession> sessions, const KeepRules& rules, std::int64_t now_ns);

// Applies the rules; one thread at a time.
class Pruner {
public:
    Pruner(Catalog& catalog, KeepRules rules) : catalog_(catalog), rules_(rules) {}
    // Deletes what is to go, with a line in the log for each; how many went. Blocking.
    std::size_t run();

private:
    Catalog& catalog_;
    const KeepRules rules_;
    std::set<std::string> refused_;  // that they could not be deleted was said
};

}  // namespace flamewire::server
