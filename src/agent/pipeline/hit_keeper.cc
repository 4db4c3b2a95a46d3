#include "agent/pipeline/hit_keeper.h"

namespace flamewire::agent {

void HitKeeper::add(const SampleRecord& sample, std::uint32_t event, ProcessHandle process, const wire::Row& row,
                    const Limits& limits) {
    if (!triggered_ && limits.triggers != 0 && (event >= 64 || (limits.triggers >> event & 1) == 0)) return;
    triggered_ = true;
    if (limits.first != 0 && kept_ >= limits.first) return;
    ++kept_;
    const wire::Hit hit{sample.time_ns, row.thread, row.cpu, row.stack, row.weight};
    for (const std::uint64_t address : table_.add(row.event, hit, sample, *sample.values))
        table_.place(row.event, address, locator_.locate_value(process, address));
}

}  // namespace flamewire::agent
