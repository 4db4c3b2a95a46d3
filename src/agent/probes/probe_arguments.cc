#include "agent/probes/probe_arguments.h"

#include <elf.h>

#include <algorithm>
#include <charconv>

namespace flamewire::agent {
namespace {

constexpr std::string_view result_variable = "$retval";

constexpr std::array<CallConvention, 4> conventions{{
    {EM_X86_64, unwind::Arch::x86_64, {"%di", "%si", "%dx", "%cx", "%r8", "%r9"}, {5, 4, 1, 2, 8, 9}, "%ax"},
    {EM_386,
     unwind::Arch::x86,
     {"+4(%sp)", "+8(%sp)", "+12(%sp)", "+16(%sp)", "+20(%sp)", "+24(%sp)"},
     {4, 4, 4, 4, 4, 4},
     "%ax"},
    {EM_AARCH64, unwind::Arch::aarch64, {"%x0", "%x1", "%x2", "%x3", "%x4", "%x5"}, {0, 1, 2, 3, 4, 5}, "%x0"},
    {EM_ARM, unwind::Arch::arm, {"%r0", "%r1", "%r2", "%r3", "+0(%sp)", "+4(%sp)"}, {0, 1, 2, 3, 13, 13}, "%r0"},
}};

}  // namespace

const CallConvention* convention_of(std::uint16_t machine) {
    const auto* const found = std::ranges::find(conventions, machine, &CallConvention::machine);
    return found == conventions.end() ? nullptr : found;
}

ProbeNeeds needs_of(const std::vector<ProbeArgument>& arguments, const CallConvention& known) {
    ProbeNeeds needs;
    for (const ProbeArgument& argument : arguments) {
        std::string_view rest = argument.fetch;
        // Instructions before the probe may change the memory that a field reads.
        if (rest.find('(') != std::string_view::npos) needs.entry = true;
        if (rest.find("$stack") != std::string_view::npos) needs.registers = all_registers;
        for (std::size_t at = 0; (at = rest.find('%')) != std::string_view::npos; rest.remove_prefix(1)) {
            rest.remove_prefix(at);
            const std::string_view name = rest.substr(0, rest.find_first_of(":)", 1));
            if (name == known.result) {
                needs.registers |= 1;
                continue;
            }
            const auto* const found = std::ranges::find(known.names, name);
            const auto index = static_cast<std::size_t>(found - known.names.begin());
            needs.registers |= found == known.names.end() ? all_registers : 1U << known.dwarf_numbers[index];
        }
    }
    return needs;
}

std::optional<std::string> with_arguments(std::string_view fetch, std::span<const std::string_view> operands,
                                          std::string_view result) {
    constexpr std::string_view variable = "$arg";
    std::string out;
    for (std::size_t at = 0; at < fetch.size();) {
        const std::string_view rest = fetch.substr(at);
        if (rest.starts_with(result_variable)) {
            if (result.empty()) return std::nullopt;
            out += result;
            at += result_variable.size();
            continue;
        }
        if (!rest.starts_with(variable)) {
            out += fetch[at++];
            continue;
        }
        at += variable.size();
        std::size_t number = 0;
        const auto [end, error] = std::from_chars(fetch.data() + at, fetch.data() + fetch.size(), number);
        if (error != std::errc{} || number < 1 || number > operands.size() || operands[number - 1].empty())
            return std::nullopt;
        out += operands[number - 1];
        at = static_cast<std::size_t>(end - fetch.data());
    }
    return out;
}

std::optional<std::string> with_argument_registers(std::string_view fetch, std::uint16_t machine) {
    const CallConvention* const known = convention_of(machine);
    return with_arguments(fetch, known == nullptr ? std::span<const std::string_view>() : known->names);
}

std::optional<std::string> with_result_register(std::string_view fetch, std::uint16_t machine) {
    const CallConvention* const known = convention_of(machine);
    return with_arguments(fetch, {}, known == nullptr ? std::string_view() : known->result);
}

bool uses_result_of_function(std::string_view fetch) { return fetch.find(result_variable) != std::string_view::npos; }

}  // namespace flamewire::agent
