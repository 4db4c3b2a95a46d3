// Common parts of the decompression tests: streams as hex digits, and a text that some of them contain.
#pragma once

#include <string>
#include <string_view>

namespace flamewire::elf {

inline std::string bytes_of(std::string_view hex) {
    std::string bytes;
    for (std::size_t at = 0; at < hex.size(); at += 2)
        bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16)));
    return bytes;
}

inline std::string text() {
    std::string text;
    for (int i = 0; i < 8; ++i) text += "The quick brown fox jumps over the lazy dog. ";
    for (int i = 0; i < 6; ++i) text += "0123456789";
    return text + "The quick brown cat jumps.";
}

}  // namespace flamewire::elf
