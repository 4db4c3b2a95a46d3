// A request and a symbol, divided by the first line break: patterns and mangled names must stay within bounds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "elf/function_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using flamewire::elf::matches_function_name;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::size_t end = text.find('\n');
    const std::string_view request = text.substr(0, end);
    const std::string_view symbol = end == std::string_view::npos ? text : text.substr(end + 1);
    if (matches_function_name(request, symbol) && request.empty()) std::abort();
    if (!symbol.empty() && !matches_function_name(symbol, symbol)) std::abort();
    if (!matches_function_name("*", symbol)) std::abort();
    // Names are written once, constructors twice, with "::" and "(anonymous namespace)".
    if (flamewire::elf::function_path(symbol).size() > 2 * symbol.size() + 600) std::abort();
    return 0;
}
