// Imports a profile.proto, as Go, successors of gperftools and many converters write it. The input is uncompressed:
// gzip is decompressed earlier. See pprof.h for the source of the field numbers.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/formats/import.h"

namespace flamewire::profile {

bool recognises_pprof(std::string_view beginning);
Result<bool> import_pprof(ImportJob& job);

}  // namespace flamewire::profile
