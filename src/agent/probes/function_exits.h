// Finds the instructions where a function ends: its returns, and its jumps to other functions (tail calls). Probes there
// hit once for each call that ends normally. They change nothing on the stack, unlike the kernel's return probes, which
// replace the return address: an exception that leaves such a function ends the program.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/probes/probe_instruction.h"
#include "agent/probes/probe_place.h"
#include "unwind/frame/registers.h"

namespace flamewire::agent {

// A function, or code of it that the compiler has moved elsewhere, such as NAME.cold.
struct CodePart {
    std::uint64_t start = 0;  // ELF virtual address
    std::string code{};
    [[nodiscard]] bool contains(std::uint64_t address) const {
        return address >= start && address - start < code.size();
    }
};

struct ExitSearch {
    unwind::Arch arch = unwind::Arch::x86_64;
    std::vector<CodePart> parts{};  // the first one begins with the entry
    // The address in the table at this address; nullopt if it cannot be read.
    std::function<std::optional<std::uint64_t>(std::uint64_t address)> table_entry{};
    // Whether a function begins at this address outside of the parts: a jump there is a tail call.
    std::function<bool(std::uint64_t address)> is_function{};
    // Whether the frame has been released before the instruction at this address: a jump leaves the function.
    std::function<bool(std::uint64_t address)> is_balanced{};
    // Whether code outside of the parts may jump into them. Asked at most once, because the answer is expensive.
    std::function<bool()> entered_from_outside{};
    bool catches = true;  // the file may catch exceptions
    InstructionClasses emulated{};
    ProbeNeeds needs{};  // registers as at the return; `entry`: the probe must be at the return itself
};

struct FunctionExit {
    std::uint64_t address = 0;
    bool emulated = false;
    bool tail_call = false;
    std::uint64_t target = 0;  // of a tail call; 0: unknown
};

struct FunctionExits {
    std::vector<FunctionExit> exits{};
    // If not all are certain, `exits` is empty, and these are the reason and the address of the instruction.
    std::string_view problem{};
    std::uint64_t problem_at = 0;
    std::uint64_t other_code = 0;  // another part may be here; 0: the problem is not a missing part
};

FunctionExits find_exits(const ExitSearch& search);

// A jump or call to a constant address.
struct Branch {
    std::uint64_t from = 0, to = 0;
    bool call = false;
};

// Whether `code`, which starts at `address`, has such a branch. For x86, every byte counts as the start of an
// instruction, so none is missed, but the answer can be true by chance.
bool any_branch(unwind::Arch arch, std::span<const std::byte> code, std::uint64_t address,
                const std::function<bool(const Branch&)>& wanted);

}  // namespace flamewire::agent
