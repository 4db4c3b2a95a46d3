// Builds perf_event_attr for samples, for process and map records, and for ring owners. Pure.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>

#include "agent/perf/capabilities.h"
#include "agent/perf/event_spec.h"
#include "perf/attribute.h"
#include "wire/batch.h"

namespace flamewire::agent {

// Fields of every sample, in the order in which the kernel writes them. IDENTIFIER comes first, because events of many
// threads share a ring and only the id distinguishes them. decode.cc knows where id, tid and time are. record_format()
// adds the fields of a SampleLayout.
inline constexpr std::uint64_t sample_fields = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                               PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
                                               PERF_SAMPLE_CALLCHAIN;
// sample_id_all appends these to all other records: TID, TIME, CPU, IDENTIFIER, 32 bytes.
inline constexpr std::uint64_t sideband_fields =
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;

// What the samples of one event contain besides sample_fields.
struct SampleLayout {
    wire::StackMode mode = wire::StackMode::fp;
    bool branches = false;
    std::uint64_t register_mask = 0;  // sample_regs_user; 0: no registers
    std::uint32_t stack_bytes = 0;    // sample_stack_user; 0: no stack
    bool user_chain = true;           // the call chain has the user's frame-pointer chain
    bool copy_omitted = false;        // SampleRecord::copy_omitted
    std::uint64_t fixed_period = 0;   // PERF_SAMPLE_PERIOD is absent, because it is always this; 0: it is present
    std::uint16_t woken_at = 0;       // EventPart::woken_at; if not 0, PERF_SAMPLE_RAW is present
    // SampleRecord::values. With PERF_SAMPLE_RAW if one of them is in the data, and PERF_SAMPLE_ADDR if one is the address.
    const perf::ValueFields* values = nullptr;
    bool operator==(const SampleLayout&) const = default;
};

// The values of the event's samples: those of a tracepoint, or the address of the data where the kernel knows it.
const perf::ValueFields& values_of(const EventSpec& spec, const EventPart& part);

struct StackOptions {
    std::uint32_t dwarf_bytes = 0, hybrid_bytes = 0;  // stack bytes copied with a sample; multiples of 8
    bool stack_pointer = false;                       // fp samples carry sp and pc
    bool chain_with_copy = false;                     // dwarf samples carry the user's call chain too
};

// Only hardware events have branch records. In lbr mode, other events of a target are sampled as in fp mode.
// Of a traced event, it refers to part.values.
SampleLayout sample_layout(wire::StackMode mode, const EventSpec& spec, const EventPart& part,
                           const StackOptions& options, const Capabilities& capabilities);

// What the records of such an event contain.
perf::RecordFormat record_format(const SampleLayout& layout);

// Bytes of one sample, for sizing rings: the maximum with a stack, a typical size without.
std::uint64_t planned_sample_bytes(const SampleLayout& layout);

struct SampleAttrOptions {
    std::uint32_t frequency_hz = 0;  // 0: by period
    std::uint64_t period = 0;
    bool kernel = false;  // kernel mode and kernel call chains too
    bool disabled = false;
    bool enable_on_exec = false;
    bool whole_cpu = false;  // of all tasks there, except the idle thread if the kernel's clock would sample it
    SampleLayout layout = {};
};

// cpu-clock or task-clock, which have their own timer instead of counting kernel events.
bool is_software_clock(const EventPart& part);

// SampleLayout::fixed_period. If PERF_SAMPLE_PERIOD is requested, the kernel samples every single software event or
// tracepoint, whatever the period (perf_swevent_event). So events with a period do not request it.
std::uint64_t fixed_period(const EventSpec& spec, const EventPart& part, const SampleAttrOptions& options);

// One event on one (thread, CPU), inherited by children, or on a whole CPU. A spec's own rate or period takes
// precedence over the options.
perf_event_attr sample_attr(const EventSpec& spec, const EventPart& part, const SampleAttrOptions& options,
                            const Capabilities& capabilities);

// A dummy event that writes mmap2, comm, fork and exit records of one (thread, CPU), and with `inherit` those of its
// children. Always enabled: pausing must not lose maps.
perf_event_attr sideband_attr(const Capabilities& capabilities, bool inherit = true);
// For a whole CPU: records each load and unload of a BPF program, by any process. EINVAL before Linux 5.1.
perf_event_attr ksymbol_attr(const Capabilities& capabilities);

// A dummy event on our own thread that owns a ring of `ring_bytes`. It wakes poll when the ring is half full.
perf_event_attr owner_attr(std::uint64_t ring_bytes, const Capabilities& capabilities);

// Removes the PMU number from the upper half of a generic event's config, for kernels before 5.15. There the CPU that
// the event is bound to selects the PMU. True if there was a number to remove.
bool strip_pmu_type(EventPart& part);

}  // namespace flamewire::agent
