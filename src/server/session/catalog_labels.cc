#include "server/session/catalog_labels.h"

#include <spdlog/spdlog.h>

#include "server/session/disk_remedy.h"

namespace flamewire::server {

void CatalogLabels::apply_default_tags(const EntryPtr& entry) {
    if (tags_.empty()) return;
    const std::lock_guard labelling(mutex_);
    {
        const auto lock = index_.lock();
        entry->label.tags = tags_;
        if (entry->session) entry->session->status().set_label(entry->label);
        if (entry->info) entry->info->label = entry->label;
        entry->search_text.clear();
        entry->label_unsaved = true;
    }
    save_locked(entry);
}

void CatalogLabels::save(const EntryPtr& entry) {
    const std::lock_guard labelling(mutex_);
    save_locked(entry);
}

// If the disk is full, writing is retried with the sidecar.
void CatalogLabels::save_locked(const EntryPtr& entry) {
    Label label;
    {
        const auto lock = index_.lock();
        if (!entry->label_unsaved) return;
        label = entry->label;
    }
    const auto written = write_label(entry->label_path, label);
    if (!written) spdlog::warn("the tags of session {} are not on disk yet: {}", entry->id, written.error().message);
    const auto lock = index_.lock();
    entry->label_unsaved = !written;
}

Result<bool> CatalogLabels::change(const EntryPtr& entry, const LabelChange& change) {
    const std::lock_guard labelling(mutex_);
    Label before;
    {
        const auto lock = index_.lock();
        before = entry->label;
    }
    const Label label = TRY(changed(before, change));
    if (const auto written = write_label(entry->label_path, label); !written)
        return std::unexpected(with_disk_remedy(written.error()));
    const auto lock = index_.lock();
    entry->label = label;
    entry->label_unsaved = false;
    entry->label_problem.clear();
    entry->search_text.clear();
    if (entry->session) entry->session->status().set_label(label);
    if (entry->info) entry->info->label = label;
    return true;
}

}  // namespace flamewire::server
