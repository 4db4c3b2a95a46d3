// Reads code in hexadecimal, one instruction per line, and prints the length of each according to x86_64_effect(), which
// gets only these bytes. Prints 0 for an unknown instruction.
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "unwind/code/x86_instruction.h"

int main() {
    std::ios::sync_with_stdio(false);
    std::vector<std::byte> code;
    for (std::string line; std::getline(std::cin, line);) {
        code.clear();
        for (std::size_t at = 0; at + 1 < line.size(); at += 2)
            code.push_back(static_cast<std::byte>(std::stoul(line.substr(at, 2), nullptr, 16)));
        const auto effect = flamewire::unwind::x86_64_effect(code);
        std::cout << (effect ? unsigned{effect->size} : 0U) << '\n';
    }
}
