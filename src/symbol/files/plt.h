// Names for the linker's call stubs. Code in .plt, .plt.sec and .plt.got has no symbols of its own, but each stub jumps
// through a GOT slot, and the slot's relocation names the function. Works for stripped files too. x86-64 and AArch64.
#pragma once

#include "symbol/files/symbol_table.h"

namespace flamewire::symbol {

// Adds "function@plt" for each stub. Call sort() on the table afterwards.
void add_plt_symbols(Elf* elf, std::uint16_t machine, SymbolTable& table);

}  // namespace flamewire::symbol
