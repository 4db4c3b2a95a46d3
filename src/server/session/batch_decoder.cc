#include "server/session/batch_decoder.h"

#include <utility>

namespace flamewire::server {

Result<BatchDecoder::Decoded> BatchDecoder::decode(const wire::BatchHeader& header, Bytes bytes) const {
    Decoded decoded{.header = header, .batch = {}, .periods = {}, .repair = repair_};
    if (header.epoch == sequence_.epoch()) decoded.periods = periods_;
    decoded.repair.begin(header.epoch, sequence_.classify(header) == Sequence::Kind::gap);
    decoded.batch = TRY(wire::decode(bytes, decoded.periods, decoded.repair.events()));
    return decoded;
}

std::uint64_t BatchDecoder::accept(Decoded& decoded) {
    periods_ = std::move(decoded.periods);
    const std::uint64_t missing = sequence_.advance(decoded.header);
    decoded.repair.apply(decoded.batch);
    return missing;
}

void BatchDecoder::finish(Decoded& decoded, bool applied) {
    if (applied)
        repair_ = std::move(decoded.repair);
    else
        repair_.begin(decoded.header.epoch, true);
}

}  // namespace flamewire::server
