#include "unwind/tables/function_rules.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <string>

#include "unwind/tables/frame_section.h"

namespace flamewire::unwind {
namespace {

constexpr std::size_t max_ranges = 256;

}  // namespace

FunctionRules::FunctionRules(Bytes eh_frame, std::uint64_t address, std::uint64_t start, std::uint64_t end, Arch arch)
    : arch_(arch) {
    if (end <= start || end - start > std::numeric_limits<std::uint32_t>::max()) return;
    constexpr bool big_endian = std::endian::native == std::endian::big;
    const ArchInfo& info = arch_info(arch);
    FrameSection section(std::string(as_text(eh_frame)), address,
                         {.address_size = info.names.word_size, .big_endian = big_endian});
    TableWork work;
    FrameSection::Pass pass(section, work);
    while (const auto entry = pass.next()) {
        if (work.spent()) break;
        if (entry->address < start || entry->address >= end) continue;
        const auto description = section.description_at(entry->offset);
        if (!description) continue;
        const std::uint64_t last = std::min(end, description->function.end);
        for (std::uint64_t at = entry->address; at < last && ranges_.size() < max_ranges;) {
            const auto row = run_call_frame(*description->common, description->function, at, arch, big_endian, work);
            if (!row || row->end <= at) break;
            Range range{static_cast<std::uint32_t>(at - start),
                        static_cast<std::uint32_t>(std::min(last, row->end) - start), compile_rule(*row, info)};
            at = row->end;
            if (range.rule.kind == Rule::Kind::compact) ranges_.push_back(range);
        }
    }
    std::ranges::sort(ranges_, {}, &Range::begin);
    // Damaged entries can overlap.
    for (std::size_t i = 1; i < ranges_.size(); ++i)
        ranges_[i - 1].end = std::min(ranges_[i - 1].end, ranges_[i].begin);
    ranges_.shrink_to_fit();
}

std::optional<Rule> FunctionRules::find(std::uint64_t offset, Arch arch) const {
    const auto after = std::ranges::upper_bound(ranges_, offset, {}, &Range::begin);
    if (arch != arch_ || after == ranges_.begin()) return std::nullopt;
    const Range& range = *std::prev(after);
    if (offset >= range.end) return std::nullopt;
    Rule rule = range.rule;
    rule.before = static_cast<std::uint32_t>(offset) - range.begin;
    rule.after = range.end - static_cast<std::uint32_t>(offset);
    return rule;
}

}  // namespace flamewire::unwind
