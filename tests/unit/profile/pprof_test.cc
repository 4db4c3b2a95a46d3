// Import and export of pprof. Input files are built field by field, with the numbers of the published schema.
#include "profile/formats/pprof.h"

#include <catch2/catch.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <zlib.h>

#include "batch_maker.h"
#include "imported.h"
#include "profile/formats/csv.h"
#include "profile/formats/import_names.h"

namespace flamewire::profile {
namespace {

using protozero::pbf_writer;

struct Maker {
    std::string bytes, strings;
    pbf_writer out{bytes}, texts{strings};
    std::int64_t last = 0;

    Maker() { texts.add_string(6, ""); }
    std::int64_t text(const std::string& value) {
        texts.add_string(6, value);
        return ++last;
    }
    void type(const std::string& name, const std::string& unit) {
        const auto a = text(name), b = text(unit);
        pbf_writer writer(out, 1);
        writer.add_int64(1, a);
        writer.add_int64(2, b);
    }
    void mapping(std::uint64_t id, std::uint64_t start, std::uint64_t offset, const std::string& file,
                 const std::string& build_id = "") {
        const auto a = text(file), b = text(build_id);
        pbf_writer writer(out, 3);
        writer.add_uint64(1, id);
        writer.add_uint64(2, start);
        writer.add_uint64(3, start + 0x10000);
        writer.add_uint64(4, offset);
        writer.add_int64(5, a);
        writer.add_int64(6, b);
    }
    void function(std::uint64_t id, const std::string& name, const std::string& file) {
        const auto a = text(name), b = text(file);
        pbf_writer writer(out, 5);
        writer.add_uint64(1, id);
        writer.add_int64(2, a);
        writer.add_int64(4, b);
    }
    void location(std::uint64_t id, std::uint64_t mapping, std::uint64_t address,
                  const std::vector<std::pair<std::uint64_t, std::int64_t>>& lines = {}) {
        pbf_writer writer(out, 4);
        writer.add_uint64(1, id);
        writer.add_uint64(2, mapping);
        writer.add_uint64(3, address);
        for (const auto& [function, line] : lines) {
            pbf_writer one(writer, 4);
            one.add_uint64(1, function);
            one.add_int64(2, line);
        }
    }
    void sample(const std::vector<std::uint64_t>& locations, const std::vector<std::int64_t>& values,
                std::int64_t pid = 0, std::int64_t tid = 0) {
        const auto a = text("pid"), b = text("tid");
        pbf_writer writer(out, 2);
        writer.add_packed_uint64(1, locations.begin(), locations.end());
        writer.add_packed_int64(2, values.begin(), values.end());
        for (const auto& [key, number] : {std::pair(a, pid), std::pair(b, tid)}) {
            if (number == 0) continue;
            pbf_writer label(writer, 3);
            label.add_int64(1, key);
            label.add_int64(3, number);
        }
    }
    std::string take() { return bytes + strings; }
};

std::string inflated(const std::string& data) {
    z_stream stream{};
    REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
    std::string out(std::size_t{1} << 20, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    stream.avail_in = static_cast<uInt>(data.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    REQUIRE(inflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(stream.total_out);
    inflateEnd(&stream);
    return out;
}

Maker two_events() {
    Maker maker;
    maker.type("alloc_objects", "count");
    maker.type("alloc_space", "bytes");
    maker.mapping(1, 0x7f0000400000, 0x1000, "/lib/libz.so", "0aff");
    maker.mapping(2, 0x400000, 0, "/usr/bin/app");
    maker.function(1, "inner", "a.c");
    maker.function(2, "outer", "b.c");
    maker.location(7, 1, 0x7f0000400010, {{1, 5}, {2, 9}});  // inner inlined into outer
    maker.location(8, 1, 0x7f0000400020);
    maker.location(9, 2, 0x400123);
    maker.sample({7, 9}, {3, 100}, 12, 13);
    maker.sample({8, 8}, {1, 50}, 12, 14);
    return maker;
}

}  // namespace

TEST_CASE("pprof in: events, inlined frames, modules and threads") {
    const ImportedText imported(two_events().take());
    CHECK(imported.recognised == "pprof");
    CHECK(imported.problem.empty());
    CHECK(imported.events() == "alloc_objects/alloc_objects alloc_space/bytes ");
    // A caller's address is the return address minus 1. Addresses of the library are relative to its file, those of the
    // program are where it was linked.
    CHECK(imported.lines("alloc_space", true) ==
          "[unknown];[app+0x400124];outer;inner 100\n"
          "[unknown];[libz.so+0x1021];[libz.so+0x1020] 50\n");
    CHECK(imported.lines("alloc_space") ==
          "[unknown];[app+0x400124];outer;inner 3\n"
          "[unknown];[libz.so+0x1021];[libz.so+0x1020] 1\n");
    REQUIRE(imported.function("inner") != nullptr);
    CHECK(imported.function("inner")->kind == FrameKind::inlined);
    CHECK(imported.function("outer")->kind == FrameKind::user);
    CHECK(imported.function("inner")->line == 5);
    CHECK(imported.store.string(imported.function("outer")->file) == "b.c");
    CHECK(imported.module_of("outer") == "libz.so");
    bool found = false;
    for (const Module& module : imported.store.modules()) found = found || module.identity.build_id == "\x0a\xff";
    CHECK(found);
    REQUIRE(imported.store.threads().size() == 3);
    CHECK(imported.store.threads()[1].pid == 12);
    CHECK(imported.store.threads()[1].tid == 13);
    CHECK(imported.noted("import-no-times"));
    CHECK_FALSE(imported.noted("import-truncated"));
}

// It would have 40 billion frames.
TEST_CASE("pprof in: a sample with many locations of many frames each") {
    constexpr std::size_t count = 200'000;
    Maker maker;
    maker.type("cpu", "count");
    maker.function(1, "work", "");
    maker.location(1, 0, 0, std::vector(count, std::pair<std::uint64_t, std::int64_t>(1, 1)));
    maker.sample(std::vector<std::uint64_t>(count, 1), {5});
    const ImportedText imported(maker.take());
    CHECK(imported.problem.empty());
    CHECK(imported.noted("import-deep"));
    REQUIRE(imported.store.tables().stacks.size() == max_stack_depth + 1);
}

TEST_CASE("pprof in: samples are counts of the next value, times become ns") {
    Maker maker;
    maker.type("samples", "count");
    maker.type("cpu", "milliseconds");
    maker.mapping(1, 0, 0, "[kernel.kallsyms]");
    maker.mapping(2, 0, 0, "/lib/modules/6.1/ext4.ko");
    maker.function(1, "vfs_read", "");
    maker.function(2, "ext4_read", "");
    maker.location(1, 1, 0, {{1, 0}});
    maker.location(2, 2, 0, {{2, 0}});
    maker.location(3, 2, 0x40, {});
    maker.sample({2, 3, 1}, {4, 40});
    maker.sample({}, {1, 10});
    const ImportedText imported(maker.take());
    CHECK(imported.events() == "cpu/ns ");
    CHECK(imported.lines().find("vfs_read;[ext4.ko+0x41];ext4_read 4\n") != std::string::npos);
    CHECK(imported.lines("cpu", true).find("vfs_read;[ext4.ko+0x41];ext4_read 40000000\n") != std::string::npos);
    REQUIRE(imported.function("ext4_read") != nullptr);
    CHECK(imported.function("ext4_read")->kind == FrameKind::kernel);
    CHECK(imported.module_of("ext4_read") == "ext4.ko");
    CHECK(imported.module_of("vfs_read") == "[kernel]");
    CHECK(imported.store.total(1) == Weight{5, 50'000'000});
}

TEST_CASE("pprof in: a truncated file is read up to the last whole part, or refused") {
    const std::string whole = two_events().take();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const ImportedText imported(whole.substr(0, size), "pprof");
        if (imported.problem.empty())
            CHECK((size == 0 || imported.noted("import-truncated") || !imported.recognised.empty()));
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
        (void)ImportedText(damaged, "pprof");
    }
}

TEST_CASE("files that are not pprof profiles") {
    CHECK_FALSE(recognise_import("\n\nsome text\n\n"));
    CHECK(ImportedText("a;b 1\n").recognised == "collapsed");
    CHECK(ImportedText(std::string(100, '\0')).recognised.empty());
}

TEST_CASE("pprof: export and import give the same") {
    BatchMaker maker;
    const wire::Id cycles = maker.event("cycles", "cycles"), wall = maker.event("wall", "ns");
    const wire::Id process = maker.process(5);
    const wire::Id one = maker.thread(process, 6, "pool"), two = maker.thread(process, 7, "main");
    const wire::Id library = maker.module("/liba.so", std::string("\x00\xab", 2));
    const wire::Id kernel = maker.module("[kernel.kallsyms]", "", wire::ModuleKind::kernel);
    const wire::Id main = maker.named("main", library, 0, "main.c", 3);
    const wire::Id inlined = maker.named("tiny", library, wire::location_flag::inlined, "tiny.h", 9);
    const wire::Id module = maker.named("ext4_read [ext4]", kernel, wire::location_flag::kernel_mode);
    const wire::Id caller = maker.location(library, 0x1235, wire::location_flag::return_address);
    const wire::Id leaf = maker.location(library, 0x2000);
    maker.row(1, cycles, one, maker.stack({main, inlined, module}), 2, 20);
    maker.row(1, cycles, two, maker.stack({main, caller, leaf}), 3, 30);
    maker.row(2, wall, two, maker.stack({main, inlined}), 1, 1000);
    maker.row(2, wall, two, maker.stack({main}), 4, 5000);
    Store store;
    REQUIRE(store.apply(maker.take()));
    const auto bytes = pprof(store, {}, {.started_ns = 77});
    REQUIRE(bytes);
    const ImportedText again(inflated(*bytes));
    CHECK(again.recognised == "pprof");
    CHECK(again.realtime == 77);
    CHECK(again.events() == "cycles/cycles wall/ns ");
    const std::string expected =
        "cycles;main;main;[liba.so+0x1235];[liba.so+0x2000] 3\n"
        "cycles;pool;main;tiny;ext4_read 2\n"
        "wall;main;main 4\n"
        "wall;main;main;tiny 1\n";
    CHECK(collapsed(store, {}) == expected);
    CHECK(again.lines() == expected);
    CHECK(again.lines("wall", true) == "main;main 5000\nmain;main;tiny 1000\n");
    CHECK(again.function("tiny")->kind == FrameKind::inlined);
    CHECK(again.module_of("ext4_read") == "ext4.ko");
    CHECK(again.module_of("main") == "liba.so");
    REQUIRE(again.store.threads().size() == 3);
    CHECK(again.store.threads()[1].pid == 5);
    const auto filtered = pprof(store, {.event = 2});
    REQUIRE(filtered);
    CHECK(ImportedText(inflated(*filtered)).events() == "wall/ns ");
}

TEST_CASE("pprof: the first mapping is the program, whatever the stacks begin with") {
    BatchMaker maker;
    const wire::Id cycles = maker.event("cycles", "cycles");
    const wire::Id other = maker.process(5), process = maker.process(6);
    maker.batch().processes[0].exe = maker.string("/bin/sh");
    maker.batch().processes[1].exe = maker.string("/bin/app");
    const wire::Id kernel = maker.location(maker.module("[kernel.kallsyms]", "", wire::ModuleKind::kernel), 0x10);
    const wire::Id library = maker.location(maker.module("/lib/libc.so.6"), 0x20);
    const wire::Id shell = maker.location(maker.module("/bin/sh"), 0x30);
    const wire::Id program = maker.location(maker.module("/bin/app"), 0x40);
    maker.row(1, cycles, maker.thread(other, 5), maker.stack({shell, library, kernel}), 2, 2);
    maker.row(1, cycles, maker.thread(process, 6), maker.stack({program, kernel}), 3, 3);
    Store store;
    REQUIRE(store.apply(maker.take()));
    const auto first_mapping = [&](const Filter& filter) {
        const auto bytes = pprof(store, filter);
        REQUIRE(bytes);
        const std::string raw = inflated(*bytes);
        std::vector<std::string> strings;
        std::uint64_t name = 0;
        for (protozero::pbf_reader reader(raw); reader.next();) {
            if (reader.tag() == 6) {
                strings.push_back(reader.get_string());
            } else if (reader.tag() == 3 && name == 0) {
                protozero::pbf_reader mapping = reader.get_message();
                while (mapping.next(5)) name = mapping.get_uint64();
            } else {
                reader.skip();
            }
        }
        return strings.at(name);
    };
    CHECK(first_mapping({}) == "/bin/app");
    CHECK(first_mapping({.pids = {5}}) == "/bin/sh");
}

TEST_CASE("functions as comma-separated values") {
    BatchMaker maker;
    const wire::Id cycles = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    const wire::Id main = maker.named("main(int, \"x\")", maker.module("/bin/app"), 0, "a b.c", 3);
    maker.row(1, cycles, thread, maker.stack({main, maker.named("=get")}), 2, 20);
    maker.row(1, cycles, thread, maker.stack({main}), 1, 5);
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(csv(store, {.event = 1}).value() ==
          "function,module,kind,file,line,self samples,self weight,total samples,total weight,unit\r\n"
          "'=get,,user,,,2,20,2,20,cycles\r\n"  // a spreadsheet must not take it for a formula
          "\"main(int, \"\"x\"\")\",app,user,a b.c,3,1,5,3,25,cycles\r\n");
}

TEST_CASE("names in a CSV table cannot control a terminal") {
    BatchMaker maker;
    const wire::Id cycles = maker.event("cycles", "cycles");
    const wire::Id thread = maker.thread(maker.process(5), 6);
    maker.row(1, cycles, thread,
              maker.stack({maker.named("\x1b]0;title\x07 get\r\n\xe2\x80\xae"
                                       "x\xc2\x9b")}),
              2, 20);
    Store store;
    REQUIRE(store.apply(maker.take()));
    CHECK(csv(store, {.event = 1}).value().ends_with("\r\n ]0;title  get   x ,,user,,,2,20,2,20,cycles\r\n"));
}

TEST_CASE("module names as other tools write them") {
    using wire::ModuleKind;
    CHECK(module_of_name("/usr/bin/app") == ImportedModule{ModuleKind::file, "/usr/bin/app", ""});
    CHECK(module_of_name("[kernel.kallsyms]_text").kind == ModuleKind::kernel);
    CHECK(module_of_name("/lib/modules/6.1.0/kernel/fs/ext4.ko.xz").kernel_module == "ext4");
    CHECK(module_of_name("[nf_conntrack]").kernel_module == "nf_conntrack");
    CHECK(module_of_name("[vdso]") == ImportedModule{ModuleKind::vdso, "[vdso]", ""});
    CHECK(module_of_name("/tmp/perf-123.map").kind == ModuleKind::jit);
    CHECK(module_of_name("[unknown]") == ImportedModule{});
    CHECK(unnamed_address("[libc.so.6+0x26060]") == 0x26060);
    CHECK(unnamed_address("[0xffffffffffffffff]") == ~std::uint64_t{0});
    for (const char* named :
         {"", "[", "[]", "[truncated]", "[app+0x]", "[app+0x12g]", "app+0x12", "[0x10000000000000000]"})
        CHECK_FALSE(unnamed_address(named));
    CHECK(build_id_of("00aBff") == std::string("\x00\xab\xff", 3));
    CHECK(build_id_of("0g").empty());
    CHECK(build_id_of("abc").empty());
}

}  // namespace flamewire::profile
