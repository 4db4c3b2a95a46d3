// The source-level frames that symbolization finds for addresses of a module. A CodeAddress of a module is an ELF virtual
// address; of the kernel, it is relative to _text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/code_address.h"

namespace flamewire::symbol {

// One source-level frame. `function` is demangled. line 0 and an empty file mean unknown.
struct SourceFrame {
    std::uint32_t function = 0;  // index into Resolved::strings; 0 is the empty string
    std::uint32_t file = 0;      // index into Resolved::strings
    std::uint32_t line = 0;
    bool inlined = false;  // this frame was inlined into the next one
};

// Frames of address i are frames[first[i]] … frames[first[i + 1] - 1], innermost first. No frames: the address is
// unknown.
struct Resolved {
    std::vector<std::uint32_t> first;  // size: addresses + 1
    std::vector<SourceFrame> frames;
    std::vector<std::string> strings;  // [0] is empty
};

}  // namespace flamewire::symbol
