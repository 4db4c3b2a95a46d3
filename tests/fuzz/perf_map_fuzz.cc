// Arbitrary bytes as a perf map: each name must be inside the text, and at the addresses of its line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "symbol/files/perf_map.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const flamewire::symbol::PerfMap map(text);
    for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{0x1000}, ~std::uint64_t{0}})
        if (const auto name = map.find(address); !name.empty() && text.find(name) == std::string::npos) std::abort();
    return 0;
}
