// Arbitrary bytes as an xz stream: the output must not exceed the limit.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "elf/xz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    constexpr std::size_t limit = 100000;
    const auto plain = elf::decompress_xz(Bytes(reinterpret_cast<const std::byte*>(data), size), limit);
    if (plain && plain->size() > limit) std::abort();
    return 0;
}
