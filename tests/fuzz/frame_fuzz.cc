// Arbitrary byte streams for the frame decoder, in pieces whose length is the first byte. Batches are decompressed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "wire/frame.h"

using namespace flamewire;
using namespace flamewire::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const Bytes bytes = std::as_bytes(std::span(data, size)).subspan(1);
    const std::size_t piece = std::size_t{data[0]} + 1;
    FrameDecoder decoder(1 << 16);
    std::size_t taken = 0;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
        decoder.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
        for (;;) {
            const auto frame = decoder.next();
            if (!frame || !*frame) break;
            taken += header_bytes + (*frame)->payload.size();
            if (taken > bytes.size()) std::abort();
            const auto batch = batch_bytes(**frame);
            // A decompressed batch must be the same after compression and decompression.
            if (batch && *batch_bytes(batch_frame(*batch)) != *batch) std::abort();
        }
    }
    return 0;
}
