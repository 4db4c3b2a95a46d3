#include "cli/live_profile.h"

#include <filesystem>

#include "base/bytes.h"
#include "symbol/symbolizer.h"
#include "wire/batch.h"

namespace flamewire::cli {

Result<bool> LiveProfile::take() {
    if (!reader_) {
        std::error_code error;
        if (std::filesystem::file_size(path_, error) < wire::session_header_bytes || error) return false;
        reader_ = TRY(wire::SessionReader::open(path_));
    }
    bool changed = false;
    while (const auto record = TRY(reader_->next())) changed = TRY(apply(*record)) || changed;
    if (!changed) return false;
    for (const profile::PendingModule& pending : store_.take_pending())
        store_.set_frames(pending, symbolizer_.resolve(store_.modules()[pending.module].identity, pending.addresses));
    return true;
}

Result<bool> LiveProfile::apply(const wire::SessionRecord& record) {
    if (record.frame.flag != wire::Flag::batch && record.frame.flag != wire::Flag::batch_zstd) return false;
    const std::string bytes = TRY(wire::batch_bytes(record.frame));
    const wire::BatchHeader header = TRY(wire::peek_header(as_bytes_view(bytes)));
    if (header.epoch != epoch_) periods_ = {};
    epoch_ = header.epoch;
    return store_.apply(TRY(wire::decode(as_bytes_view(bytes), periods_)));
}

}  // namespace flamewire::cli
