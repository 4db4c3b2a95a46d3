// Names of the running kernel, for recordings of this machine and this boot.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "symbol/files/symbol_table.h"

namespace flamewire::symbol {

// The functions in the text of /proc/kallsyms, at addresses relative to _text; those of kernel modules and BPF programs
// are "name [module]". More than 1 MiB behind the last of them nothing is named. permission: the kernel shows zeros to
// us.
Result<SymbolTable> parse_kallsyms(std::string_view text);

// /proc/kallsyms, when `boot_id` is this boot's. not_found: it is another machine or boot.
Result<SymbolTable> running_kernel_symbols(const std::string& boot_id);

}  // namespace flamewire::symbol
