// Names of the running kernel, for recordings from this machine and this boot.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "symbol/files/symbol_table.h"

namespace flamewire::symbol {

// The functions in the text of /proc/kallsyms, at addresses relative to _text. Functions of kernel modules and BPF
// programs are "name [module]". Addresses more than 1 MiB after the last function get no name. permission: the kernel
// shows only zeros.
Result<SymbolTable> parse_kallsyms(std::string_view text);

// /proc/kallsyms, if `boot_id` is the current boot's. not_found: it is another machine or boot.
Result<SymbolTable> running_kernel_symbols(const std::string& boot_id);

}  // namespace flamewire::symbol
