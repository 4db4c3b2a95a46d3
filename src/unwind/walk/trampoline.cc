#include "unwind/walk/trampoline.h"

namespace flamewire::unwind {

std::optional<Rule> trampoline_rule(std::span<const std::byte> code, std::size_t at, bool return_address,
                                    const ArchInfo& arch) {
    if (arch.trampoline_row == nullptr) return std::nullopt;
    const std::optional<FrameRow> row = arch.trampoline_row(code, at, return_address);
    if (!row) return std::nullopt;
    Rule rule = compile_rule(*row, arch);
    if (!return_address) rule.after = static_cast<std::uint32_t>(row->end - row->start);
    return rule;
}

}  // namespace flamewire::unwind
