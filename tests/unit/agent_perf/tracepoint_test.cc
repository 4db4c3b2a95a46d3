// Tracepoints by pattern, and the fields in their format files. The format files are those of Linux 6.18 on x86-64; their
// fields are as `bpftrace -lv` lists them.
#include "agent/perf/tracepoint.h"

#include <catch2/catch.hpp>

#include "agent/perf/counter_spec.h"
#include "fake_sysfs.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

constexpr std::string_view common =
    "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

FakeTree three_systems() {
    FakeTree tree;
    const std::string events = "kernel/tracing/events/";
    tree[events + "syscalls/enable"] = tree[events + "syscalls/filter"] = "0\n";
    tree[events + "syscalls/sys_enter_read/id"] = "3\n";
    tree[events + "syscalls/sys_exit_read/id"] = "4\n";
    tree[events + "syscalls/sys_enter_close/id"] = "1\n";
    tree[events + "syscalls/sys_enter_close/format"] = std::string(common) + "\tfield:unsigned int fd;\toffset:16;\n";
    for (int i = 0; i < 64; ++i) tree[events + "most/event" + std::to_string(i) + "/id"] = std::to_string(100 + i);
    for (int i = 0; i < 65; ++i) tree[events + "many/event" + std::to_string(i) + "/id"] = std::to_string(200 + i);
    return tree;
}

std::vector<std::string> names_of(std::string_view list) {
    std::vector<std::string> names;
    const auto specs = parse_events(list, fake_sysfs(three_systems())).value();
    for (const EventSpec& spec : specs) names.push_back(spec.name);
    return names;
}

std::string refused(std::string_view list) {
    const auto parsed = parse_events(list, fake_sysfs(three_systems()));
    INFO(list);
    REQUIRE_FALSE(parsed);
    CHECK((parsed.error().code == ErrorCode::invalid || parsed.error().code == ErrorCode::not_found));
    return parsed.error().message;
}

}  // namespace

TEST_CASE("a pattern stands for the tracepoints of its system") {
    using Names = std::vector<std::string>;
    CHECK(names_of("syscalls:*") ==
          Names{"syscalls:sys_enter_close", "syscalls:sys_enter_read", "syscalls:sys_exit_read"});
    CHECK(names_of("syscalls:sys_enter_*") == Names{"syscalls:sys_enter_close", "syscalls:sys_enter_read"});
    CHECK(names_of("syscalls:*_read") == Names{"syscalls:sys_enter_read", "syscalls:sys_exit_read"});
    CHECK(names_of("syscalls:s*_e*r_*s*") == Names{"syscalls:sys_enter_close"});
    // It may have alternatives and neighbors in the list.
    CHECK(names_of("cpu-clock,syscalls:*close,page-faults") ==
          Names{"cpu-clock", "syscalls:sys_enter_close", "page-faults"});
    CHECK(parse_counters("syscalls:*", fake_sysfs(three_systems()))->size() == 3);
    CHECK(names_of("most:*").size() == 64);
}

TEST_CASE("what follows a pattern belongs to each tracepoint") {
    const auto specs = parse_events("syscalls:*read/fd == 3 && name ~ \"a*\"/u@7", fake_sysfs(three_systems())).value();
    REQUIRE(specs.size() == 2);
    for (const EventSpec& spec : specs) {
        CHECK(spec.filter == "fd == 3 && name ~ \"a*\"");
        CHECK(spec.exclude_kernel);
        CHECK(spec.frequency_hz == 7);
    }
    CHECK(specs[0].parts.front().config == 3);
    CHECK(specs[1].parts.front().config == 4);
    CHECK(specs[0].name == "syscalls:sys_enter_read/fd == 3 && name ~ \"a*\"/u");
    CHECK(parse_events("syscalls:*close:k@9", fake_sysfs(three_systems()))->front().exclude_user);
    // Only a filter has the *.
    CHECK(parse_events("syscalls:sys_enter_close/name ~ \"a*\"/", fake_sysfs(three_systems()))->size() == 1);
}

TEST_CASE("patterns that are refused") {
    CHECK(refused("syscalls:openat*") == "this kernel has no tracepoint syscalls:openat*");
    CHECK(refused("nothing:*") == "this kernel has no tracepoint nothing:*");
    CHECK(refused("many:*") == "many:* stands for 65 tracepoints; at most 64 events are possible");
    CHECK(refused("most:*,cpu-clock") == "more than 64 events at once");
    CHECK(refused("sys*:read*").find("only the part after the colon may have *") != std::string::npos);
    CHECK(refused("../x:*").find("../x/") == std::string::npos);
    CHECK(refused("syscalls:*,syscalls:sys_exit_read") == "event 'syscalls:sys_exit_read' is listed twice");
    const auto unmounted = parse_events("sched:*", fake_sysfs({}));
    REQUIRE_FALSE(unmounted);
    CHECK(unmounted.error().message.find("mount -t tracefs") != std::string::npos);
}

TEST_CASE("fields of tracepoints") {
    const auto fields = tracepoint_fields("syscalls", "sys_enter_close", fake_sysfs(three_systems()));
    REQUIRE(fields);
    REQUIRE(fields->size() == 1);
    CHECK(fields->front().name == "fd");
    CHECK(fields->front().type == "unsigned int");
    CHECK_FALSE(tracepoint_fields("syscalls", "nothing", fake_sysfs(three_systems())));
}

TEST_CASE("parts of an event keep the values that all of them have") {
    using perf::ValueField, perf::ValueKind;
    const auto part = [](perf::ValueFields fields) {
        EventPart one;
        one.values = std::make_shared<const perf::SampleValues>(perf::SampleValues{std::move(fields), ""});
        return one;
    };
    const ValueField size{"size", ValueKind::unsigned_number, ValueField::Place::fixed, 8, 8};
    const ValueField name{"name", ValueKind::text, ValueField::Place::data_loc, 16, 4};
    const ValueField other_size{"size", ValueKind::signed_number, ValueField::Place::fixed, 12, 4};
    const ValueField number_name{"name", ValueKind::unsigned_number, ValueField::Place::fixed, 24, 8};
    EventSpec spec;
    spec.parts = {part({size, name}), part({name, other_size})};
    keep_common_values(spec);
    CHECK(spec.parts[0].values->fields == perf::ValueFields{size, name});
    CHECK(spec.parts[1].values->fields == perf::ValueFields{other_size, name});
    // A text and a number of the same name are not the same value.
    spec.parts.push_back(part({number_name, size}));
    keep_common_values(spec);
    for (const EventPart& one : spec.parts) CHECK(one.values->fields.size() == 1);
    CHECK(spec.parts[1].values->fields.front() == other_size);
}
