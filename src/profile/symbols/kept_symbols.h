// What symbolizers found of a session's addresses, as values and as bytes, so that a session keeps its names where its
// programs are not. docs/kept.proto is the schema. Pure: the owner reads and writes the file.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/store/model.h"
#include "profile/store/store.h"
#include "symbol/types/module_identity.h"
#include "symbol/types/module_report.h"
#include "symbol/types/source_frames.h"

namespace flamewire::profile {

// Of the unpacked message. Beyond it an encoder leaves modules out and a decoder refuses.
inline constexpr std::size_t max_kept_symbol_bytes = std::size_t{64} << 20;

struct KeptModule {
    symbol::ModuleIdentity identity;
    symbol::ModuleReport report;             // as it was then; `tried` is not kept
    std::vector<symbol::Address> addresses;  // ascending by vaddr, then return_address; each has a frame
    symbol::Resolved frames;                 // of these

    // Frames of the ones that are kept, none of the others, in the order asked for.
    [[nodiscard]] symbol::Resolved resolve(std::span<const symbol::Address> wanted) const;
};

// The kept module of that identity; nullptr when there is none.
const KeptModule* find_kept(std::span<const KeptModule> modules, const symbol::ModuleIdentity& identity);

// Adds a module to a list; one of the same identity takes its addresses, and its report when that is of better symbols.
void add_kept(std::vector<KeptModule>& modules, KeptModule module);

// All addresses of a store that a symbolizer has named, by module. Reports are empty: the owner has them.
struct NamedModule {
    ModuleId module = 0;
    KeptModule kept;
};
std::vector<NamedModule> named_modules(const Store& store);

struct EncodedSymbols {
    std::string bytes;         // one zstd frame
    std::size_t left_out = 0;  // modules that found no room
};
EncodedSymbols encode_kept(std::span<const KeptModule> modules);
// invalid: not such a file; too_large: it unpacks to more than the limit.
Result<std::vector<KeptModule>> decode_kept(Bytes bytes);

// The answers of `first`, and where it has no frames those of `second`, which is of the same addresses.
symbol::Resolved first_known(const symbol::Resolved& first, const symbol::Resolved& second);

}  // namespace flamewire::profile
