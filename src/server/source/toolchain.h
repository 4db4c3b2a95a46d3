// The sysroot of a cross compiler. PREFIXgcc is asked once: the only program that the server ever starts, without a
// shell, with fixed arguments, bounded in time and in what it may say.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamewire::server {

// "/opt/sdk/bin/arm-none-linux-gnueabihf-", or without a folder: PATH finds it. What `PREFIXgcc -print-sysroot` prints;
// when that is nothing, "/" (as Debian's cross compilers say) or no directory, the usual places beside the compiler and
// /usr/TRIPLET. The error is one sentence with the remedy.

// Whether a request from a browser may have PREFIXgcc started: it is found by PATH, or nobody but root and the server's own user
// could have put it where it is. permission: one sentence; not_found: as above.
Result<bool> may_ask_toolchain(std::string_view prefix);
Result<std::string> sysroot_of_toolchain(std::string_view prefix,
                                         std::chrono::milliseconds patience = std::chrono::seconds(10));

}  // namespace flamewire::server
