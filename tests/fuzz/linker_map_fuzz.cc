// Arbitrary bytes as a linker map: each name must be inside the pieces of the text, and no size may overflow the
// addresses.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbol/files/linker_map.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto map = flamewire::symbol::parse_linker_map({reinterpret_cast<const char*>(data), size});
    if (!map) return 0;
    for (const auto& symbol : map->symbols)
        if (symbol.name.empty() || symbol.size == 0 || symbol.address + symbol.size < symbol.address) std::abort();
    return 0;
}
