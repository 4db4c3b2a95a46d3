// From what to sample to what the kernel reads: perf_event_attr for samples, for process and map records, and for ring
// owners. Pure.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>

#include "agent/perf/capabilities.h"
#include "agent/perf/event_spec.h"
#include "wire/batch.h"

namespace flamewire::agent {

// Fields of every sample, in the order in which the kernel writes them: IDENTIFIER first, because events of many
// threads share a ring and nothing else tells them apart. decode.cc relies on exactly these. What a SampleLayout adds
// stands behind them: a tracepoint's data, branches, registers, stack.
inline constexpr std::uint64_t sample_fields = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                               PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
                                               PERF_SAMPLE_CALLCHAIN;
// What sample_id_all adds at the end of all other records: TID, TIME, CPU, IDENTIFIER, 32 bytes.
inline constexpr std::uint64_t sideband_fields =
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;

// What the samples of one event carry besides sample_fields.
struct SampleLayout {
    wire::StackMode mode = wire::StackMode::fp;
    bool branches = false;
    std::uint64_t register_mask = 0;  // sample_regs_user; 0: no registers
    std::uint32_t stack_bytes = 0;    // sample_stack_user; 0: no stack
    bool user_chain = true;           // the call chain has the user's frame-pointer chain
    bool copy_omitted = false;        // SampleRecord::copy_omitted
    std::uint64_t fixed_period = 0;   // PERF_SAMPLE_PERIOD is not there, as it is always this; 0: it is
    std::uint16_t woken_at = 0;       // EventPart::woken_at; not 0: PERF_SAMPLE_RAW is there
    bool operator==(const SampleLayout&) const = default;
};

struct StackOptions {
    std::uint32_t dwarf_bytes = 0, hybrid_bytes = 0;  // copied with a sample; multiples of 8
    bool stack_pointer = false;                       // fp samples carry sp and pc
    bool chain_with_copy = false;                     // dwarf samples carry the user's chain, too
};

// Only hardware events have branch records: the others of a target in lbr mode are sampled as in fp mode.
SampleLayout sample_layout(wire::StackMode mode, const EventPart& part, const StackOptions& options,
                           const Capabilities& capabilities);

// Bytes of one sample, for sizing rings: as long as it gets with a stack, a usual one without.
std::uint64_t planned_sample_bytes(const SampleLayout& layout);

struct SampleAttrOptions {
    std::uint32_t frequency_hz = 0;  // 0: by period
    std::uint64_t period = 0;
    bool kernel = false;  // kernel mode and kernel call chains too
    bool disabled = false;
    bool enable_on_exec = false;
    bool whole_cpu = false;  // of whoever runs there, but the idle thread where the kernel's clock would sample it
    SampleLayout layout = {};
};

// cpu-clock or task-clock: its own timer, not something that happens in the kernel.
bool is_software_clock(const EventPart& part);

// SampleLayout::fixed_period. The kernel takes a sample at every single event of a software event or tracepoint that is
// asked for PERF_SAMPLE_PERIOD, whatever the period (perf_swevent_event); so those of a period are not asked.
std::uint64_t fixed_period(const EventSpec& spec, const EventPart& part, const SampleAttrOptions& options);

// One event on one (thread, CPU), inherited by children, or of a whole CPU. A spec's own rate or period comes before
// the options'.
perf_event_attr sample_attr(const EventSpec& spec, const EventPart& part, const SampleAttrOptions& options,
                            const Capabilities& capabilities);

// A dummy that writes mmap2, comm, fork and exit records of one (thread, CPU) and with `inherit` of its children. Always
// enabled: a pause of sampling must not lose maps.
perf_event_attr sideband_attr(const Capabilities& capabilities, bool inherit = true);
// For a whole CPU: BPF programs as they come and go, whoever loads them. EINVAL before Linux 5.1.
perf_event_attr ksymbol_attr(const Capabilities& capabilities);

// A dummy of our own that owns a ring of `ring_bytes`, and wakes us when it is half full.
perf_event_attr owner_attr(std::uint64_t ring_bytes, const Capabilities& capabilities);

// The same generic event without the PMU number in the upper half of config, for kernels before 5.15: there the CPU
// that the event is bound to chooses the PMU. True when there was one to remove.
bool strip_pmu_type(EventPart& part);

}  // namespace flamewire::agent
