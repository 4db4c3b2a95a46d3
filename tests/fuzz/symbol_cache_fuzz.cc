// Arbitrary bytes as the decompressed message of a symbol cache: refused, or modules without missing frames, which
// are the same after writing and reading.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "profile/symbols/symbol_cache.h"
#include "wire/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    const std::string packed = wire::compress({reinterpret_cast<const char*>(data), size});
    const auto modules = profile::decode_symbol_cache(as_bytes_view(packed));
    if (!modules) return 0;
    for (const profile::CachedModule& module : *modules) {
        if (module.frames.first.size() != module.addresses.size() + 1) std::abort();
        if (module.resolve(module.addresses).frames.size() != module.frames.frames.size()) std::abort();
    }
    const std::string written = profile::encode_symbol_cache(*modules).bytes;
    const auto again = profile::decode_symbol_cache(as_bytes_view(written));
    if (!again || profile::encode_symbol_cache(*again).bytes != written) std::abort();
    return 0;
}
