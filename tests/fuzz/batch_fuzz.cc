// Arbitrary bytes as a batch. If it decodes, it must be the same after encoding and decoding.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "wire/batch.h"

using namespace flamewire;
using namespace flamewire::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Bytes bytes = std::as_bytes(std::span(data, size));
    EventPeriods periods{0, 1'001'001};
    auto batch = decode(bytes, periods);
    const auto header = peek_header(bytes);
    if (!batch) return 0;
    if (!header || header->seq != batch->seq || header->epoch != batch->epoch) std::abort();
    // Encoding sorts and merges rows, so only the second round must not change anything.
    const std::string first = encode(*batch, periods);
    EventPeriods same = periods;
    auto again = decode(as_bytes_view(first), same);
    if (!again || encode(*again, periods) != first || same != periods) std::abort();
    return 0;
}
