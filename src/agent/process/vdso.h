// The vDSO: a small ELF image that the kernel maps into every process, without a file. Ours is in our own memory; that
// of a process with the other word size is read from the process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace flamewire::agent {

// A function of the dynamic symbol table. Addresses are relative to the image.
struct VdsoSymbol {
    std::uint64_t address = 0, size = 0;
    std::string name;
    bool operator==(const VdsoSymbol&) const = default;
};

// Functions of an ELF image, in any order; one name per address. invalid: not an ELF image.
Result<std::vector<VdsoSymbol>> vdso_functions(Bytes image);

// Our own vDSO as it is mapped. unsupported: there is none.
Result<std::string> own_vdso_image();
// The bytes [start, end) of another process's memory; permission without ptrace rights, too_large above 64 KiB.
Result<std::string> read_vdso_image(const std::string& proc_root, std::uint32_t pid, std::uint64_t start,
                                    std::uint64_t end);

}  // namespace flamewire::agent
