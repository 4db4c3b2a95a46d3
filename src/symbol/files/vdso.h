// The vDSO, the kernel's shared object in each process. It is not in any file, but this process often has the same one
// as the target.
#pragma once

#include "base/result.h"
#include "symbol/files/object_file.h"

namespace flamewire::symbol {

// This process's vDSO, if its build-id is `build_id`. not_found: it is another kernel's, or this process has none.
Result<ObjectFile> own_vdso(const std::string& build_id);

}  // namespace flamewire::symbol
