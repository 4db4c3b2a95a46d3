// What a user can do about errors of the disk.
#pragma once

#include <string_view>

#include "base/result.h"

namespace flamewire::server {

// What a user can do if a session cannot be written. Empty: no known remedy.
std::string_view disk_remedy(int errno_value);
// The error with that remedy appended.
Error with_disk_remedy(Error error);

}  // namespace flamewire::server
