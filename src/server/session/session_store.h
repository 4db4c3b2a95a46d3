// The rows and tables of a session in memory, and their lock. Thread-safe: queries run in parallel, a change runs
// alone. The mutex protects the store and nothing else. It is locked after the mutexes of SessionStream and
// SessionSymbols.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "base/result.h"
#include "profile/store/store.h"
#include "server/session/fair_shared_mutex.h"
#include "server/session/file_damage.h"
#include "wire/batch.h"

namespace flamewire::server {

class SessionStore {
public:
    explicit SessionStore(const profile::StoreLimits& limits) : store_(limits) {}

    // A query must not start another one on this store. It can block behind a batch that waits for another query, so do
    // not call it on the io thread.
    template <class Query>
    auto read(Query query) const {
        const std::shared_lock lock(mutex_);
        return query(store_);
    }
    template <class Change>
    auto change(Change change) {
        const std::unique_lock lock(mutex_);
        return change(store_);
    }

    struct Applied {
        Result<bool> result = true;  // the error of a batch that refers to something that was never sent
        bool filled = false;         // the tables became full
        bool same_boot = false;      // the recording is of this machine, since it was started
    };
    // `missing`: the time without samples before the batch.
    Applied apply(const wire::Batch& batch, const std::optional<MissingTime>& missing);

    // The earliest bucket ever seen, which is ms 0 of the session, whatever is dropped later. 0: there is none.
    [[nodiscard]] std::uint64_t first_row_ns() const { return first_row_ns_; }

private:
    mutable FairSharedMutex mutex_;
    profile::Store store_;
    std::atomic<std::uint64_t> first_row_ns_{0};
};

// This machine's boot id. Empty if it cannot be read.
const std::string& own_boot_id();

}  // namespace flamewire::server
