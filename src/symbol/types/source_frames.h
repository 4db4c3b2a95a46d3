// Addresses of a module, and the source-level frames that symbolization finds for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flamewire::symbol {

struct Address {
    std::uint64_t vaddr = 0;      // ELF virtual address; for the kernel relative to _text
    bool return_address = false;  // if set, vaddr - 1 is looked up
};

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
