#include <cstddef>
#include <cstdint>
#include <string_view>

#include "views/print_format.h"

using namespace flamewire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const views::ValueStyle& style : views::value_styles(text, {"a", "state"}))
        for (const std::uint64_t value : {0ULL, 1ULL, 3ULL, ~0ULL}) (void)views::named_value(style, value);
    return 0;
}
