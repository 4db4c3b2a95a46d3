// Reads code in hexadecimal, one function or instruction per line.
//   probe_places ARCH place C|NONE    prints the chosen offset, 0 or 1 for "emulated", and the class
//   probe_places ARCH returns [CHEAP] reads "ADDRESS CODE"; prints the addresses where the function ends, with "t" before
//                                     tail calls, or "- REASON"
//   probe_places ARCH written         prints the registers that the first instruction may write according to this
//                                     project and to Capstone, as masks of DWARF numbers; "-" for an unknown one
#include <capstone/capstone.h>
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "../../unit/agent_probes/argument_registers.h"
#include "agent/probes/function_exits.h"
#include "agent/probes/probe_place.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

std::vector<std::byte> bytes_of(const std::string& line) {
    std::vector<std::byte> code;
    for (std::size_t at = 0; at + 1 < line.size(); at += 2)
        code.push_back(static_cast<std::byte>(std::stoul(line.substr(at, 2), nullptr, 16)));
    return code;
}

unwind::Arch arch_of(std::string_view name) {
    if (name == "x86") return unwind::Arch::x86;
    if (name == "arm") return unwind::Arch::arm;
    return name == "aarch64" ? unwind::Arch::aarch64 : unwind::Arch::x86_64;
}

// A general register by Capstone's name, for example "r8d" or "w3"; -1 for others.
int dwarf_number(unwind::Arch arch, std::string_view name) {
    if (arch == unwind::Arch::aarch64) {
        if (name == "sp" || name == "wsp") return 31;
        if (name == "lr") return 30;
        if (name == "fp") return 29;
        if (name[0] != 'x' && name[0] != 'w') return -1;
        const std::string digits(name.substr(1));
        return digits.find_first_not_of("0123456789") == std::string::npos ? std::stoi(digits) : -1;
    }
    constexpr std::string_view wide[] = {"ax", "dx", "cx", "bx", "si", "di", "bp", "sp"};
    constexpr std::string_view narrow[] = {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};
    constexpr std::string_view low[] = {"al", "dl", "cl", "bl"}, high[] = {"ah", "dh", "ch", "bh"};
    constexpr std::string_view narrow_bytes[] = {"al", "cl", "dl", "bl"}, narrow_high[] = {"ah", "ch", "dh", "bh"};
    const bool is_wide = arch == unwind::Arch::x86_64;
    if (name.size() > 1 && name[0] == 'r' && name[1] >= '0' && name[1] <= '9')
        return std::stoi(std::string(name.substr(1)));
    for (int i = 0; i < 4; ++i)
        if (name == (is_wide ? low : narrow_bytes)[i] || name == (is_wide ? high : narrow_high)[i]) return i;
    std::string_view base = name;
    if (base.size() == 3 && (base[0] == 'r' || base[0] == 'e' || base[2] == 'l'))
        base = base[2] == 'l' ? base.substr(0, 2) : base.substr(1);
    for (int i = 0; i < 8; ++i)
        if (base == (is_wide ? wide : narrow)[i]) return i;
    return -1;
}

std::uint32_t written_by_capstone(csh handle, unwind::Arch arch, const cs_insn& instruction) {
    cs_regs read{}, written{};
    std::uint8_t reads = 0, writes = 0;
    std::uint32_t mask = 0;
    if (cs_regs_access(handle, &instruction, read, &reads, written, &writes) != CS_ERR_OK) return 0;
    for (std::uint8_t i = 0; i < writes; ++i) {
        const int number = dwarf_number(arch, cs_reg_name(handle, written[i]));
        if (number >= 0) mask |= 1u << number;
    }
    return mask;
}

void print_written(unwind::Arch arch) {
    csh handle = 0;
    const bool arm = arch == unwind::Arch::aarch64;
    if (cs_open(arm ? CS_ARCH_ARM64 : CS_ARCH_X86,
                arm                         ? CS_MODE_ARM
                : arch == unwind::Arch::x86 ? CS_MODE_32
                                            : CS_MODE_64,
                &handle) != CS_ERR_OK)
        std::exit(1);
    cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
    for (std::string line; std::getline(std::cin, line);) {
        const auto code = bytes_of(line);
        const auto found = probe_instruction(arch, code);
        cs_insn* instruction = nullptr;
        const std::size_t count =
            cs_disasm(handle, reinterpret_cast<const std::uint8_t*>(code.data()), code.size(), 0, 1, &instruction);
        std::cout << (found ? std::to_string(found->written) : "-") << ' ';
        std::cout << (found ? static_cast<int>(found->falls_through) : 0) << ' ';
        std::cout << (count == 1 ? std::to_string(written_by_capstone(handle, arch, *instruction)) : "-") << '\n';
        if (count != 0) cs_free(instruction, count);
    }
    cs_close(&handle);
}

void print_places(unwind::Arch arch, bool needs_arguments) {
    using enum InstructionClass;
    // What x86 kernels of 2024 and older emulate, and aarch64 kernels of 2025.
    InstructionClasses emulated{nop, push, conditional_branch, jump, call};
    if (arch == unwind::Arch::aarch64) emulated = {nop, conditional_branch, jump, call, address};
    const ProbeNeeds needs{.registers = needs_arguments ? argument_registers(arch) : 0};
    for (std::string line; std::getline(std::cin, line);) {
        const auto code = bytes_of(line);
        const auto place = place_probe({arch, code, true}, needs, emulated);
        if (!place)
            std::cout << "- 0 0\n";
        else
            std::cout << place->offset << ' ' << place->emulated << ' ' << static_cast<int>(place->instruction_class)
                      << '\n';
    }
}

// Each line: the address of a function and its code, in hexadecimal.
void print_returns(unwind::Arch arch, bool cheap) {
    using enum InstructionClass;
    for (std::string address, line; std::cin >> address >> line;) {
        const auto code = bytes_of(line);
        ExitSearch search{.arch = arch};
        search.parts.push_back(
            {std::stoull(address, nullptr, 16), std::string(reinterpret_cast<const char*>(code.data()), code.size())});
        search.entered_from_outside = [] { return false; };
        search.is_function = [](std::uint64_t) { return true; };
        search.catches = false;
        search.needs.registers = 1;
        if (cheap) search.emulated = {nop, long_nop, push, conditional_branch, jump, call};
        const FunctionExits found = find_exits(search);
        if (!found.problem.empty()) std::cout << "- " << found.problem;
        for (const FunctionExit& exit : found.exits)
            std::cout << (exit.tail_call ? "t" : "") << std::hex << exit.address << ' ';
        std::cout << '\n';
    }
}

}  // namespace

int main(int count, char** arguments) {
    std::ios::sync_with_stdio(false);
    if (count < 3) return 2;
    const unwind::Arch arch = arch_of(arguments[1]);
    if (std::string_view(arguments[2]) == "written")
        print_written(arch);
    else if (std::string_view(arguments[2]) == "returns")
        print_returns(arch, count > 3);
    else
        print_places(arch, count > 3 && std::string_view(arguments[3]) == "C");
}
