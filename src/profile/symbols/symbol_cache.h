// The symbol cache of a session: the names that symbolizers found for its addresses, as values and as bytes. With it, a
// session has names on machines that lack its programs. docs/kept.proto is the schema. Pure: the owner reads and writes
// the file.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/code_address.h"
#include "base/result.h"
#include "profile/store/model.h"
#include "profile/store/store.h"
#include "symbol/types/module_identity.h"
#include "symbol/types/module_report.h"
#include "symbol/types/source_frames.h"

namespace flamewire::profile {

// Of the unpacked message. Above this size an encoder omits modules and a decoder returns an error.
inline constexpr std::size_t max_symbol_cache_bytes = std::size_t{64} << 20;

struct CachedModule {
    symbol::ModuleIdentity identity;
    symbol::ModuleReport report;         // as of that time; `tried` is not kept
    std::vector<CodeAddress> addresses;  // ascending; each has a frame
    symbol::Resolved frames;             // of `addresses`

    // The frames of the wanted addresses, in the order of `wanted`; none for addresses that are not kept.
    [[nodiscard]] symbol::Resolved resolve(std::span<const CodeAddress> wanted) const;
};

// The kept module of that identity; nullptr if there is none.
const CachedModule* find_cached(std::span<const CachedModule> modules, const symbol::ModuleIdentity& identity);

// Adds a module to a list. If the list has a module of the same identity, that one takes the addresses, and the report
// if it describes better symbols.
void merge_cached(std::vector<CachedModule>& modules, CachedModule module);

// All addresses of a store that a symbolizer has named, by module. Reports are empty, because only the owner has them.
struct SymbolizedModule {
    ModuleId module = 0;
    CachedModule cached;
};
std::vector<SymbolizedModule> symbolized_modules(const Store& store);

struct EncodedSymbolCache {
    std::string bytes;         // one zstd frame
    std::size_t left_out = 0;  // number of modules that did not fit
};
EncodedSymbolCache encode_symbol_cache(std::span<const CachedModule> modules);
// invalid: not a file of this format. too_large: it unpacks to more than the limit.
Result<std::vector<CachedModule>> decode_symbol_cache(Bytes bytes);

// The frames of `first`; for addresses without frames there, those of `second`. Both must be for the same addresses.
symbol::Resolved coalesce(const symbol::Resolved& first, const symbol::Resolved& second);

}  // namespace flamewire::profile
