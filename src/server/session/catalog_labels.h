// Names, tags and pins of the catalog's sessions, in memory and in their files. Thread-safe: one mutex serializes
// changes with their files. The mutex of CatalogIndex is locked after it.
#pragma once

#include <mutex>
#include <utility>

#include "base/result.h"
#include "server/session/catalog_index.h"
#include "server/session/label.h"

namespace flamewire::server {

class CatalogLabels {
public:
    using EntryPtr = CatalogIndex::EntryPtr;

    // New sessions get `tags`.
    CatalogLabels(CatalogIndex& index, Tags tags) : index_(index), tags_(std::move(tags)) {}

    // Gives a session of this run the server's tags. Blocking.
    void apply_default_tags(const EntryPtr& entry);
    // invalid: over a limit. Blocking.
    Result<bool> change(const EntryPtr& entry, const LabelChange& change);
    // Writes the label if the disk refused it before. Blocking.
    void save(const EntryPtr& entry);

private:
    void save_locked(const EntryPtr& entry);

    CatalogIndex& index_;
    const Tags tags_;
    std::mutex mutex_;
};

}  // namespace flamewire::server
