// The exact requests to the kernels of boards: releases that support less, that forbid, that have no PMU or an
// incomplete one, and pages of 4, 16 and 64 KiB. Numbers are literal, with the bit numbers of linux/perf_event.h.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "agent/perf/counter_set.h"
#include "agent/perf/event_set.h"
#include "agent/perf/merge.h"
#include "agent/perf/pmu.h"
#include "fake_sysfs.h"
#include "old_kernel.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

// IP 1, TID 2, TIME 4, CALLCHAIN 0x20, CPU 0x80, PERIOD 0x100, IDENTIFIER 0x10000.
constexpr std::uint64_t plain_sample = 0x1'01a7;
constexpr std::uint64_t registers = 0x1000, stack = 0x2000;
// TID, TIME, CPU, IDENTIFIER.
constexpr std::uint64_t plain_sideband = 0x1'0086;
// inherit 1, freq 10, watermark 14, sample_id_all 18, use_clockid 25.
constexpr std::uint64_t sample_flags = 0x204'4402;
constexpr std::uint64_t user_only = 0x20'0060;  // exclude_kernel 5, exclude_hv 6, exclude_callchain_kernel 21
// inherit, exclude_kernel, exclude_hv, mmap 8, comm 9, task 13, watermark, sample_id_all, mmap2 23, comm_exec 24,
// use_clockid.
constexpr std::uint64_t sideband_flags = 0x384'6362;
constexpr std::uint64_t build_id = std::uint64_t{1} << 34;
constexpr std::uint64_t owner_flags = 0x204'4060;
constexpr std::uint64_t lost_format = 16;

struct Recording {
    Capabilities capabilities;
    EventChoice choice;
    std::unique_ptr<EventSet> set;
};

Result<Recording> record(OldKernel& kernel, std::string_view events, std::uint32_t hz = 999,
                         wire::StackMode mode = wire::StackMode::fp, const FakeTree& tree = plain_x86()) {
    const Kernel calls = kernel.calls();
    Recording recording;
    recording.capabilities = read_capabilities(fake_sysfs(tree), calls);
    CHECK(kernel.events.empty());
    recording.choice =
        TRY(choose_events(*parse_events(events, fake_sysfs(tree)), hz, 0, true, recording.capabilities, calls));
    CHECK(kernel.events.empty());
    EventSetOptions options;
    options.choice = recording.choice;
    options.targets = {{static_cast<std::uint32_t>(::getpid()), mode}};
    recording.set = TRY(EventSet::open(options, recording.capabilities, calls));
    return recording;
}

// The events that are open in the end, by kind. The owners of rings are those that are mapped.
struct OpenEvents {
    std::vector<OldKernel::Event> owners, sideband, ksymbols, samples;
};
OpenEvents open_events(const OldKernel& kernel) {
    OpenEvents all;
    for (const auto& [fd, event] : kernel.events) {
        CHECK(event.cpu >= 0);
        if (event.mapped != 0)
            all.owners.push_back(event);
        else if (event.attr.mmap2 != 0)
            all.sideband.push_back(event);
        else if (event.attr.ksymbol != 0)
            all.ksymbols.push_back(event);
        else
            all.samples.push_back(event);
        CHECK((event.mapped != 0 || event.output >= 0));
    }
    return all;
}

const wire::Notice* notice(const std::vector<wire::Notice>& notices, std::string_view code) {
    const auto found = std::find_if(notices.begin(), notices.end(), [&](const auto& one) { return one.code == code; });
    return found == notices.end() ? nullptr : &*found;
}

std::size_t online() { return online_cpus(real_sysfs()).size(); }

}  // namespace

TEST_CASE("every release gets the bits that it supports, and no others") {
    const Release release = GENERATE(linux_4_9, linux_4_14, linux_5_4, linux_6_1);
    INFO(release.name);
    const bool modern = release.flags == linux_6_1.flags;
    OldKernel kernel(release);
    kernel.mlock_kb = 4'096 + 136;  // page faults have no known rate: 4 MiB per CPU, 128 KiB for records, control pages
    {
        const auto recording = record(kernel, "cycles,cpu-clock,page-faults");
        if (!recording) FAIL(recording.error().message);
        CHECK(recording->capabilities.format_lost == modern);
        CHECK(recording->capabilities.build_id == modern);
        CHECK(recording->choice.notices.empty());
        CHECK(recording->set->take_notices().empty());

        const OpenEvents all = open_events(kernel);
        REQUIRE(all.owners.size() == 2 * online());
        REQUIRE(all.sideband.size() == online());
        REQUIRE(all.samples.size() == 3 * online());
        REQUIRE(all.ksymbols.size() == (release.flags > 29 ? online() : 0));
        for (const OldKernel::Event& event : all.ksymbols) {
            CHECK((event.attr.type == PERF_TYPE_SOFTWARE && event.attr.config == PERF_COUNT_SW_DUMMY));
            CHECK(event.pid == -1);  // any process that loads a program
            CHECK(event.attr.sample_type == plain_sideband);
        }
        for (const auto& [attr, pid, cpu, leader, output, followers, enabled, mapped, memory] : all.owners) {
            CHECK((attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_DUMMY && pid == 0));
            CHECK(flag_word(attr) == owner_flags);
            CHECK(attr.wakeup_watermark == (mapped - kernel.page_size) / 2);
        }
        for (const OldKernel::Event& event : all.sideband) {
            CHECK(event.pid == ::getpid());
            CHECK(flag_word(event.attr) == (sideband_flags | (modern ? build_id : 0)));
            CHECK(event.attr.sample_type == plain_sideband);
            CHECK(event.attr.read_format == (modern ? lost_format : 0));
        }
        for (const OldKernel::Event& event : all.samples) {
            CHECK(event.pid == ::getpid());
            // Every fault is a sample: without the flag `freq`, the number is the period.
            const bool fault = event.attr.type == PERF_TYPE_SOFTWARE && event.attr.config == PERF_COUNT_SW_PAGE_FAULTS;
            CHECK(flag_word(event.attr) == (fault ? sample_flags & ~(std::uint64_t{1} << 10) : sample_flags));
            CHECK(event.attr.sample_type == plain_sample);
            CHECK(event.attr.read_format == (modern ? lost_format : 0));
            CHECK(event.attr.sample_freq == (fault ? 1 : 999));
            CHECK(event.attr.clockid == 1);  // CLOCK_MONOTONIC
            CHECK(event.attr.branch_sample_type == 0);
            CHECK(event.attr.sample_regs_user == 0);
            CHECK(event.attr.sample_stack_user == 0);
            CHECK(event.attr.sample_max_stack == 0);
            CHECK(event.enabled);
        }
        CHECK(all.samples.front().attr.type == PERF_TYPE_HARDWARE);
    }
    CHECK(kernel.events.empty());
}

TEST_CASE("dwarf, hybrid and branch-record stacks on every release") {
    const Release release = GENERATE(linux_4_9, linux_4_14, linux_5_4, linux_6_1);
    INFO(release.name);
    OldKernel kernel(release);
    kernel.privileged = kernel.call_stacks = true;
    const std::uint64_t mask = unwind::sampled_register_mask(sampled_architectures().front());
    {
        const auto dwarf = record(kernel, "cycles", 99, wire::StackMode::dwarf);
        if (!dwarf) FAIL(dwarf.error().message);
        for (const OldKernel::Event& event : open_events(kernel).samples) {
            CHECK(event.attr.sample_type == (plain_sample | registers | stack));
            CHECK(flag_word(event.attr) == (sample_flags | 1U << 22));  // exclude_callchain_user
            CHECK(event.attr.sample_regs_user == mask);
            CHECK(event.attr.sample_stack_user == 16'384);
        }
    }
    {
        const auto hybrid = record(kernel, "cycles", 99, wire::StackMode::hybrid);
        REQUIRE(hybrid);
        for (const OldKernel::Event& event : open_events(kernel).samples) {
            CHECK(event.attr.sample_type == (plain_sample | registers | stack));
            CHECK(flag_word(event.attr) == sample_flags);
            CHECK(event.attr.sample_stack_user == 2'048);
        }
    }
    {
        const auto branches = record(kernel, "cycles", 99, wire::StackMode::lbr);
        REQUIRE(branches);
        for (const OldKernel::Event& event : open_events(kernel).samples) {
            CHECK(event.attr.sample_type == (plain_sample | 0x800));
            CHECK(event.attr.branch_sample_type == 0x801);  // USER 0, CALL_STACK 11
        }
    }
    kernel.user_registers = kernel.call_stacks = false;
    const auto refused = record(kernel, "cycles", 99, wire::StackMode::dwarf);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message ==
          "dwarf needs a kernel that hands out user registers and stacks with samples; available: auto, fp");
    CHECK(kernel.events.empty());
}

TEST_CASE("counters are read in groups if inherited events can be") {
    const Release release = GENERATE(linux_4_9, linux_4_14, linux_5_4, linux_6_1);
    INFO(release.name);
    OldKernel kernel(release);
    const Kernel calls = kernel.calls();
    const Capabilities capabilities = read_capabilities(fake_sysfs(plain_x86()), calls);
    const auto wanted = parse_counters("cycles,instructions,task-clock,context-switches", fake_sysfs(plain_x86()));
    REQUIRE(wanted);
    const std::vector<Counter> counters = choose_counters(*wanted, false, capabilities, calls);
    REQUIRE(counters.size() == 4);
    {
        const auto set = CounterSet::open({.pids = {static_cast<std::uint32_t>(::getpid())}}, counters, calls);
        REQUIRE(set);
        // Two groups, one of hardware and one of software events, or each event by itself.
        REQUIRE(kernel.events.size() == 4);
        const bool groups = release.groups_of_inherited;
        std::size_t followers = 0;
        for (const auto& [fd, event] : kernel.events) {
            CHECK(event.attr.read_format == (groups ? 0xb : 0x3));
            CHECK(flag_word(event.attr) == 0x2);
            CHECK((event.attr.sample_period == 0 && event.attr.sample_type == 0));
            followers += event.leader >= 0 ? 1 : 0;
        }
        CHECK(followers == (groups ? 2 : 0));
        const std::vector<CounterDelta> deltas = (*set)->read();
        REQUIRE(deltas.size() == 4);
        for (const CounterDelta& delta : deltas) {
            CHECK(delta.status == wire::CounterStatus::counted);
            CHECK(delta.value == 42);
            CHECK((delta.enabled_ns == 1'000 && delta.running_ns == 1'000));
        }
    }
    CHECK(kernel.events.empty());
}

TEST_CASE("on a kernel that is too old, the error names the required release") {
    // 3.18: no use_clockid, 96 bytes.
    OldKernel kernel({"3.18", 96, 25, 18, 4, 11, false, false});
    const auto recording = record(kernel, "cycles");
    REQUIRE_FALSE(recording);
    CHECK(recording.error().code == ErrorCode::unsupported);
    CHECK(recording.error().message ==
          "this kernel cannot stamp samples with the monotonic clock (it needs Linux 4.1)");
}

TEST_CASE("forbidden events are left out, or reported with the remedy") {
    const Release release = GENERATE(linux_4_9, linux_5_4, linux_6_1);
    INFO(release.name);
    OldKernel kernel(release);
    kernel.paranoid = 2;
    {
        const auto user = record(kernel, "cycles");
        REQUIRE(user);
        REQUIRE(notice(user->choice.notices, "kernel-excluded"));
        CHECK(notice(user->choice.notices, "kernel-excluded")->remedy == "sysctl -w kernel.perf_event_paranoid=1");
        const OpenEvents all = open_events(kernel);
        REQUIRE(all.samples.size() == online());
        for (const OldKernel::Event& event : all.samples) {
            CHECK(event.attr.type == PERF_TYPE_HARDWARE);
            CHECK(flag_word(event.attr) == (sample_flags | user_only));
        }
    }
    kernel.paranoid = 3;  // the value of Debian and Android
    const auto nothing = record(kernel, "cycles");
    REQUIRE_FALSE(nothing);
    CHECK(nothing.error().code == ErrorCode::permission);
    CHECK(nothing.error().message ==
          "kernel.perf_event_paranoid is 3: ordinary users may not use perf events. Try: sysctl -w "
          "kernel.perf_event_paranoid=1");
    kernel.privileged = true;
    CHECK(record(kernel, "cycles"));
}

TEST_CASE("a kernel without perf events") {
    OldKernel kernel(linux_4_9);
    kernel.perf_events = false;
    const auto recording = record(kernel, "cycles");
    REQUIRE_FALSE(recording);
    CHECK(recording.error().code == ErrorCode::unsupported);
    CHECK(recording.error().message ==
          "this kernel has no perf_event_open (it is built without CONFIG_PERF_EVENTS, or a sandbox hides it)");
    const auto wanted = parse_counters("cycles,task-clock", fake_sysfs(no_pmu()));
    const Kernel calls = kernel.calls();
    for (const Counter& counter :
         choose_counters(*wanted, false, read_capabilities(fake_sysfs(no_pmu()), calls), calls))
        CHECK(counter.status == wire::CounterStatus::unsupported);
}

TEST_CASE("an incomplete PMU: the clock is sampled instead, with the reason") {
    OldKernel kernel(linux_4_9);
    const auto check_fallback = [&](const char* text) {
        const auto recording = record(kernel, "cycles");
        REQUIRE(recording);
        REQUIRE(recording->choice.events.size() == 1);
        CHECK(recording->choice.events[0].name == "cpu-clock");
        REQUIRE(notice(recording->choice.notices, "event-fallback"));
        CHECK(notice(recording->choice.notices, "event-fallback")->text == text);
        for (const OldKernel::Event& event : open_events(kernel).samples) {
            CHECK((event.attr.type == PERF_TYPE_SOFTWARE && event.attr.config == PERF_COUNT_SW_CPU_CLOCK));
            CHECK((event.attr.freq == 1 && event.attr.sample_freq == 999));
        }
    };
    SECTION("no PMU") {
        kernel.pmu = false;
        check_fallback("Sampling cpu-clock instead of cycles: this CPU or kernel has no event cycles.");
    }
    SECTION("no interrupts: events that cannot be sampled are still counted") {
        kernel.interrupts = false;
        check_fallback(
            "Sampling cpu-clock instead of cycles: event cycles cannot be sampled here: its counter has no overflow "
            "interrupt, or not in this mode.");
        const Kernel calls = kernel.calls();
        const auto counters = choose_counters(*parse_counters("cycles", fake_sysfs(no_pmu())), false,
                                              read_capabilities(fake_sysfs(no_pmu()), calls), calls);
        REQUIRE(counters.size() == 1);
        CHECK(counters[0].status == wire::CounterStatus::counted);
    }
    SECTION("no user and kernel mode: both together, or the clock") {
        kernel.modes = false;
        {
            const auto whole = record(kernel, "cycles");
            REQUIRE(whole);
            CHECK(whole->choice.events[0].name == "cycles");
        }
        kernel.paranoid = 2;
        check_fallback(
            "Sampling cpu-clock instead of cycles: event cycles cannot be sampled here: its counter has no overflow "
            "interrupt, or not in this mode.");
    }
    SECTION("no free counter") {
        kernel.refuse_hardware = ENOSPC;
        check_fallback("Sampling cpu-clock instead of cycles: the CPU has no free counter for event cycles.");
    }
    SECTION("ENOTSUPP, the kernel's internal code that is not an errno (drivers return it)") {
        kernel.refuse_hardware = 524;
        check_fallback(
            "Sampling cpu-clock instead of cycles: event cycles cannot be sampled here: its counter has no overflow "
            "interrupt, or not in this mode.");
    }
}

TEST_CASE("without descriptors nothing stays open, and the error names the limit") {
    OldKernel kernel(linux_5_4);
    for (const std::size_t most : {std::size_t{0}, 2 * online(), 2 * online() + 1}) {
        kernel.descriptors = most;
        const auto recording = record(kernel, "cpu-clock");
        REQUIRE_FALSE(recording);
        CHECK(recording.error().code == ErrorCode::busy);
        CHECK(recording.error().message ==
              "the limit of open files is too low for this many threads and CPUs. Try: ulimit -n 65536 before "
              "starting the agent");
        CHECK(kernel.events.empty());
    }
}

TEST_CASE("without /proc/sys, the kernel's defaults are assumed") {
    OldKernel kernel(linux_4_9);
    kernel.sysctls = false;
    const auto recording = record(kernel, "cycles", 999);
    REQUIRE(recording);
    CHECK(recording->capabilities.max_stack == 127);
    CHECK(recording->capabilities.paranoid == 2);
    CHECK(recording->choice.frequency_hz == 999);
}

TEST_CASE("a lower limit of samples per second and PMU numbers on old kernels") {
    const Release release = GENERATE(linux_4_9, linux_4_14, linux_5_4, linux_6_1);
    INFO(release.name);
    OldKernel kernel(release);
    kernel.max_rate_hz = 250;
    const auto recording = record(kernel, "cycles", 999, wire::StackMode::fp, arm_big_little());
    if (!recording) FAIL(recording.error().message);
    CHECK(recording->choice.frequency_hz == 250);
    REQUIRE(notice(recording->choice.notices, "rate-clamped"));
    for (const OldKernel::Event& event : open_events(kernel).samples) {
        CHECK(event.attr.sample_freq == 250);
        // The A53's PMU has the number 8, and CPUs 0 to 3 are of this kind.
        CHECK(event.attr.config == (release.pmu_in_config ? std::uint64_t{8} << 32 : 0));
    }
}

TEST_CASE("a kernel that does not count losses: the first loss comes with the note that the number is a lower bound") {
    OldKernel kernel(linux_5_4);
    auto recording = record(kernel, "cpu-clock");
    REQUIRE(recording);
    struct Losses final : RecordSink {
        std::uint64_t lost = 0;
        std::vector<std::optional<std::uint32_t>> events;
        void on_record(const Record& record, std::optional<std::uint32_t> event) override {
            if (const auto* gap = std::get_if<LostRecord>(&record)) lost += gap->count;
            events.push_back(event);
        }
    } seen;
    recording->set->drain(seen, release_everything);
    CHECK(recording->set->take_notices().empty());

    // PERF_RECORD_LOST with the sample_id of sideband records: TID, TIME, CPU, IDENTIFIER.
    const auto owner = std::find_if(kernel.events.begin(), kernel.events.end(),
                                    [](const auto& entry) { return entry.second.mapped != 0; });
    REQUIRE(owner != kernel.events.end());
    struct Lost {
        std::uint32_t type = PERF_RECORD_LOST;
        std::uint16_t misc = 0, size = 56;
        std::uint64_t id = 0, lost = 7;
        std::uint32_t pid = 0, tid = 0;
        std::uint64_t time = 1;
        std::uint32_t cpu = 0, reserved = 0;
        std::uint64_t identifier = 0;
    } const loss_record;
    static_assert(sizeof loss_record == 56);
    auto* page = static_cast<perf_event_mmap_page*>(owner->second.memory);
    std::memcpy(static_cast<char*>(owner->second.memory) + kernel.page_size, &loss_record, sizeof loss_record);
    page->data_head = sizeof loss_record;
    recording->set->drain(seen, release_everything);
    CHECK(seen.lost == 7);
    CHECK(seen.events == std::vector{std::optional<std::uint32_t>()});  // no event has the id 0
    CHECK(recording->set->counts().samples_lost == 7);
    const auto notices = recording->set->take_notices();
    REQUIRE(notice(notices, "loss-lower-bound"));
    CHECK(notice(notices, "loss-lower-bound")->text ==
          "This kernel does not count what it loses (Linux 6.0 does): losses after the last record of a full ring are "
          "not counted.");
    CHECK(page->data_tail == sizeof loss_record);

    // A loss with the id of an event.
    const auto event = std::find_if(kernel.events.begin(), kernel.events.end(), [&](const auto& entry) {
        return entry.second.output == owner->first && entry.second.attr.sample_period != 0;
    });
    REQUIRE(event != kernel.events.end());
    Lost known;
    known.id = known.identifier = static_cast<std::uint64_t>(event->first);
    std::memcpy(static_cast<char*>(owner->second.memory) + kernel.page_size + sizeof known, &known, sizeof known);
    page->data_head = 2 * sizeof known;
    recording->set->drain(seen, release_everything);
    CHECK(seen.lost == 14);
    CHECK(seen.events == std::vector{std::optional<std::uint32_t>(), std::optional(0U)});
}

TEST_CASE("rings of 4, 16 and 64 KiB pages stay within the lockable memory") {
    const std::uint64_t page = GENERATE(4'096, 16'384, 65'536);
    INFO(page);
    OldKernel kernel(linux_5_4);
    kernel.page_size = page;
    kernel.cpus = online();
    kernel.mlock_kb = 512 + static_cast<std::int64_t>(page / 1024);  // the kernel's default
    struct Case {
        std::uint32_t hz;
        wire::StackMode mode;
        std::uint64_t sample_kb;
        bool halved;
    };
    // 99 x 0.5 s x 512 B is below the minimum of 64 KiB. 999 Hz needs 250 KiB. Stacks need 3.2 MB, more than any user
    // may lock.
    const Case wanted = GENERATE(Case{99, wire::StackMode::fp, 64, false}, Case{999, wire::StackMode::fp, 256, false},
                                 Case{999, wire::StackMode::dwarf, 256, true});
    std::string remedy;
    {
        const auto recording = record(kernel, "cpu-clock", wanted.hz, wanted.mode);
        if (!recording) FAIL(recording.error().message);
        const auto notices = recording->set->take_notices();
        CHECK((notice(notices, "rings-halved") != nullptr) == wanted.halved);
        if (wanted.halved) {
            CHECK(notice(notices, "rings-halved")->text ==
                  "The sample rings have 256 KiB per CPU instead of 4096: the kernel's limit on locked memory.");
            remedy = notice(notices, "rings-halved")->remedy;
        }
        const OpenEvents all = open_events(kernel);
        REQUIRE(all.owners.size() == 2 * online());
        for (std::size_t i = 0; i < all.owners.size(); ++i) {
            const std::uint64_t data = all.owners[i].mapped - page;
            CHECK(data == (i % 2 == 0 ? wanted.sample_kb * 1024 : 128 * 1024));
            CHECK(all.owners[i].attr.wakeup_watermark == data / 2);
        }
        CHECK(recording->set->counts().ring_bytes == online() * ((wanted.sample_kb + 128) * 1024 + 2 * page));
        CHECK(kernel.locked_bytes == recording->set->counts().ring_bytes);
    }
    CHECK(kernel.locked_bytes == 0);
    if (wanted.halved) {
        // The lowest limit that helps.
        const std::string_view setting = "sysctl -w kernel.perf_event_mlock_kb=";
        REQUIRE(remedy.starts_with(setting));
        const std::int64_t enough = std::stoll(remedy.substr(setting.size()));
        for (const std::int64_t limit : {enough, enough - 1}) {
            kernel.mlock_kb = limit;
            const auto recording = record(kernel, "cpu-clock", wanted.hz, wanted.mode);
            REQUIRE(recording);
            CHECK((notice(recording->set->take_notices(), "rings-halved") != nullptr) == (limit < enough));
        }
    }
    // A limit of one page is too low even for the smallest rings.
    kernel.mlock_kb = static_cast<std::int64_t>(page / 1024);
    const auto nothing = record(kernel, "cpu-clock", wanted.hz, wanted.mode);
    REQUIRE_FALSE(nothing);
    CHECK(nothing.error().message.find("limit on locked memory leaves no room for perf rings") != std::string::npos);
    CHECK(kernel.events.empty());
}
