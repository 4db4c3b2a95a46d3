// Code of tests as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

using Code = std::vector<std::byte>;

inline Code bytes(std::initializer_list<unsigned> list) {
    Code code;
    for (const unsigned byte : list) code.push_back(static_cast<std::byte>(byte));
    return code;
}

inline Code words(std::initializer_list<std::uint32_t> list) {
    Code code;
    for (const std::uint32_t word : list)
        for (unsigned shift = 0; shift < 32; shift += 8) code.push_back(static_cast<std::byte>(word >> shift));
    return code;
}
