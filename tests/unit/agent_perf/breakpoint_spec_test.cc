// The grammar of hardware breakpoints. Expected values are those of linux/hw_breakpoint.h and linux/perf_event.h as
// literal numbers; forms without symbols are those of perf's tests/parse-events.c.
#include "agent/perf/breakpoint_spec.h"

#include <catch2/catch.hpp>

#include "agent/perf/attr.h"
#include "agent/perf/counter_spec.h"
#include "agent/perf/event_spec.h"
#include "fake_sysfs.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

constexpr std::uint32_t reads = 1, writes = 2, executes = 4;

EventSpec one(std::string_view text) {
    auto specs = parse_events(text, fake_sysfs({}));
    INFO(text);
    if (!specs) FAIL(specs.error().message);
    REQUIRE(specs->size() == 1);
    return specs->front();
}

std::string refused(std::string_view text) {
    auto specs = parse_events(text, fake_sysfs({}));
    INFO(text);
    REQUIRE_FALSE(specs);
    CHECK(specs.error().code == ErrorCode::invalid);
    return specs.error().message;
}

bool mentions(const std::string& message, std::string_view part) { return message.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("breakpoints at addresses, as perf parses them") {
    struct Expected {
        const char* text;
        std::uint64_t address;
        std::uint32_t length, access;
        bool exclude_user = false, exclude_kernel = false;
    };
    const std::uint32_t code = sizeof(long);  // x86
    for (const Expected& expected : {Expected{"mem:0x1000", 0x1000, 4, reads | writes},
                                     {"mem:0x1000:w", 0x1000, 4, writes},
                                     {"mem:0x1000:rw", 0x1000, 4, reads | writes},
                                     {"mem:0x1000:wr", 0x1000, 4, reads | writes},
                                     {"mem:0x1001/1:w", 0x1001, 1, writes},
                                     {"mem:0x1002/2:w", 0x1002, 2, writes},
                                     {"mem:0x1008/8:rw", 0x1008, 8, reads | writes},
                                     {"mem:0x1000:u", 0x1000, 4, reads | writes, false, true},
                                     {"mem:0x1000:w:k", 0x1000, 4, writes, true, false},
                                     {"mem:0x1000/1:w:uk", 0x1000, 1, writes},
                                     {"mem:0xffffffff81000000:w", 0xffff'ffff'8100'0000, 4, writes}}) {
        INFO(expected.text);
        const EventSpec spec = one(expected.text);
        CHECK(spec.name == expected.text);
        CHECK(spec.period == 1);
        CHECK(spec.unit == "events");
        CHECK_FALSE(spec.breakpoint);
        CHECK(is_breakpoint(spec));
        CHECK(spec.exclude_user == expected.exclude_user);
        CHECK(spec.exclude_kernel == expected.exclude_kernel);
        const perf_event_attr attr = sample_attr(spec, spec.parts.at(0), {.kernel = true}, {});
        CHECK(attr.type == 5);
        CHECK(attr.config == 0);
        CHECK(attr.bp_type == expected.access);
        CHECK(attr.bp_addr == expected.address);
        CHECK(attr.bp_len == expected.length);
        CHECK(attr.sample_period == 1);
        CHECK(attr.inherit == 1);
        CHECK(process_of(spec.parts[0]) == 0);
    }
#if defined(__x86_64__) || defined(__i386__)
    const perf_event_attr attr = sample_attr(one("mem:0x1001:x"), one("mem:0x1001:x").parts[0], {}, {});
    CHECK((attr.bp_type == executes && attr.bp_addr == 0x1001 && attr.bp_len == code));
    CHECK(mentions(refused("mem:0x1000:r"), "this CPU cannot report reads alone; use rw"));
    CHECK(mentions(refused("mem:0x1000/4:x"), "a breakpoint on code has the length 8"));
    CHECK(reports_next_instruction(one("mem:0x1000:w").parts[0]));
    CHECK_FALSE(reports_next_instruction(one("mem:0x1000:x").parts[0]));
    CHECK_FALSE(reports_next_instruction(one("cpu-clock").parts[0]));
#endif
}

TEST_CASE("breakpoints on symbols") {
    struct Expected {
        const char* text;
        const char* symbol;
        const char* file;
        std::uint64_t offset = 0;
        std::uint32_t length = 0, access = reads | writes;
        bool exclude_kernel = false;
    };
    for (const Expected& expected :
         {Expected{"mem:counter", "counter", ""},
          {"mem:counter:w", "counter", "", 0, 0, writes},
          {"mem:counter+8/2:w:u", "counter", "", 8, 2, writes, true},
          {"mem:counter+0x10", "counter", "", 16},
          {"mem:shop::total:w", "shop::total", "", 0, 0, writes},
          {"mem:shop::x", "shop::x", ""},
          {"mem:shop::x:rw", "shop::x", ""},
          {"mem:counter@libdata:w", "counter", "libdata", 0, 0, writes},
          {"mem:counter@libdata/8:w", "counter", "libdata", 0, 8, writes},
          {"mem:counter@\"/opt/a, b@c/lib:d.so\"/8:w:u", "counter", "/opt/a, b@c/lib:d.so", 0, 8, writes, true},
          {"mem:main:x", "main", "", 0, 0, executes}}) {
        INFO(expected.text);
        const EventSpec spec = one(expected.text);
        REQUIRE(spec.breakpoint);
        CHECK(spec.parts.empty());
        CHECK(is_breakpoint(spec));
        CHECK(spec.name == expected.text);
        CHECK(spec.breakpoint->symbol == expected.symbol);
        CHECK(spec.breakpoint->file == expected.file);
        CHECK(spec.breakpoint->address == expected.offset);
        CHECK(spec.breakpoint->length == expected.length);
        CHECK(spec.breakpoint->access == expected.access);
        CHECK(spec.exclude_kernel == expected.exclude_kernel);
        CHECK_FALSE(spec.frequency_hz);
        // With a rate, beside other events.
        const std::string list = "cpu-clock," + std::string(expected.text) + "@77,page-faults";
        const auto several = parse_events(list, fake_sysfs({})).value();
        REQUIRE(several.size() == 3);
        CHECK(several[1].name == expected.text);
        CHECK(several[1].frequency_hz == 77);
        CHECK(several[1].breakpoint->file == expected.file);
    }
}

TEST_CASE("breakpoints that are refused") {
    CHECK(mentions(refused("mem:0x1001:w"), "the address 0x1001 is not a multiple of the length 4"));
    CHECK(mentions(refused("mem:0x1000/3:w"), "the length '3' is not 1, 2, 4 or 8"));
    CHECK(mentions(refused("mem:0x1000/:w"), "the length '' is not"));
    CHECK(mentions(refused("mem:counter/16"), "the length '16' is not"));
    CHECK(mentions(refused("mem:0x1000:rx"), "x cannot be combined"));
    CHECK(mentions(refused("mem:counter:wx"), "x cannot be combined"));
    CHECK(mentions(refused("mem:0x1000:w:p"), "'p' is neither an access"));
    CHECK(mentions(refused("mem:0x1000:w:w"), "'w' is neither an access"));
    CHECK(mentions(refused("mem:0x1000:"), "'' is neither an access"));
    CHECK(mentions(refused("mem:0x10000000000000000:w"), "is not an address"));
    CHECK(mentions(refused("mem:0x:w"), "is not an address"));
    CHECK(mentions(refused("mem:0x1000@libc:w"), "an address has no file"));
    CHECK(mentions(refused("mem:counter+x:w"), "'+x' is not an offset"));
    CHECK(mentions(refused("mem:counter@:w"), "the file's name is missing"));
    CHECK(mentions(refused("mem:counter@\"\":w"), "the file's name is missing"));
    CHECK(mentions(refused("mem:counter@\"libc:w"), "closing quote"));
    CHECK(mentions(refused("mem:counter@\"libc\"w"), "'w' after the file"));
    CHECK(mentions(refused("mem:counter@0"), "is not a rate"));
    CHECK(mentions(refused("mem:count*:w"), "mem:SYMBOL"));
    for (const char* bad : {"mem:", "mem::w", "mem:1000", "mem:@libc", "mem:+8"})
        CHECK(mentions(refused(bad), "mem:SYMBOL@\"FILE\":w"));
    // The kernel's own interface stays refused.
    CHECK(mentions(refused("breakpoint/config1=0x1000/"), "is not supported, as its fields are addresses"));
    const auto counted = parse_counters("mem:0x1000:w", fake_sysfs({}));
    REQUIRE_FALSE(counted);
    CHECK(mentions(counted.error().message, "give them to --events"));
}

TEST_CASE("a breakpoint belongs to a process") {
    const EventPart part = breakpoint_part("mem:x", 0x7000, 8, writes, 4711).value();
    CHECK(process_of(part) == 4711);
    EventSpec spec;
    spec.parts = {part};
    const perf_event_attr attr = sample_attr(spec, part, {}, {});
    CHECK((attr.config == 0 && attr.bp_type == writes && attr.bp_addr == 0x7000 && attr.bp_len == 8));
    CHECK(process_of(one("cpu-clock").parts[0]) == 0);
    // No branch records, and a fixed period is not in each sample.
    CHECK_FALSE(sample_layout(wire::StackMode::lbr, EventSpec{}, part, {}, {}).branches);
    CHECK(fixed_period(spec, part, {.period = 17}) == 17);
}

TEST_CASE("a breakpoint on a symbol has one part for each process") {
    const auto part = [](std::uint64_t address, std::uint32_t pid) {
        return breakpoint_part("written", address, 4, writes, pid).value();
    };
    const auto addresses = [](const EventSpec& spec) {
        std::vector<std::pair<std::uint32_t, std::uint64_t>> all;
        for (const EventPart& one : spec.parts) all.emplace_back(process_of(one), one.config1);
        return all;
    };
    using Addresses = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
    EventSpec spec;
    spec.parts = {part(0x1000, 100), part(0x2000, 200)};
    replace_processes(spec, {100, 200}, {part(0x3000, 300)});
    CHECK(addresses(spec) == Addresses{{100, 0x1000}, {200, 0x2000}, {300, 0x3000}});
    // 200 has exited, and its pid is that of another process.
    replace_processes(spec, {100, 300}, {part(0x2004, 200)});
    CHECK(addresses(spec) == Addresses{{100, 0x1000}, {300, 0x3000}, {200, 0x2004}});
    // The file of the only process that is left has no such variable.
    replace_processes(spec, {}, {});
    REQUIRE(spec.parts.size() == 1);
    CHECK(is_breakpoint(spec));
    CHECK(process_of(spec.parts.front()) == 0xffff'ffff);
    perf_event_attr attr{};
    set_configuration(attr, spec.parts.front());
    CHECK(attr.bp_type == writes);
    replace_processes(spec, {100}, {part(0x4000, 400)});
    CHECK(addresses(spec) == Addresses{{400, 0x4000}});
    // An address is that of any process.
    EventSpec absolute = one("mem:0x1000:w");
    replace_processes(absolute, {}, {});
    CHECK(addresses(absolute) == Addresses{{0, 0x1000}});
}

// Documentation/arch/x86/x86_64/mm.rst, Documentation/arch/arm64/memory.rst, Documentation/arch/arm/memory.rst.
TEST_CASE("addresses of the kernel") {
    CHECK(is_kernel_address(0xffff'ffff'8100'0000, true));
    CHECK(is_kernel_address(0xffff'8000'0000'0000, true));
    CHECK_FALSE(is_kernel_address(0x7fff'ffff'ffff, true));
    CHECK_FALSE(is_kernel_address(0xf7e0'0000, true));  // of a 32-bit process
    CHECK(is_kernel_address(0xc000'8000, false));
    CHECK(is_kernel_address(0xbf00'0000, false));
    CHECK(is_kernel_address(0xffff'0000, false));
    CHECK(is_kernel_address(0x1'0000'0000, false));
    CHECK_FALSE(is_kernel_address(0xbeff'fffc, false));
}
