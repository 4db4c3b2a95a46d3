// Any bytes as a batch. What decodes must be the same after encode and decode.
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
    // Encoding sorts and adds up; after one round nothing changes any more.
    const std::string first = encode(*batch, periods);
    EventPeriods same = periods;
    auto again = decode(as_bytes_view(first), same);
    if (!again || encode(*again, periods) != first || same != periods) std::abort();
    return 0;
}
