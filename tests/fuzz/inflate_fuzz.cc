// Arbitrary bytes as a zlib stream: the output must equal that of zlib itself, if the stream also has its checksum.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "elf/inflate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    constexpr std::size_t limit = 100000;
    const auto ours = elf::decompress_zlib(Bytes(reinterpret_cast<const std::byte*>(data), size), limit);
    if (ours && ours->size() > limit) std::abort();

    std::string theirs(limit, '\0');
    uLongf got = limit;
    if (uncompress(reinterpret_cast<Bytef*>(theirs.data()), &got, data, size) != Z_OK) return 0;
    theirs.resize(got);
    if (!ours || *ours != theirs) std::abort();
    return 0;
}
