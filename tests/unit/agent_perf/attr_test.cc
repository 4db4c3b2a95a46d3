#include "agent/perf/attr.h"

#include <catch2/catch.hpp>

#include <ctime>

#include "agent/perf/ring_set.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

Capabilities modern() {
    Capabilities capabilities;
    capabilities.perf_events = capabilities.clockid = capabilities.build_id = capabilities.format_lost = true;
    return capabilities;
}

EventSpec cycles() {
    EventSpec spec;
    spec.name = "cycles";
    spec.parts = {{{}, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, 0, {}}};
    return spec;
}

}  // namespace

TEST_CASE("attributes of a sampling event") {
    const EventSpec spec = cycles();
    const perf_event_attr attr = sample_attr(spec, spec.parts[0], {.frequency_hz = 999, .kernel = true}, modern());
    CHECK(attr.freq == 1);
    CHECK(attr.sample_freq == 999);
    CHECK(attr.inherit == 1);
    CHECK(attr.sample_id_all == 1);
    CHECK(attr.disabled == 0);
    CHECK(attr.use_clockid == 1);
    CHECK(attr.clockid == CLOCK_MONOTONIC);
    CHECK(attr.read_format == PERF_FORMAT_LOST);
    // IP 1, TID 2, TIME 4, CALLCHAIN 0x20, CPU 0x80, PERIOD 0x100, IDENTIFIER 0x10000
    CHECK(attr.sample_type == 0x101a7);
    CHECK((attr.exclude_kernel == 0 && attr.exclude_user == 0 && attr.exclude_callchain_kernel == 0));
    CHECK(attr.wakeup_events == 0);
    CHECK(attr.watermark == 1);
    CHECK(attr.exclude_callchain_user == 0);
    CHECK((attr.sample_regs_user == 0 && attr.sample_stack_user == 0 && attr.branch_sample_type == 0));
}

TEST_CASE("faults have their own period, unless the event sets a rate") {
    EventSpec spec;
    spec.parts = {{{}, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0, {}}};
    spec.period = 1;
    SampleAttrOptions options{.frequency_hz = 999};
    CHECK(fixed_period(spec, spec.parts[0], options) == 0);
    perf_event_attr attr = sample_attr(spec, spec.parts[0], options, modern());
    CHECK((attr.freq == 0 && attr.sample_period == 1));
    spec.period = 17;
    options.layout.fixed_period = fixed_period(spec, spec.parts[0], options);
    CHECK(options.layout.fixed_period == 17);
    attr = sample_attr(spec, spec.parts[0], options, modern());
    CHECK((attr.freq == 0 && attr.sample_period == 17));
    CHECK((attr.sample_type & PERF_SAMPLE_PERIOD) == 0);
    spec.frequency_hz = 50;
    CHECK(fixed_period(spec, spec.parts[0], options) == 0);
    attr = sample_attr(spec, spec.parts[0], {.frequency_hz = 999}, modern());
    CHECK((attr.freq == 1 && attr.sample_freq == 50));
}

TEST_CASE("additions of each stack mode to a sample") {
    using wire::StackMode;
    EventSpec spec = cycles();
    Capabilities capabilities = modern();
    capabilities.register_mask = 0xff0fff;    // x86-64 without segment registers: 20 registers
    capabilities.stack_pointer_mask = 0x180;  // sp is bit 7, ip bit 8
    const auto layout = [&](StackMode mode, bool stack_pointer = false) {
        return sample_layout(mode, spec, spec.parts[0], {16'384, 2'048, stack_pointer}, capabilities);
    };
    const auto with = [&](const SampleLayout& wanted) {
        return sample_attr(spec, spec.parts[0], {.frequency_hz = 99, .kernel = true, .layout = wanted}, capabilities);
    };
    // REGS_USER 0x1000, STACK_USER 0x2000, BRANCH_STACK 0x800.
    const perf_event_attr dwarf = with(layout(StackMode::dwarf));
    CHECK(dwarf.sample_type == 0x131a7);
    CHECK((dwarf.sample_regs_user == 0xff0fff && dwarf.sample_stack_user == 16'384));
    CHECK((dwarf.exclude_callchain_user == 1 && dwarf.exclude_callchain_kernel == 0 && dwarf.exclude_user == 0));
    const SampleLayout both =
        sample_layout(StackMode::dwarf, spec, spec.parts[0], {16'384, 2'048, false, true}, capabilities);
    CHECK(both.mode == StackMode::dwarf);
    CHECK((with(both).sample_type == 0x131a7 && with(both).sample_stack_user == 16'384));
    CHECK(with(both).exclude_callchain_user == 0);
    const perf_event_attr hybrid = with(layout(StackMode::hybrid));
    CHECK(hybrid.sample_type == 0x131a7);
    CHECK((hybrid.sample_regs_user == 0xff0fff && hybrid.sample_stack_user == 2'048));
    CHECK(hybrid.exclude_callchain_user == 0);
    const perf_event_attr lbr = with(layout(StackMode::lbr));
    CHECK(lbr.sample_type == 0x109a7);
    CHECK(lbr.branch_sample_type == 0x801);  // USER 1, CALL_STACK 1 << 11
    CHECK(lbr.exclude_callchain_user == 0);
    const perf_event_attr fp = with(layout(StackMode::fp));
    CHECK(fp.sample_type == 0x101a7);
    const perf_event_attr with_pointer = with(layout(StackMode::fp, true));
    CHECK(with_pointer.sample_type == 0x111a7);
    CHECK((with_pointer.sample_regs_user == 0x180 && with_pointer.sample_stack_user == 0));
    CHECK(with_pointer.exclude_callchain_user == 0);
    CHECK(layout(StackMode::dwarf).mode == StackMode::dwarf);
    CHECK(layout(StackMode::hybrid).mode == StackMode::hybrid);
    CHECK(layout(StackMode::lbr).mode == StackMode::lbr);

    // Software events have no branch records.
    spec.parts[0].type = PERF_TYPE_SOFTWARE;
    CHECK(layout(StackMode::lbr) == SampleLayout{});
    CHECK(layout(StackMode::dwarf).mode == StackMode::dwarf);
    spec.parts[0].type = PERF_TYPE_TRACEPOINT;
    CHECK(layout(StackMode::lbr).mode == StackMode::fp);
    spec.parts[0].type = PERF_TYPE_RAW;
    CHECK(layout(StackMode::lbr).branches);
    // On a kernel without registers in samples, the layout has none.
    CHECK(sample_layout(StackMode::fp, spec, spec.parts[0], {16'384, 2'048, true}, modern()) == SampleLayout{});
}

TEST_CASE("rates, periods and modes") {
    EventSpec spec = cycles();
    const auto with = [&](SampleAttrOptions options) { return sample_attr(spec, spec.parts[0], options, modern()); };
    const perf_event_attr by_period = with({.period = 100'003});
    CHECK((by_period.freq == 0 && by_period.sample_period == 100'003));
    const perf_event_attr user = with({.frequency_hz = 99});
    CHECK((user.exclude_kernel == 1 && user.exclude_hv == 1 && user.exclude_callchain_kernel == 1));
    const perf_event_attr exec = with({.frequency_hz = 99, .disabled = true, .enable_on_exec = true});
    CHECK((exec.disabled == 1 && exec.enable_on_exec == 1));
    spec.frequency_hz = 4'000;
    spec.exclude_kernel = true;
    spec.precise = 2;
    const perf_event_attr own = with({.period = 100'003, .kernel = true});
    CHECK((own.freq == 1 && own.sample_freq == 4'000 && own.exclude_kernel == 1 && own.precise_ip == 2));
}

TEST_CASE("no unknown bit is set on an old kernel") {
    const EventSpec spec = cycles();
    const perf_event_attr sample = sample_attr(spec, spec.parts[0], {.frequency_hz = 99}, Capabilities{});
    CHECK((sample.read_format == 0 && sample.use_clockid == 0 && sample.sample_max_stack == 0));
    CHECK(sideband_attr(Capabilities{}).build_id == 0);
    const perf_event_attr sideband = sideband_attr(modern());
    CHECK((sideband.build_id == 1 && sideband.mmap == 1 && sideband.mmap2 == 1 && sideband.comm == 1 &&
           sideband.task == 1));
    CHECK((sideband.inherit == 1 && sideband.exclude_kernel == 1 && sideband.disabled == 0));
    const perf_event_attr owner = owner_attr(65'536, modern());
    CHECK((owner.inherit == 0 && owner.watermark == 1 && owner.wakeup_watermark == 32'768));
}

TEST_CASE("the PMU number of a generic event can be removed") {
    EventPart part{"cpu_atom", PERF_TYPE_HARDWARE, 10ULL << 32 | 1, 0, 0, {}};
    CHECK(strip_pmu_type(part));
    CHECK(part.config == 1);
    CHECK_FALSE(strip_pmu_type(part));
    EventPart raw{"cpu_atom", 10, 10ULL << 32, 0, 0, {}};
    CHECK_FALSE(strip_pmu_type(raw));
}

TEST_CASE("ring sizes") {
    const auto pages = [](RingDemand demand, std::uint64_t page_size = 4096) {
        return ring_pages_for(demand, page_size).sample;
    };
    // 999 Hz: 512 B * 999 / 2 = 255,744 B, the next power of two is 64 pages of 4 KiB.
    CHECK(pages({.samples_per_second = 999}) == 64);
    CHECK(pages({.samples_per_second = 99}) == 16);          // the minimum, 64 KiB
    CHECK(pages({.samples_per_second = 1'000'000}) == 256);  // the maximum, 1 MiB
    CHECK(pages({}) == 1024);                                // the rate is unknown: 8,192 samples
    CHECK(pages({.sample_bytes = 2'048}) == 1024);           // the maximum, 4 MiB
    CHECK(ring_pages_for({.samples_per_second = 99}, 4096).sideband == 32);
    CHECK(pages({.samples_per_second = 99}, 65'536) == 1);
    CHECK(ring_pages_for({.samples_per_second = 99}, 65'536).sideband == 2);

    // With stacks: 200 ms. 17,000 B * 199 samples = 3.4 MB, so 4 MiB.
    CHECK(pages({.samples_per_second = 999, .sample_bytes = 17'000}) == 1024);
    CHECK(pages({.samples_per_second = 99, .sample_bytes = 17'000}) == 128);       // 323,000 B: 512 KiB
    CHECK(pages({.samples_per_second = 20'000, .sample_bytes = 17'000}) == 2048);  // the maximum, 8 MiB
    CHECK(pages({.samples_per_second = 1, .sample_bytes = 17'000}) == 64);         // 8 samples: 136,000 B
    CHECK(pages({.sample_bytes = 17'000}) == 2048);                                // 512 samples, at most 8 MiB
    CHECK(pages({.sample_bytes = 4'096}) == 512);                                  // 512 samples: 2 MiB

    // All rings together stay below 1/32 of the machine's memory: for 64 MiB that is 2 MiB, or half a MiB per CPU with
    // 4 CPUs.
    RingDemand board{.samples_per_second = 999, .sample_bytes = 17'000, .cpus = 4, .memory_bytes = 64 << 20};
    CHECK(pages(board) == 128);
    board.memory_bytes = 8 << 20;  // but never below 8 samples
    CHECK(pages(board) == 64);
    board.memory_bytes = std::uint64_t{1} << 40;
    CHECK(pages(board) == 1024);
}

TEST_CASE("planned bytes per sample") {
    CHECK(planned_sample_bytes({}) == 512);
    // A stack of 16 KiB with its two sizes, 20 registers and their abi, fields, and a kernel chain.
    CHECK(planned_sample_bytes({wire::StackMode::dwarf, false, 0xff0fff, 16'384, false}) == 16'384 + 16 + 21 * 8 + 256);
    // The same with the user chain.
    CHECK(planned_sample_bytes({wire::StackMode::dwarf, false, 0xff0fff, 16'384}) == 16'384 + 16 + 21 * 8 + 512);
    CHECK(planned_sample_bytes({wire::StackMode::fp, false, 0x180, 0}) == 512 + 3 * 8);
    CHECK(planned_sample_bytes({wire::StackMode::lbr, true, 0, 0}) == 512 + 32 * 24);
}
