#include "server/session/sequence.h"

namespace flamewire::server {
namespace {

std::uint64_t first_of(const wire::BatchHeader& header) {
    return header.first_seq == 0 ? header.seq : header.first_seq;
}

}  // namespace

Sequence::Kind Sequence::classify(const wire::BatchHeader& header) const {
    if (header.seq == 0 || header.epoch == 0 || first_of(header) > header.seq) return Kind::malformed;
    if (header.seq <= last_seq_) return Kind::duplicate;
    if (first_of(header) <= last_seq_) return Kind::overlap;
    if (header.epoch < epoch_) return Kind::stale;
    return first_of(header) > last_seq_ + 1 ? Kind::gap : Kind::next;
}

std::uint64_t Sequence::advance(const wire::BatchHeader& header) {
    const std::uint64_t missing = first_of(header) - last_seq_ - 1;
    missing_ += missing;
    last_seq_ = header.seq;
    epoch_ = header.epoch;
    return missing;
}

}  // namespace flamewire::server
