#include "agent/link/spool.h"

#include <algorithm>

#include "agent/link/batch_merge.h"
#include "wire/frame.h"

namespace flamewire::agent {
namespace {

// Each merge of batches with rows makes buckets four times as wide, up to 2.56 s. Wider ones would not fit bucket_ns,
// and a flame graph of a moment would not be possible.
constexpr std::uint32_t widening = 4;
constexpr std::uint32_t last_level = 4;

std::uint32_t bucket_of(std::uint32_t level) {
    std::uint32_t bucket_ns = wire::default_bucket_ns;
    for (; level > 0; --level) bucket_ns *= widening;
    return bucket_ns;
}

// Limit of merged batches, so that a reconnect sends small pieces and dropping one batch's rows does not lose too much.
constexpr std::size_t max_merged_bytes = std::size_t{256} << 10;

}  // namespace

Result<wire::Batch> Spool::decode(const SpooledBatch& spooled) const {
    const Bytes frame = as_bytes_view(spooled.frame);
    const wire::FrameHeader header = wire::decode_header(frame.first<wire::header_bytes>());
    const std::string bytes = TRY(wire::batch_bytes(header.flag, frame.subspan(wire::header_bytes)));
    wire::EventPeriods periods;
    if (const auto epoch = epochs_.find(spooled.epoch); epoch != epochs_.end()) periods = epoch->second.periods;
    return wire::decode(as_bytes_view(bytes), periods);
}

SpooledBatch Spool::encode(wire::Batch& batch, std::uint32_t level) const {
    const auto epoch = epochs_.find(batch.epoch);
    const wire::Frame frame =
        wire::batch_frame(wire::encode(batch, epoch == epochs_.end() ? wire::EventPeriods{} : epoch->second.periods));
    SpooledBatch spooled;
    spooled.first_seq = batch.first_seq == 0 ? batch.seq : batch.first_seq;
    spooled.seq = batch.seq;
    spooled.epoch = batch.epoch;
    spooled.frame = wire::encode_frame(frame.flag, frame.payload);
    spooled.samples = samples_in(batch);
    spooled.lost = lost_in(batch);
    spooled.level = batch.rows.empty() ? 0 : level;
    spooled.bare = is_bare(batch);
    return spooled;
}

void Spool::push(wire::Batch batch, const wire::EventPeriods& periods) {
    Epoch& epoch = epochs_[batch.epoch];
    if (epoch.first_seq == 0) epoch.first_seq = batch.seq;
    epoch.periods = periods;
    if (batch.epoch <= unusable_epoch_) {
        rows_to_losses(batch, wire::LossReason::other_server);
        drop_tables(batch);
    }
    state_gap(batch);
    last_seq_ = batch.seq;
    batches_.push_back(encode(batch, 0));
    bytes_ += batches_.back().frame.size();
    forget_epochs();
    shrink();
}

void Spool::state_gap(wire::Batch& batch) {
    if (!gap_) return;
    batch.first_seq = gap_->first_seq;
    if (gap_->samples != 0)
        batch.losses.push_back({wire::LossReason::other_server, gap_->samples, 0, batch.monotonic_ns, 0, 0});
    gap_.reset();
}

void Spool::acknowledge(std::uint64_t seq) {
    std::size_t gone = 0;
    for (; gone < batches_.size() && batches_[gone].seq <= seq; ++gone) {
        const SpooledBatch& batch = batches_[gone];
        bytes_ -= batch.frame.size();
        if (gone < next_) in_flight_bytes_ -= batch.frame.size();
        acknowledged_samples_ += batch.samples + batch.lost;
        acknowledged_seq_ = batch.seq;
    }
    batches_.erase(batches_.begin(), batches_.begin() + static_cast<std::ptrdiff_t>(gone));
    next_ -= std::min(next_, gone);
    if (gone > 0) forget_epochs();
}

bool Spool::resume_after(std::uint64_t seq) {
    acknowledge(seq);
    next_ = 0;
    in_flight_bytes_ = 0;
    gap_.reset();
    const std::uint64_t first_wanted = std::min(seq, last_seq_) + 1;
    const std::uint64_t first_kept = batches_.empty() ? last_seq_ + 1 : batches_.front().first_seq;
    if (first_kept > first_wanted) {
        // The samples of the missing batches are known only if the server has no batch at all: they are all
        // acknowledged ones. Otherwise counting them is left to the server.
        gap_ = Gap{first_wanted, first_wanted == 1 ? acknowledged_samples_ : 0};
        for (const auto& [number, epoch] : epochs_)
            if (epoch.first_seq < first_kept) unusable_epoch_ = std::max(unusable_epoch_, number);
    }
    for (std::size_t i = 0; i < batches_.size(); ++i) {
        // The server has a part of a merged batch. Sending all of it would count that part twice.
        const bool overlaps = batches_[i].first_seq < first_wanted;
        const bool unusable = batches_[i].epoch <= unusable_epoch_ && !batches_[i].bare;
        if (!overlaps && !unusable && !(i == 0 && gap_)) continue;
        Result<wire::Batch> batch = decode(batches_[i]);
        if (!batch) continue;
        if (overlaps || unusable) rows_to_losses(*batch, wire::LossReason::other_server);
        if (unusable) drop_tables(*batch);
        if (overlaps) batch->first_seq = first_wanted;
        state_gap(*batch);
        replace(i, encode(*batch, batches_[i].level));
    }
    return !epochs_.empty() && epochs_.rbegin()->first <= unusable_epoch_;
}

const SpooledBatch* Spool::next() {
    if (next_ == batches_.size()) return nullptr;
    SpooledBatch& batch = batches_[next_++];
    batch.sent = true;
    ever_sent_ = true;
    in_flight_bytes_ += batch.frame.size();
    return &batch;
}

std::uint64_t Spool::samples() const {
    std::uint64_t samples = 0;
    for (const SpooledBatch& batch : batches_) samples += batch.samples;
    return samples;
}

void Spool::replace(std::size_t index, SpooledBatch with) {
    bytes_ = bytes_ - batches_[index].frame.size() + with.frame.size();
    batches_[index] = std::move(with);
}

void Spool::forget_epochs() {
    const std::uint32_t oldest = batches_.empty() ? ~std::uint32_t{0} : batches_.front().epoch;
    while (epochs_.size() > 1 && epochs_.begin()->first < oldest) epochs_.erase(epochs_.begin());
}

void Spool::shrink() {
    while (bytes_ > limit_bytes_)
        if (!merge_one_pair() && !drop_oldest_rows() && !drop_dead_tables()) return;
}

// Merges the oldest pair with the finest resolution that can be merged. Neither may have been sent.
bool Spool::merge_one_pair() {
    for (std::uint32_t level = 0; level <= last_level; ++level) {
        for (std::size_t i = 0; i + 1 < batches_.size(); ++i) {
            const SpooledBatch &older = batches_[i], &newer = batches_[i + 1];
            if (older.sent || newer.sent || std::max(older.level, newer.level) != level) continue;
            if (older.epoch != newer.epoch && !older.bare && !newer.bare) continue;
            if (older.frame.size() + newer.frame.size() > max_merged_bytes) continue;
            Result<wire::Batch> first = decode(older), second = decode(newer);
            if (!first || !second || !can_merge(*first, *second)) continue;
            // A batch without rows does not reduce the resolution of the other.
            const bool both_have_rows = older.samples != 0 && newer.samples != 0;
            const std::uint32_t merged_level = both_have_rows ? std::min(level + 1, last_level) : level;
            const std::uint32_t bucket_ns = bucket_of(merged_level);
            if (bucket_ns % first->bucket_ns != 0 || bucket_ns % second->bucket_ns != 0) continue;
            wire::Batch merged = merge(std::move(*first), std::move(*second), bucket_ns);
            replace(i, encode(merged, merged_level));
            bytes_ -= batches_[i + 1].frame.size();
            batches_.erase(batches_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            return true;
        }
    }
    return false;
}

bool Spool::drop_oldest_rows() {
    for (std::size_t i = 0; i < batches_.size(); ++i) {
        if (batches_[i].sent || batches_[i].samples == 0) continue;
        Result<wire::Batch> batch = decode(batches_[i]);
        if (!batch) continue;
        rows_to_losses(*batch, wire::LossReason::spool_full);
        replace(i, encode(*batch, 0));
        return true;
    }
    return false;
}

// Drops the tables of a finished epoch without remaining rows, which nothing can refer to. All remaining batches of the
// epoch become bare together, because a server rejects tables with a gap.
bool Spool::drop_dead_tables() {
    for (std::size_t i = 0; i < batches_.size(); ++i) {
        const std::uint32_t epoch = batches_[i].epoch;
        if (batches_[i].sent || batches_[i].bare) continue;
        if (epoch == epochs_.rbegin()->first) return false;
        const auto rest = [&](auto&& wanted) {
            return std::any_of(batches_.begin() + static_cast<std::ptrdiff_t>(i), batches_.end(),
                               [&](const SpooledBatch& later) { return later.epoch == epoch && wanted(later); });
        };
        if (rest([](const SpooledBatch& later) { return later.samples != 0 || later.sent; })) continue;
        bool dropped = false;
        for (std::size_t k = i; k < batches_.size() && batches_[k].epoch == epoch; ++k) {
            Result<wire::Batch> batch = decode(batches_[k]);
            if (!batch) continue;
            drop_tables(*batch);
            replace(k, encode(*batch, 0));
            dropped = true;
        }
        if (dropped) return true;
    }
    return false;
}

}  // namespace flamewire::agent
