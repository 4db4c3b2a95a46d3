#include "agent/perf/event_names.h"

#include <linux/perf_event.h>

#include <array>

namespace flamewire::agent {
namespace {

constexpr std::uint32_t hardware = PERF_TYPE_HARDWARE;
constexpr std::uint32_t software = PERF_TYPE_SOFTWARE;

constexpr std::array events{
    NamedEvent{"cycles", "cpu-cycles", hardware, PERF_COUNT_HW_CPU_CYCLES, "cycles"},
    NamedEvent{"instructions", "", hardware, PERF_COUNT_HW_INSTRUCTIONS, "instructions"},
    NamedEvent{"cache-references", "", hardware, PERF_COUNT_HW_CACHE_REFERENCES, "references"},
    NamedEvent{"cache-misses", "", hardware, PERF_COUNT_HW_CACHE_MISSES, "misses"},
    NamedEvent{"branch-instructions", "branches", hardware, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches"},
    NamedEvent{"branch-misses", "", hardware, PERF_COUNT_HW_BRANCH_MISSES, "misses"},
    NamedEvent{"bus-cycles", "", hardware, PERF_COUNT_HW_BUS_CYCLES, "cycles"},
    NamedEvent{"stalled-cycles-frontend", "idle-cycles-frontend", hardware, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
               "cycles"},
    NamedEvent{"stalled-cycles-backend", "idle-cycles-backend", hardware, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
               "cycles"},
    NamedEvent{"ref-cycles", "", hardware, PERF_COUNT_HW_REF_CPU_CYCLES, "cycles"},
    NamedEvent{"cpu-clock", "", software, PERF_COUNT_SW_CPU_CLOCK, "ns"},
    NamedEvent{"task-clock", "", software, PERF_COUNT_SW_TASK_CLOCK, "ns"},
    NamedEvent{"page-faults", "faults", software, PERF_COUNT_SW_PAGE_FAULTS, "faults"},
    NamedEvent{"minor-faults", "", software, PERF_COUNT_SW_PAGE_FAULTS_MIN, "faults"},
    NamedEvent{"major-faults", "", software, PERF_COUNT_SW_PAGE_FAULTS_MAJ, "faults"},
    NamedEvent{"context-switches", "cs", software, PERF_COUNT_SW_CONTEXT_SWITCHES, "switches"},
    NamedEvent{"cpu-migrations", "migrations", software, PERF_COUNT_SW_CPU_MIGRATIONS, "migrations"},
    NamedEvent{"alignment-faults", "", software, PERF_COUNT_SW_ALIGNMENT_FAULTS, "faults"},
    NamedEvent{"emulation-faults", "", software, PERF_COUNT_SW_EMULATION_FAULTS, "faults"},
};

struct Word {
    std::string_view name;
    std::uint64_t value;
};

constexpr std::array caches{
    Word{"L1-dcache", PERF_COUNT_HW_CACHE_L1D}, Word{"L1-icache", PERF_COUNT_HW_CACHE_L1I},
    Word{"LLC", PERF_COUNT_HW_CACHE_LL},        Word{"dTLB", PERF_COUNT_HW_CACHE_DTLB},
    Word{"iTLB", PERF_COUNT_HW_CACHE_ITLB},     Word{"branch", PERF_COUNT_HW_CACHE_BPU},
    Word{"node", PERF_COUNT_HW_CACHE_NODE},
};

constexpr std::uint64_t access = std::uint64_t{PERF_COUNT_HW_CACHE_RESULT_ACCESS} << 16;
constexpr std::uint64_t miss = std::uint64_t{PERF_COUNT_HW_CACHE_RESULT_MISS} << 16;
constexpr std::uint64_t load = std::uint64_t{PERF_COUNT_HW_CACHE_OP_READ} << 8;
constexpr std::uint64_t store = std::uint64_t{PERF_COUNT_HW_CACHE_OP_WRITE} << 8;
constexpr std::uint64_t prefetch = std::uint64_t{PERF_COUNT_HW_CACHE_OP_PREFETCH} << 8;

constexpr std::array operations{
    Word{"loads", load | access},       Word{"load-misses", load | miss},      Word{"stores", store | access},
    Word{"store-misses", store | miss}, Word{"prefetches", prefetch | access}, Word{"prefetch-misses", prefetch | miss},
};

// Some caches lack store or prefetch events, as in the kernel's own table of names.
bool exists(std::uint64_t cache, std::uint64_t operation) {
    const bool is_load = (operation & 0xff00) == load;
    const bool is_store = (operation & 0xff00) == store;
    if (cache == PERF_COUNT_HW_CACHE_ITLB || cache == PERF_COUNT_HW_CACHE_BPU) return is_load;
    if (cache == PERF_COUNT_HW_CACHE_L1I) return !is_store;
    return true;
}

std::optional<NamedEvent> find_cache_event(std::string_view name) {
    for (const Word& cache : caches) {
        if (!name.starts_with(cache.name) || name.size() <= cache.name.size() + 1 || name[cache.name.size()] != '-')
            continue;
        const std::string_view operation_name = name.substr(cache.name.size() + 1);
        for (const Word& operation : operations)
            if (operation.name == operation_name && exists(cache.value, operation.value)) {
                const bool misses = (operation.value & miss) != 0;
                return NamedEvent{name, "", PERF_TYPE_HW_CACHE, cache.value | operation.value,
                                  misses ? "misses" : "references"};
            }
    }
    return std::nullopt;
}

}  // namespace

std::span<const NamedEvent> named_events() { return events; }

std::optional<NamedEvent> find_named_event(std::string_view name) {
    if (name.empty()) return std::nullopt;
    for (const NamedEvent& event : events)
        if (event.name == name || event.alias == name) return event;
    return find_cache_event(name);
}

}  // namespace flamewire::agent
