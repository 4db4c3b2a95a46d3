// All rules of one function in code without a file, from the .eh_frame that the program generated for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "unwind/arch/arch.h"
#include "unwind/tables/rule.h"

namespace flamewire::unwind {

class FunctionRules {
public:
    FunctionRules() = default;
    // `eh_frame` is the section as loaded at `address`, in this machine's byte order. The function is in [start, end);
    // entries of other code are ignored. Keeps only compact rules, at most 256, and stops when the work of one stack is
    // spent.
    FunctionRules(Bytes eh_frame, std::uint64_t address, std::uint64_t start, std::uint64_t end, Arch arch);

    // The rule at `offset` from the start. For a caller, pass the offset of the return address - 1.
    [[nodiscard]] std::optional<Rule> find(std::uint64_t offset, Arch arch) const;
    [[nodiscard]] std::size_t memory_bytes() const { return ranges_.capacity() * sizeof(Range); }

private:
    struct Range {
        std::uint32_t begin = 0, end = 0;  // offsets from the start
        Rule rule;
    };
    std::vector<Range> ranges_;  // ascending, disjoint
    Arch arch_ = Arch::x86_64;
};

}  // namespace flamewire::unwind
