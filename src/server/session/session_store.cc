#include "server/session/session_store.h"

#include "base/file.h"

namespace flamewire::server {

const std::string& own_boot_id() {
    static const std::string id = [] {
        auto text = read_file("/proc/sys/kernel/random/boot_id", 128).value_or("");
        while (!text.empty() && text.back() == '\n') text.pop_back();
        return text;
    }();
    return id;
}

SessionStore::Applied SessionStore::apply(const wire::Batch& batch, const std::optional<MissingTime>& missing) {
    Applied applied;
    const std::unique_lock lock(mutex_);
    if (missing && missing->start_ns != 0) store_.note_missing(missing->start_ns, missing->end_ns);
    const bool was_full = store_.tables_full();
    applied.result = store_.apply(batch);
    applied.filled = store_.tables_full() && !was_full;
    if (store_.row_count() != 0 && (first_row_ns_ == 0 || store_.first_ns() < first_row_ns_))
        first_row_ns_ = store_.first_ns();
    applied.same_boot = store_.recording() && !own_boot_id().empty() && store_.recording()->boot_id == own_boot_id();
    return applied;
}

}  // namespace flamewire::server
