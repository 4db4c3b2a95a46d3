// The grammar of probes. The fetch arguments are examples of Documentation/trace/uprobetracer.rst.
#include "agent/perf/probe_spec.h"

#include <catch2/catch.hpp>

#include <string>

#include "agent/perf/event_spec.h"
#include "fake_sysfs.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

EventSpec one(std::string_view text) {
    auto specs = parse_events(text, fake_sysfs({}));
    INFO(text);
    if (!specs) FAIL(specs.error().message);
    REQUIRE(specs->size() == 1);
    REQUIRE(specs->front().probe);
    return specs->front();
}

std::string refusal(std::string_view text) {
    const auto specs = parse_events(text, fake_sysfs({}));
    INFO(text);
    REQUIRE_FALSE(specs);
    return specs.error().message;
}

bool mentions(const std::string& message, std::string_view part) { return message.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a function of a file") {
    const EventSpec spec = one(R"(uprobe:malloc@"/lib/x86_64-linux-gnu/libc.so.6")");
    CHECK(spec.name == R"(uprobe:malloc@"/lib/x86_64-linux-gnu/libc.so.6")");
    CHECK(spec.unit == "events");
    CHECK(spec.period == 1);
    CHECK(spec.parts.empty());
    CHECK(spec.probe->kind == ProbeSpec::Kind::uprobe);
    CHECK(spec.probe->function == "malloc");
    CHECK(spec.probe->file == "/lib/x86_64-linux-gnu/libc.so.6");
    CHECK(spec.probe->offset == 0);

    CHECK(one("uprobe:malloc@libc.so.6").probe->file == "libc.so.6");
    CHECK(one(R"(uprobe:ns::Class::operator+@"demo")").probe->function == "ns::Class::operator+");
    CHECK(one(R"(uprobe:read@"/srv/my app/demo")").probe->file == "/srv/my app/demo");
    CHECK(one(R"(uprobe:str*@"libc.so.6")").probe->function == "str*");
}

TEST_CASE("an offset in a function or a file") {
    const ProbeSpec in_function = *one(R"(uprobe:main+0x10@"demo")").probe;
    CHECK(in_function.function == "main");
    CHECK(in_function.offset == 16);
    CHECK(one(R"(uprobe:main+12@"demo")").probe->offset == 12);

    for (const char* text :
         {"uprobe:/usr/bin/demo:0x1234", R"(uprobe:"/usr/bin/demo":0x1234)", R"(uprobe:0x1234@"/usr/bin/demo")"}) {
        const ProbeSpec in_file = *one(text).probe;
        INFO(text);
        CHECK(in_file.function.empty());
        CHECK(in_file.offset == 0x1234);
        CHECK(in_file.file == "/usr/bin/demo");
    }
}

TEST_CASE("a USDT probe") {
    const ProbeSpec probe = *one(R"(usdt:libc:setjmp@"libc.so.6")").probe;
    CHECK(probe.kind == ProbeSpec::Kind::usdt);
    CHECK(probe.provider == "libc");
    CHECK(probe.name == "setjmp");
    CHECK(probe.file == "libc.so.6");
}

TEST_CASE("a function of the kernel") {
    const EventSpec spec = one("kprobe:vfs_read");
    CHECK(spec.name == "kprobe:vfs_read");
    CHECK(spec.probe->kind == ProbeSpec::Kind::kprobe);
    CHECK(spec.probe->in_kernel());
    CHECK(spec.probe->function == "vfs_read");
    CHECK(spec.probe->file.empty());
    CHECK(spec.period == 1);
    CHECK_FALSE(one("uprobe:vfs_read@demo").probe->in_kernel());

    CHECK(one("kprobe:vfs_read+0x8").probe->offset == 8);
    CHECK(one("kprobe:vfs_read+0x8").probe->function == "vfs_read");
    CHECK(one("kprobe:vfs_read@99").frequency_hz == 99);
    CHECK(one("kprobe:ext4:ext4_sync_file").probe->function == "ext4:ext4_sync_file");
    CHECK(one("kprobe:read_pages.isra.0").probe->function == "read_pages.isra.0");

    const EventSpec filtered = one(R"(kprobe:vfs_*/count > 3/count=$arg3:u64/name=+0(%di):string/alias=large/@50)");
    CHECK(filtered.name == "large");
    CHECK(filtered.filter == "count > 3");
    CHECK(filtered.frequency_hz == 50);
    CHECK(filtered.probe->function == "vfs_*");
    REQUIRE(filtered.probe->arguments.size() == 2);
    CHECK(filtered.probe->arguments[0] == ProbeArgument{"count", "$arg3:u64"});
}

TEST_CASE("filter, fields, alias and rate of a probe") {
    const EventSpec spec =
        one(R"(uprobe:open@"libc.so.6"/name == "/etc/passwd"/alias=open/arg=name:+0($arg1):string/flags=%si:u32/@50)");
    CHECK(spec.name == "open");
    CHECK(spec.filter == R"(name == "/etc/passwd")");
    CHECK(spec.frequency_hz == 50);
    REQUIRE(spec.probe->arguments.size() == 2);
    CHECK(spec.probe->arguments[0] == ProbeArgument{"name", "+0($arg1):string"});
    CHECK(spec.probe->arguments[1] == ProbeArgument{"flags", "%si:u32"});
    CHECK(spec.probe->attributes == R"(/name == "/etc/passwd"/alias=open/arg=name:+0($arg1):string/flags=%si:u32/)");

    // Without a filter, attributes may come first.
    const EventSpec no_filter = one(R"(uprobe:malloc@"libc.so.6"/size=$arg1/)");
    CHECK(no_filter.filter.empty());
    CHECK(no_filter.probe->arguments.at(0).fetch == "$arg1");
    CHECK(no_filter.name == R"(uprobe:malloc@"libc.so.6"/size=$arg1/)");
    CHECK(one(R"(uprobe:malloc@"libc.so.6"/size==3/size=$arg1/)").filter == "size==3");
    CHECK(one("uprobe:malloc@libc.so.6@99").frequency_hz == 99);
    CHECK(one("uprobe:malloc@libc.so.6@99").name == "uprobe:malloc@libc.so.6");
}

TEST_CASE("probes in a list") {
    const auto list = parse_events(
        R"(cpu-clock, uprobe:/a/b:0x10,uprobe:f@"/x,y/z"/a > 1/alias=g/,usdt:p:n@libq,cycles)", fake_sysfs({}));
    REQUIRE(list);
    REQUIRE(list->size() == 5);
    CHECK((*list)[1].probe->file == "/a/b");
    CHECK((*list)[2].probe->file == "/x,y/z");
    CHECK((*list)[2].name == "g");
    CHECK((*list)[3].probe->file == "libq");
    CHECK((*list)[4].name == "cycles");
    const auto kernel = parse_events(R"(kprobe:f/s == "a,b"/s=+0(%di):string/,kprobe:g,cycles)", fake_sysfs({}));
    REQUIRE(kernel);
    REQUIRE(kernel->size() == 3);
    CHECK((*kernel)[0].filter == R"(s == "a,b")");
    CHECK((*kernel)[1].name == "kprobe:g");
}

TEST_CASE("probes that are refused") {
    CHECK(mentions(refusal("uprobe:malloc"), "needs the file"));
    CHECK(mentions(refusal(R"(uprobe:malloc@"libc.so.6)"), "closing quote"));
    CHECK(mentions(refusal(R"(uprobe:malloc@"")"), "file's name is missing"));
    CHECK(mentions(refusal(R"(uprobe:@"libc.so.6")"), "function's name is missing"));
    CHECK(mentions(refusal(R"(usdt:libc@"libc.so.6")"), "usdt:PROVIDER:NAME"));
    CHECK(mentions(refusal("uprobe:f@libc.so.6/a > 1"), "no closing slash"));
    CHECK(mentions(refusal("uprobe:f@libc.so.6/a > 1/nonsense/"), "should look like NAME=VALUE"));
    CHECK(mentions(refusal("uprobe:f@libc.so.6//arg=size/"), "arg= needs NAME:VALUE"));
    CHECK(mentions(refusal("uprobe:f@libc.so.6//a=1/a=2/"), "given twice"));
    CHECK(mentions(refusal("uprobe:f@libc.so.6//max-stack=3/"), "neither an attribute"));
    CHECK(mentions(refusal("uprobe:f@libc.so.6/a/x"), "is not understood"));
    CHECK(mentions(refusal("uprobe:f@libc.so.6@fast"), "not a rate"));
    CHECK(mentions(refusal("uprobe:/usr/bin/demo:0xzz"), "not an offset"));
    for (const char* place : {"uretprobe:main+4@libc.so.6", "uretprobe:/usr/bin/demo:0x10", "kretprobe:vfs_read+4"})
        CHECK(mentions(refusal(place), "needs a function, without an offset"));
    CHECK(mentions(refusal("uretprobe:malloc"), "needs the file"));
    CHECK(mentions(refusal("kretprobe:"), "not a function of the kernel"));
    CHECK(mentions(refusal("kprobe:"), "not a function of the kernel"));
    CHECK(mentions(refusal("kprobe:0xffffffff81000000"), "not a function of the kernel"));
    CHECK(mentions(refusal("kprobe:vfs_read%return"), "not a function of the kernel"));
    CHECK(mentions(refusal("kprobe:vfs_read a=%di"), "not a function of the kernel"));
    CHECK(mentions(refusal("kprobe:vfs_read\n-:other"), "not a function of the kernel"));
    CHECK(mentions(refusal("kprobe:vfs_read+0xzz"), "not an offset"));
    // Another command for tracefs in a field would change other probes of the machine.
    CHECK(mentions(refusal("uprobe:f@libc.so.6//a=%di\n-:other/"), "is not a value"));
    CHECK(mentions(refusal("uprobe:f@libc.so.6//a=%di b=%si/"), "is not a value"));
    CHECK(mentions(refusal(R"(uprobe:f@"libc.so.6//alias=a b/)"), "closing quote"));
    CHECK(mentions(refusal("uprobe:f@libc.so.6//alias=a b/"), "alias="));
    std::string many = "uprobe:f@libc.so.6/";
    for (int i = 0; i < 17; ++i) many += "/a" + std::to_string(i) + "=%di";
    CHECK(mentions(refusal(many + "/"), "more than 16 fields"));
}

TEST_CASE("probes on returns") {
    const EventSpec user = one(R"(uretprobe:malloc@"libc.so.6"/r == 0/r=$retval/@99)");
    CHECK(user.name == R"(uretprobe:malloc@"libc.so.6"/r == 0/r=$retval/)");
    CHECK(user.filter == "r == 0");
    REQUIRE(user.probe);
    CHECK((user.probe->kind == ProbeSpec::Kind::uprobe && user.probe->returns));
    CHECK(user.probe->function == "malloc");
    CHECK(user.probe->arguments == std::vector<ProbeArgument>{{"r", "$retval"}});
    CHECK(name_of_match(*user.probe, {}, "calloc") == R"(uretprobe:calloc@"libc.so.6"/r == 0/r=$retval/)");
    const EventSpec kernel = one("kretprobe:vfs_*//alias=reads/");
    REQUIRE(kernel.probe);
    CHECK((kernel.probe->in_kernel() && kernel.probe->returns));
    CHECK(kernel.name == "reads");
    CHECK(name_of_match(*one("kretprobe:vfs_*").probe, {}, "vfs_read") == "kretprobe:vfs_read");
    CHECK_FALSE(one("uprobe:malloc@libc.so.6").probe->returns);
}

TEST_CASE("an event of a pattern") {
    const ProbeSpec pattern = *one(R"(uprobe:str*@"libc.so.6"/a > 1/a=$arg1/)").probe;
    CHECK(name_of_match(pattern, {}, "strlen") == R"(uprobe:strlen@"libc.so.6"/a > 1/a=$arg1/)");
    const ProbeSpec usdt = *one("usdt:libc:mem*@libc.so.6").probe;
    CHECK(name_of_match(usdt, "libc", "memory_malloc_retry") == R"(usdt:libc:memory_malloc_retry@"libc.so.6")");
    const ProbeSpec kernel = *one("kprobe:vfs_*/a > 1/a=$arg1/").probe;
    CHECK(name_of_match(kernel, {}, "vfs_read") == "kprobe:vfs_read/a > 1/a=$arg1/");
    CHECK(name_of_match(*one("uprobe:str*@libc.so.6//alias=text/").probe, {}, "strlen") == "text:strlen");
}
