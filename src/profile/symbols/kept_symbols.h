// The names that symbolizers found for a session's addresses, as values and as bytes, so that a session keeps its names
// on machines that lack its programs. docs/kept.proto is the schema. Pure: the owner reads and writes the file.
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
inline constexpr std::size_t max_kept_symbol_bytes = std::size_t{64} << 20;

struct KeptModule {
    symbol::ModuleIdentity identity;
    symbol::ModuleReport report;         // as of that time; `tried` is not kept
    std::vector<CodeAddress> addresses;  // ascending; each has a frame
    symbol::Resolved frames;             // of `addresses`

    // The frames of the wanted addresses, in the order of `wanted`; none for addresses that are not kept.
    [[nodiscard]] symbol::Resolved resolve(std::span<const CodeAddress> wanted) const;
};

// The kept module of that identity; nullptr if there is none.
const KeptModule* find_kept(std::span<const KeptModule> modules, const symbol::ModuleIdentity& identity);

// Adds a module to a list. If the list has a module of the same identity, that one takes the addresses, and the report
// if it describes better symbols.
void add_kept(std::vector<KeptModule>& modules, KeptModule module);

// All addresses of a store that a symbolizer has named, by module. Reports are empty, because only the owner has them.
struct NamedModule {
    ModuleId module = 0;
    KeptModule kept;
};
std::vector<NamedModule> named_modules(const Store& store);

struct EncodedSymbols {
    std::string bytes;         // one zstd frame
    std::size_t left_out = 0;  // number of modules that did not fit
};
EncodedSymbols encode_kept(std::span<const KeptModule> modules);
// invalid: not a file of this format. too_large: it unpacks to more than the limit.
Result<std::vector<KeptModule>> decode_kept(Bytes bytes);

// The frames of `first`; for addresses without frames there, those of `second`. Both must be for the same addresses.
symbol::Resolved first_known(const symbol::Resolved& first, const symbol::Resolved& second);

}  // namespace flamewire::profile
