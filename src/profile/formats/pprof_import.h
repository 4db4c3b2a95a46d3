// Reads a profile.proto, as Go, gperftools' successors and many converters write it (uncompressed here: what is
// compressed is unpacked before). See pprof.h for the field numbers' source.
#pragma once

#include <string_view>

#include "base/result.h"
#include "profile/formats/import.h"

namespace flamewire::profile {

bool recognises_pprof(std::string_view beginning);
Result<bool> import_pprof(ImportJob& job);

}  // namespace flamewire::profile
