// Arbitrary bytes as a part of a module file: refused, or within its stream and file, and the same after writing it
// again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "wire/module_chunk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire::wire;
    const auto chunk = decode_module_chunk({reinterpret_cast<const char*>(data), size});
    if (!chunk) return 0;
    if (chunk->bytes.size() > max_module_chunk || chunk->offset + chunk->bytes.size() > chunk->total) std::abort();
    for (const FileRange& range : chunk->ranges)
        if (range.offset + range.size > chunk->file_size || range.offset + range.size < range.offset) std::abort();
    const auto again = decode_module_chunk(encode_module_chunk(*chunk));
    if (!again || *again != *chunk) std::abort();
    return 0;
}
