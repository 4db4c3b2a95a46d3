#include "agent/perf/attr.h"

#include <algorithm>
#include <bit>
#include <ctime>

namespace flamewire::agent {
namespace {

// Attributes common to all events. SET_OUTPUT requires the same clock for all, and the merge depends on it.
perf_event_attr base_attr(const Capabilities& capabilities) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.sample_id_all = 1;
    if (capabilities.clockid) {
        attr.use_clockid = 1;
        attr.clockid = CLOCK_MONOTONIC;
    }
    if (capabilities.format_lost) attr.read_format = PERF_FORMAT_LOST;
    return attr;
}

perf_event_attr dummy_attr(const Capabilities& capabilities) {
    perf_event_attr attr = base_attr(capabilities);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.sample_period = 1;
    attr.sample_type = sideband_fields;
    attr.exclude_kernel = 1;  // it counts nothing, so it needs no privilege
    attr.exclude_hv = 1;
    return attr;
}

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);
// A sample has 64 bytes plus 8 per frame. User and kernel chains with 30 frames in total are common; 127 is the limit.
constexpr std::uint64_t usual_sample_bytes = 512;
// Without the user half of the chain.
constexpr std::uint64_t usual_kernel_chain_bytes = 256;
// As many branch records as the newest CPUs have, 24 bytes each.
constexpr std::uint64_t branch_stack_bytes = std::uint64_t{32} * 24;

}  // namespace

const perf::ValueFields& values_of(const EventSpec& spec, const EventPart& part) {
    static const perf::ValueFields none;
    static const perf::ValueFields address{
        {"address", perf::ValueKind::address, perf::ValueField::Place::sample_address}};
    if (part.values) return part.values->fields;
    return spec.unit == "faults" || spec.precise != 0 || is_breakpoint(part) ? address : none;
}

SampleLayout sample_layout(wire::StackMode mode, const EventSpec& spec, const EventPart& part,
                           const StackOptions& options, const Capabilities& capabilities) {
    const bool hardware = part.type != PERF_TYPE_SOFTWARE && part.type != PERF_TYPE_TRACEPOINT && !is_breakpoint(part);
    SampleLayout layout;
    layout.woken_at = part.woken_at;
    if (spec.traced) layout.values = &values_of(spec, part);
    if (mode == wire::StackMode::dwarf || mode == wire::StackMode::hybrid) {
        layout.mode = mode;
        layout.register_mask = capabilities.register_mask;
        layout.stack_bytes = mode == wire::StackMode::dwarf ? options.dwarf_bytes : options.hybrid_bytes;
        layout.user_chain = mode == wire::StackMode::hybrid || options.chain_with_copy;
    } else if (mode == wire::StackMode::lbr && hardware) {
        layout.mode = mode;
        layout.branches = true;
    } else if (options.stack_pointer) {
        layout.register_mask = capabilities.stack_pointer_mask;
    }
    return layout;
}

perf::RecordFormat record_format(const SampleLayout& layout) {
    perf::RecordFormat format{.fields = sample_fields};
    if (layout.fixed_period != 0) {
        format.fields &= ~std::uint64_t{PERF_SAMPLE_PERIOD};
        format.period = layout.fixed_period;
    }
    if (layout.woken_at != 0) format.fields |= PERF_SAMPLE_RAW;
    if (layout.values != nullptr)
        for (const perf::ValueField& field : *layout.values)
            format.fields |=
                field.place == perf::ValueField::Place::sample_address ? PERF_SAMPLE_ADDR : PERF_SAMPLE_RAW;
    if (layout.branches) {
        format.fields |= PERF_SAMPLE_BRANCH_STACK;
        format.branch_fields = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK;
    }
    if (layout.register_mask != 0) {
        format.fields |= PERF_SAMPLE_REGS_USER;
        format.register_mask = layout.register_mask;
    }
    if (layout.stack_bytes != 0) format.fields |= PERF_SAMPLE_STACK_USER;
    return format;
}

std::uint64_t planned_sample_bytes(const SampleLayout& layout) {
    const auto registers = static_cast<std::uint64_t>(std::popcount(layout.register_mask));
    const std::uint64_t chain = layout.user_chain ? usual_sample_bytes : usual_kernel_chain_bytes;
    return chain + (layout.branches ? branch_stack_bytes : 0) + (registers != 0 ? (registers + 1) * word_bytes : 0) +
           (layout.stack_bytes != 0 ? layout.stack_bytes + 2 * word_bytes : 0);
}

bool is_software_clock(const EventPart& part) {
    return part.type == PERF_TYPE_SOFTWARE &&
           (part.config == PERF_COUNT_SW_CPU_CLOCK || part.config == PERF_COUNT_SW_TASK_CLOCK);
}

std::uint64_t fixed_period(const EventSpec& spec, const EventPart& part, const SampleAttrOptions& options) {
    const SamplingRate rate = sampling_rate_of(spec, {options.frequency_hz, options.period});
    if (spec.off_cpu != 0 || rate.frequency_hz > 0 || rate.period <= 1) return 0;
    const bool counted = part.type == PERF_TYPE_TRACEPOINT || is_breakpoint(part) ||
                         (part.type == PERF_TYPE_SOFTWARE && !is_software_clock(part));
    return counted ? rate.period : 0;
}

perf_event_attr sample_attr(const EventSpec& spec, const EventPart& part, const SampleAttrOptions& options,
                            const Capabilities& capabilities) {
    perf_event_attr attr = base_attr(capabilities);
    set_configuration(attr, part);
    attr.inherit = options.whole_cpu ? 0 : 1;
    // PMUs may refuse exclude_idle; their counters mostly stop while the CPU is idle.
    attr.exclude_idle = options.whole_cpu && part.type == PERF_TYPE_SOFTWARE ? 1 : 0;
    attr.disabled = options.disabled ? 1 : 0;
    attr.enable_on_exec = options.enable_on_exec ? 1 : 0;
    attr.watermark = 1;
    attr.precise_ip = spec.precise & 3U;

    const SamplingRate rate = sampling_rate_of(spec, {options.frequency_hz, options.period});
    if (spec.off_cpu != 0) {
        attr.sample_period = 1;
        attr.context_switch = part.woken_at == 0 ? 1 : 0;
    } else if (rate.frequency_hz > 0) {
        attr.freq = 1;
        attr.sample_freq = rate.frequency_hz;
    } else {
        attr.sample_period = std::max<std::uint64_t>(rate.period, 1);
    }

    const bool kernel = options.kernel && !spec.exclude_kernel;
    attr.exclude_user = spec.exclude_user ? 1 : 0;
    // Context switches happen in the kernel, even if its stacks are not wanted.
    const bool counts_kernel = kernel || spec.off_cpu != 0;
    attr.exclude_kernel = counts_kernel ? 0 : 1;
    attr.exclude_hv = counts_kernel ? 0 : 1;
    attr.exclude_callchain_kernel = kernel ? 0 : 1;
    const SampleLayout& layout = options.layout;
    const perf::RecordFormat format = record_format(layout);
    attr.sample_type = format.fields;
    attr.branch_sample_type = format.branch_fields;
    attr.sample_regs_user = format.register_mask;
    attr.sample_stack_user = layout.stack_bytes;
    attr.exclude_callchain_user = layout.user_chain ? 0 : 1;
    // sample_max_stack stays 0: the kernel then uses the current kernel.perf_event_max_stack, the highest value that it
    // allows.
    return attr;
}

perf_event_attr sideband_attr(const Capabilities& capabilities, bool inherit) {
    perf_event_attr attr = dummy_attr(capabilities);
    attr.inherit = inherit ? 1 : 0;
    attr.mmap = 1;
    attr.mmap2 = 1;
    attr.comm = 1;
    attr.comm_exec = 1;
    attr.task = 1;
    attr.watermark = 1;
    attr.build_id = capabilities.build_id ? 1 : 0;
    return attr;
}

perf_event_attr ksymbol_attr(const Capabilities& capabilities) {
    perf_event_attr attr = dummy_attr(capabilities);
    attr.ksymbol = 1;
    attr.watermark = 1;
    return attr;
}

perf_event_attr owner_attr(std::uint64_t ring_bytes, const Capabilities& capabilities) {
    perf_event_attr attr = dummy_attr(capabilities);
    attr.watermark = 1;
    attr.wakeup_watermark = static_cast<std::uint32_t>(ring_bytes / 2);
    return attr;
}

bool strip_pmu_type(EventPart& part) {
    const bool generic = part.type == PERF_TYPE_HARDWARE || part.type == PERF_TYPE_HW_CACHE;
    if (!generic || (part.config >> 32) == 0) return false;
    part.config &= 0xffff'ffff;
    return true;
}

}  // namespace flamewire::agent
