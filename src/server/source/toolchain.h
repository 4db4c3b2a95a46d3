// Finds the sysroot of a cross compiler by running PREFIXgcc once. This is the only program that the server starts:
// without a shell, with fixed arguments, and with limits on its time and output.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::server {

// Whether a browser's request may start PREFIXgcc: PATH finds it, or only root and the server's own user can have put
// it there. permission: one sentence. not_found: as for sysroot_of_toolchain().
Result<bool> may_run_toolchain(std::string_view prefix);

// `prefix`: "/opt/sdk/bin/arm-none-linux-gnueabihf-", or one without a folder that PATH resolves. Returns the output of
// `PREFIXgcc -print-sysroot`. If that is empty, "/" (as in Debian) or not a directory, or if the compiler fails, tries
// the usual places beside the compiler and /usr/TRIPLET. The error is one sentence with the remedy.
Result<std::string> sysroot_of_toolchain(std::string_view prefix,
                                         std::chrono::milliseconds timeout = std::chrono::seconds(10));

}  // namespace flamewire::server
