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

TEST_CASE("an old kernel gets no bit that it does not know") {
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

TEST_CASE("the PMU number of a generic event can be taken away") {
    EventPart part{"cpu_atom", PERF_TYPE_HARDWARE, 10ULL << 32 | 1, 0, 0, {}};
    CHECK(strip_pmu_type(part));
    CHECK(part.config == 1);
    CHECK_FALSE(strip_pmu_type(part));
    EventPart raw{"cpu_atom", 10, 10ULL << 32, 0, 0, {}};
    CHECK_FALSE(strip_pmu_type(raw));
}

TEST_CASE("ring sizes") {
    // 999 Hz: 512 B * 999 / 2 = 255,744 B, the next power of two is 64 pages of 4 KiB.
    CHECK(ring_pages_for(999, 4096).sample == 64);
    CHECK(ring_pages_for(99, 4096).sample == 16);          // the least, 64 KiB
    CHECK(ring_pages_for(1'000'000, 4096).sample == 256);  // the most, 1 MiB
    CHECK(ring_pages_for(0, 4096).sample == 64);
    CHECK(ring_pages_for(99, 4096).sideband == 32);
    CHECK(ring_pages_for(99, 65'536).sample == 1);
    CHECK(ring_pages_for(99, 65'536).sideband == 2);
}
