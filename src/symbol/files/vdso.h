// The vDSO, the kernel's own shared object in each process. It is in no file, but ours is often the target's.
#pragma once

#include "base/result.h"
#include "symbol/files/object_file.h"

namespace flamewire::symbol {

// This process's vDSO when its build-id is `build_id`. not_found: another kernel's, or there is none here.
Result<ObjectFile> own_vdso(const std::string& build_id);

}  // namespace flamewire::symbol
