// Names, tags and pins of sessions, in memory and in their files.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "server/session/catalog.h"
#include "server/session/disk_remedy.h"

namespace flamewire::server {

// Gives a session of this run the server's tags.
void Catalog::apply_default_tags(const EntryPtr& entry) {
    if (tags_.empty()) return;
    const std::lock_guard labelling(label_mutex_);
    {
        const std::lock_guard lock(mutex_);
        entry->label.tags = tags_;
        if (entry->session) entry->session->status().set_label(entry->label);
        if (entry->info) entry->info->label = entry->label;
        entry->search_text.clear();
        entry->label_unsaved = true;
    }
    save_label(entry);
}

// Called with label_mutex_ held. If the disk is full, writing is retried with the sidecar.
void Catalog::save_label(const EntryPtr& entry) {
    Label label;
    {
        const std::lock_guard lock(mutex_);
        if (!entry->label_unsaved) return;
        label = entry->label;
    }
    const auto written = write_label(entry->label_path, label);
    if (!written) spdlog::warn("the tags of session {} are not on disk yet: {}", entry->id, written.error().message);
    const std::lock_guard lock(mutex_);
    entry->label_unsaved = !written;
}

Result<SessionInfo> Catalog::relabel(std::string_view id, const LabelChange& change) {
    const EntryPtr entry = exists(id) ? find(id) : nullptr;
    if (!entry) return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
    {
        const std::lock_guard labelling(label_mutex_);
        Label before;
        {
            const std::lock_guard lock(mutex_);
            before = entry->label;
        }
        const Label label = TRY(changed(before, change));
        if (const auto written = write_label(entry->label_path, label); !written)
            return std::unexpected(with_disk_remedy(written.error()));
        const std::lock_guard lock(mutex_);
        entry->label = label;
        entry->label_unsaved = false;
        entry->label_problem.clear();
        entry->search_text.clear();
        if (entry->session) entry->session->status().set_label(label);
        if (entry->info) entry->info->label = label;
    }
    auto info = current_info(entry, std::chrono::steady_clock::time_point::max());
    if (!info) return fail(ErrorCode::not_found, fmt::format("there is no session {}", id));
    return *std::move(info);
}

}  // namespace flamewire::server
