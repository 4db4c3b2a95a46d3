// Import and export of Firefox Profiler profiles. Expected lines are written by hand.
#include "profile/formats/firefox.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <rapidjson/document.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <fstream>

#include "batch_maker.h"
#include "imported.h"

namespace flamewire::profile {
namespace {

// main calls work, which has tiny inlined. Stack 2 contains all three.
const std::string tables = R"("stackTable":{"length":3,"prefix":[null,0,1],"frame":[0,1,2]},
    "frameTable":{"length":3,"func":[0,1,2],"line":[null,7,9],"inlineDepth":[0,0,1]},
    "funcTable":{"length":3,"name":[0,1,2],"fileName":[null,3,null],"resource":[0,0,-1]},
    "resourceTable":{"length":1,"lib":[0],"name":[4]},
    "stringArray":["main","work","tiny","work.c","libx.so"])";
const std::string meta = R"({"meta":{"version":24,"preprocessedProfileVersion":44,"product":"App","startTime":5},
    "libs":[{"name":"libx.so","path":"/lib/libx.so","codeId":"00ab"}],)";

const std::string thread_of_two =
    R"("threads":[{"name":"A","pid":"1","tid":"1","samples":{"stack":[2,0],"time":[1,2]})";
const std::string strings = R"("stringArray":["main","work","tiny","work.c","libx.so"])";

std::string meta_of(int version, const std::string& more = {}) {
    return fmt::format(R"({{"meta":{{"preprocessedProfileVersion":{},"product":"App","startTime":5{}}},)", version,
                       more);
}
const std::string libraries = R"("libs":[{"name":"libx.so","path":"/lib/libx.so","codeId":"00ab"}],)";

// The common result of all forms of the tables above.
void check_tables(const ImportedText& imported) {
    CHECK(imported.recognised == "firefox");
    CHECK(imported.problem.empty());
    CHECK(imported.lines() == "A;main 1\nA;main;work;tiny 1\n");
    REQUIRE(imported.function("work") != nullptr);
    CHECK(imported.function("work")->line == 7);
    CHECK(imported.file_of("work") == "work.c");
    CHECK(imported.file_of("main").empty());
    CHECK(imported.function("tiny")->kind == FrameKind::inlined);
    CHECK(imported.module_of("main") == "libx.so");
    CHECK(imported.module_of("work") == "libx.so");
    CHECK(imported.module_of("tiny").empty());
}

// The same tables in the newest version: without nulls, and with flags that mark the valid values.
const std::string newest_tables = R"("stackTable":{"length":3,"prefixOffset":[0,1,1],"frame":[0,1,2]},
    "frameTable":{"length":3,"func":[0,1,2],"flags":[2,18,17],"line":[0,7,9],"lib":[0,0,0],"address":[16,32,0],
        "nativeSymbol":[0,0,0]},
    "funcTable":{"length":3,"name":[0,1,2],"flags":[4,12,0],"source":[0,1,0],"resource":[0,0,0]},
    "resourceTable":{"length":1,"name":[4],"type":[1]},
    "nativeSymbols":{"length":1,"libIndex":[0]},"sources":{"length":2,"filename":[0,3]},)" +
                                  strings;

void append_word(std::string& to, std::uint64_t number, std::size_t bytes = 4) {
    for (std::size_t i = 0; i < bytes; ++i) to += static_cast<char>(number >> 8 * i & 0xff);
}

struct Slab {
    std::uint32_t type;
    std::string bytes;
};
constexpr std::uint32_t json_slab = 10;

std::string jslb(const std::vector<Slab>& slabs, std::uint32_t root, std::uint32_t version = 1) {
    std::string file("\xdc\xdfJSLB\x01\x00", 8), data;
    append_word(file, version);
    append_word(file, slabs.size());
    append_word(file, root);
    const std::size_t begin = 20 + slabs.size() * 12;
    for (const Slab& slab : slabs) {
        while ((begin + data.size()) % 8 != 0) data += '\0';
        append_word(file, slab.type);
        append_word(file, begin + data.size());
        append_word(file, slab.bytes.size());
        data += slab.bytes;
    }
    return file + data;
}

std::string numbers(std::initializer_list<std::int64_t> all, std::size_t bytes) {
    std::string packed;
    for (const std::int64_t one : all) append_word(packed, static_cast<std::uint64_t>(one), bytes);
    return packed;
}

// An x86-64 program with a build-id. Its first segment is at `base`.
std::string elf_program(std::uint64_t base, const std::string& build_id) {
    constexpr std::uint64_t headers = 64 + 2 * 56;
    std::string file(
        "\x7f"
        "ELF\x02\x01\x01",
        7);
    file.resize(16);
    append_word(file, 2, 2);
    append_word(file, 62, 2);
    append_word(file, 1);
    for (const std::uint64_t one : {base, std::uint64_t{64}, std::uint64_t{0}}) append_word(file, one, 8);
    append_word(file, 0);
    for (const std::uint64_t one : {64, 56, 2, 0, 0, 0}) append_word(file, one, 2);
    const std::uint64_t note_bytes = 16 + build_id.size(), all = headers + note_bytes;
    for (const auto& [type, offset, size] :
         {std::tuple{4U, headers, note_bytes}, std::tuple{1U, std::uint64_t{0}, all}}) {
        append_word(file, type);
        append_word(file, 5);
        for (const std::uint64_t one : {offset, base + offset, base + offset, size, size, std::uint64_t{4}})
            append_word(file, one, 8);
    }
    append_word(file, 4);
    append_word(file, build_id.size());
    append_word(file, 3);
    return file + std::string("GNU\0", 4) + build_id;
}

}  // namespace

TEST_CASE("Firefox profiles in: tables of a thread") {
    const ImportedText imported(meta + R"("threads":[{"name":"Compositor","pid":"12","tid":13,
        "samples":{"length":4,"stack":[2,1,null,2],"time":[0.5,20.25,30,40],"weight":null,"weightType":"samples"},)" +
                                tables + R"(},{"name":"Tracer","pid":12,"tid":"14",
        "samples":{"length":2,"stack":[0,1],"timeDeltas":[5,10],"weight":[1.5,2],"weightType":"tracing-ms"},)" +
                                tables + "}]}");
    CHECK(imported.recognised == "firefox");
    CHECK(imported.problem.empty());
    CHECK(imported.target == "App");
    CHECK(imported.realtime == 5'000'000);
    CHECK(imported.events() == "samples/samples time/ns ");
    CHECK(imported.lines("samples") == "Compositor 1\nCompositor;main;work 1\nCompositor;main;work;tiny 2\n");
    CHECK(imported.lines("time", true) == "Tracer;main 1500000\nTracer;main;work 2000000\n");
    CHECK(imported.function("tiny")->kind == FrameKind::inlined);
    CHECK(imported.function("work")->line == 7);
    CHECK(imported.module_of("work") == "libx.so");
    CHECK(imported.module_of("tiny").empty());
    REQUIRE(imported.store.threads().size() == 3);
    CHECK(imported.store.threads()[2].tid == 14);
    CHECK(imported.store.end_ns() == import_moment_ns + 50'000'000);
}

TEST_CASE("Firefox profiles in: tables that threads share") {
    const ImportedText imported(meta + R"("shared":{)" + tables + R"(},"threads":[
        {"name":"A","pid":1,"tid":1,"samples":{"stack":[2],"time":[1]}},
        {"name":"B","pid":1,"tid":2,"samples":{"stack":[0,0],"time":[1,2]}}]})");
    CHECK(imported.problem.empty());
    CHECK(imported.lines() == "A;main;work;tiny 1\nB;main 2\n");
}

TEST_CASE("Firefox profiles in: every version of the tables") {
    // Libraries of a thread.
    check_tables(ImportedText(meta_of(40) + thread_of_two + R"(,"libs":[{"name":"libx.so","path":"/lib/libx.so"}],)" +
                              tables + "}]}"));
    // One list of strings.
    const std::string own_tables = tables.substr(0, tables.find(R"("stringArray")"));
    check_tables(ImportedText(meta_of(56) + libraries + thread_of_two + "," + own_tables +
                              R"("length":1}],"shared":{)" + strings + "}}"));
    // File names in a shared table of sources, other tables per thread.
    std::string with_sources = own_tables;
    with_sources.replace(with_sources.find(R"("fileName":[null,3,null])"), 24, R"("source":[null,0,null])");
    check_tables(ImportedText(meta_of(58) + libraries + thread_of_two + "," + with_sources +
                              R"("length":1}],"shared":{)" + strings + R"(,"sources":{"length":1,"filename":[3]}}})"));
    // All tables shared, in either order.
    const std::string shared = "\"shared\":{" + with_sources + strings + R"(,"sources":{"length":1,"filename":[3]}})";
    check_tables(ImportedText(meta_of(60) + libraries + shared + "," + thread_of_two + "}]}"));
    check_tables(ImportedText(meta_of(60) + libraries + thread_of_two + "}]," + shared + "}"));
    // Distances to the prefix, and libraries of frames.
    std::string of_frames = shared;
    of_frames.replace(of_frames.find(R"("prefix":[null,0,1])"), 19, R"("prefixOffset":[0,1,1])");
    check_tables(ImportedText(meta_of(66) + libraries + of_frames + "," + thread_of_two + "}]}"));
    of_frames.replace(of_frames.find(R"("lib":[0],)"), 10, "");
    of_frames.replace(of_frames.find(R"("line":)"), 7, R"("lib":[0,0,-1],"line":)");
    check_tables(ImportedText(meta_of(70) + libraries + of_frames + "," + thread_of_two + "}]}"));
    // Flags.
    check_tables(ImportedText(meta_of(75) + libraries + "\"shared\":{" + newest_tables + "}," + thread_of_two + "}]}"));
}

TEST_CASE("Firefox profiles in: the module of a frame without an address") {
    // Only the name of its resource remains.
    std::string without = newest_tables;
    without.replace(without.find("[2,18,17]"), 9, "[0,16,17]");
    check_tables(ImportedText(meta_of(75) + libraries + "\"shared\":{" + without + "}," + thread_of_two + "}]}"));
    // A symbol of the library.
    std::string symbols = without;
    symbols.replace(symbols.find("[0,16,17]"), 9, "[8,24,17]");
    symbols.replace(symbols.find(R"("flags":[4,12,0])"), 16, R"("flags":[0,8,0])");
    check_tables(ImportedText(meta_of(75) + libraries + "\"shared\":{" + symbols + "}," + thread_of_two + "}]}"));
    // A resource that is not a library.
    without.replace(without.find(R"("type":[1])"), 10, R"("type":[3])");
    const ImportedText web(meta_of(75) + libraries + "\"shared\":{" + without + "}," + thread_of_two + "}]}");
    CHECK(web.module_of("main").empty());
}

TEST_CASE("Firefox profiles in: a version newer than any known one") {
    const std::string rest = libraries + "\"shared\":{" + newest_tables + "}," + thread_of_two + "}]}";
    CHECK_FALSE(ImportedText(meta_of(75) + rest).noted("import-newer-version"));
    const ImportedText newer(meta_of(76) + rest);
    check_tables(newer);
    CHECK(newer.noted("import-newer-version"));
    CHECK(newer.notices.size() == 1);
}

TEST_CASE("Firefox profiles in: JSLB files") {
    const std::string table = R"("stackTable":{"length":3,"prefixOffset":{"$s":0},"frame":{ "$s" : 1 }},
        "frameTable":{"length":3,"func":{"$s":2},"flags":{"$s":3},"line":{"$s":4},"lib":{"$s":5},"address":{"$s":6}},
        "funcTable":{"length":3,"name":{"$s":2},"flags":[4,12,0],"source":[0,1,0],"resource":{"$s":5}},
        "resourceTable":{"name":[4],"type":[1]},"sources":{"length":2,"filename":[0,3]},"unread":{"$s":7},)" +
                              strings;
    const std::string root =
        meta_of(75) + libraries + R"("more":{"$s":7,"a":{}},"shared":{"$s":9},"threads":[{"$s":10}]})";
    std::vector<Slab> slabs{
        {4, numbers({0, 1, 1}, 4)},
        {2, numbers({0, 1, 2}, 2)},
        {8, numbers({0, 1, 2}, 8)},
        {1, numbers({2, 18, 17}, 1)},
        {3, numbers({0, 7, 9}, 2)},
        {0, numbers({0, 0, -1}, 1)},
        {5, numbers({16, 32, 0}, 4)},
        {9, numbers({1, 2}, 8)},
        {json_slab, R"({"stack":{"$s":1},"time":{"$s":11},"weight":{"$s":12}})"},
        {json_slab, "{" + table + "}"},
        {json_slab, R"({"name":"A","pid":"1","tid":"1","samples":{"$s":8},"isMainThread":true})"},
        {7, numbers({std::bit_cast<std::int64_t>(1.0), std::bit_cast<std::int64_t>(-0.5), 0}, 8)},
        {6, numbers({std::bit_cast<std::int32_t>(2.0F), 0, std::bit_cast<std::int32_t>(3.0F)}, 4)},
        {json_slab, root},
    };
    const ImportedText imported(jslb(slabs, 13));
    CHECK(imported.recognised == "firefox");
    CHECK(imported.problem.empty());
    CHECK(imported.target == "App");
    CHECK(imported.lines() == "A;main 2\nA;main;work;tiny 3\n");
    REQUIRE(imported.function("tiny") != nullptr);
    CHECK(imported.function("tiny")->kind == FrameKind::inlined);
    CHECK(imported.file_of("work") == "work.c");
    CHECK(imported.module_of("work") == "libx.so");

    const std::string whole = jslb(slabs, 13);
    for (std::size_t size = 8; size < whole.size(); ++size) {
        const ImportedText cut(whole.substr(0, size));
        if (cut.problem != "the Firefox profile ends too early: fetch or export it again") FAIL("at " << size);
    }
    CHECK(ImportedText(jslb(slabs, 13, 2)).problem == "the JSLB file is of version 2, which is not known here");
    CHECK(ImportedText(jslb(slabs, 0)).problem == "the JSLB file has no text to begin with");
    CHECK(ImportedText(jslb(slabs, 99)).problem == "the JSLB file has no text to begin with");
    slabs[7].type = 11;
    CHECK(ImportedText(jslb(slabs, 13)).problem == "the JSLB file has a slab of type 11, which is not known here");
    slabs[7].type = 9;
    slabs[8].bytes = R"({"stack":{"$s":14}})";
    CHECK(ImportedText(jslb(slabs, 13)).problem == "the JSLB file has no slab 14");
    slabs[8].bytes = R"({"stack":{"$s":8}})";
    CHECK(ImportedText(jslb(slabs, 13)).problem == "the JSLB file has more than 8 texts in one another");
    slabs[8].bytes = R"({"stack":[)";
    CHECK_FALSE(ImportedText(jslb(slabs, 13)).problem.empty());
    // A slab that expands to much more than the file size.
    std::string many = "[0";
    for (int i = 0; i < 100; ++i) many += R"(,{"$s":0})";
    CHECK(ImportedText(jslb({{1, std::string(1 << 20, 'x')}, {json_slab, many + "]"}}, 1)).problem ==
          "the JSLB file repeats its slabs, which no profile does");
    CHECK_FALSE(ImportedText(jslb({{json_slab, R"({"$s":"x"})"}}, 0)).problem.empty());
}

TEST_CASE("Firefox profiles in: addresses without symbols") {
    // As samply writes them: a program, the kernel, a kernel module, JIT code, and an address in no library.
    const std::string profile =
        R"("libs":[{"name":"app","path":"/bin/app","codeId":"00112233445566778899aabbccddeeff01020304","breakpadId":""},
            {"name":"[kernel.kallsyms]","path":"[kernel.kallsyms]","codeId":"0102"},
            {"name":"[ext4]","path":"[ext4]"},{"name":"perf-1.map","path":"/tmp/perf-1.map"},
            {"name":"liby.so","path":"/lib/liby.so","codeId":null,"breakpadId":"33221100554477668899AABBCCDDEEFF0"}],)"
        R"("shared":{"stackTable":{"prefix":[null,0,1,2,3,4,5],"frame":[0,1,2,3,4,5,6]},
            "frameTable":{"func":[0,1,2,3,4,5,6],"address":[4096,8192,64,32,-1,16,256],"line":[null,null]},
            "funcTable":{"name":[0,1,2,3,4,5,6],"resource":[0,0,1,2,-1,3,4]},
            "resourceTable":{"lib":[0,1,2,3,4],"type":[1,1,1,1,1],"name":[0,0,0,0,0]},
            "stringArray":["0x1000","named","0x40","0x20","0x7ffd1234","0x10","0x100"]},
            "threads":[{"name":"A","pid":"1","tid":"1","samples":{"stack":[6],"time":[1]}}]})";
    const ImportedText imported(meta_of(62, R"(,"symbolicated":false)") + profile);
    CHECK(imported.problem.empty());
    CHECK(imported.lines() == "A;[app+0x1000];named;[kernel+0x40];[ext4.ko+0x20];0x7ffd1234;0x10;[liby.so+0x100] 1\n");
    CHECK(imported.module_of("named") == "app");
    const std::string id("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff\x01\x02\x03\x04", 20);
    CHECK(imported.build_id_of("/bin/app") == id);
    CHECK(imported.build_id_of("/lib/liby.so") == id.substr(0, 16));
    // Names that the file has are kept.
    CHECK(ImportedText(meta_of(62, R"(,"symbolicated":true)") + profile).lines() ==
          "A;0x1000;named;0x40;0x20;0x7ffd1234;0x10;0x100 1\n");

    // Addresses are relative to the first segment.
    const std::string folder = std::filesystem::temp_directory_path() / fmt::format("firefox-{}", ::getpid());
    std::filesystem::create_directory(folder);
    const auto with_files = [&](const std::string& library_build_id) {
        std::ofstream(folder + "/app", std::ios::binary) << elf_program(0x400000, id);
        std::ofstream(folder + "/liby.so", std::ios::binary) << elf_program(0x1000, library_build_id);
        return ImportedText(meta_of(62, R"(,"symbolicated":false)") + profile, {},
                            {{"/bin/app", folder + "/app"}, {"/lib/liby.so", folder + "/liby.so"}});
    };
    const std::string library_id = id.substr(0, 16) + "more";
    const ImportedText found = with_files(library_id);
    CHECK(found.lines() == "A;[app+0x401000];named;[kernel+0x40];[ext4.ko+0x20];0x7ffd1234;0x10;[liby.so+0x1100] 1\n");
    CHECK(found.build_id_of("/lib/liby.so") == library_id);
    // The debug id belongs to another file.
    const ImportedText other = with_files("another build-id, 20");
    CHECK(other.lines().ends_with(";[liby.so+0x100] 1\n"));
    CHECK(other.build_id_of("/lib/liby.so") == id.substr(0, 16));
    std::filesystem::remove_all(folder);

    // Before version 38, calling frames have the return address.
    const ImportedText old(meta_of(37, R"(,"symbolicated":false)") + profile);
    const auto& locations = old.store.tables().locations;
    CHECK(std::ranges::count_if(
              locations, [](const auto& one) { return (one.flags & wire::location_flag::return_address) != 0; }) == 3);
    CHECK(std::ranges::none_of(imported.store.tables().locations,
                               [](const auto& one) { return (one.flags & wire::location_flag::return_address) != 0; }));
}

TEST_CASE("Firefox profiles in: times") {
    const auto profile = [](const std::string& more, const std::string& times) {
        return ImportedText(R"({"meta":{"preprocessedProfileVersion":75,"startTime":1700000000000)" + more + R"(},
            "threads":[{"name":"A","pid":1,"tid":1,"samples":{"stack":[0,0],)" +
                            times + "}," + tables + "}]}");
    };
    const auto times_of = [](const ImportedText& one) {
        return std::pair((one.store.first_ns() - import_moment_ns) / 1'000'000,
                         (one.store.end_ns() - import_moment_ns) / 1'000'000);
    };
    constexpr std::int64_t start = 1'700'000'000'000'000'000;
    // The browser started an hour earlier.
    const ImportedText later = profile(R"(,"profilingStartTime":3600000)", R"("time":[3600010,3600030])");
    CHECK(later.realtime == start + 3'600'000'000'000);
    CHECK(times_of(later) == std::pair<std::uint64_t, std::uint64_t>(10, 40));
    const ImportedText deltas = profile(R"(,"profilingStartTime":3600000)", R"("timeDeltas":[3600010,20])");
    CHECK(deltas.realtime == later.realtime);
    CHECK(times_of(deltas) == times_of(later));
    // Without other times, sample times are relative to the start.
    const ImportedText plain = profile("", R"("time":[3600010,3600030])");
    CHECK(plain.realtime == start);
    CHECK(times_of(plain) == std::pair<std::uint64_t, std::uint64_t>(3600010, 3600040));
    // Samples before both times move the start of the recording.
    const ImportedText early = profile(R"(,"profilingStartTime":100)", R"("time":[-50,90])");
    CHECK(early.realtime == start - 50'000'000);
    CHECK(times_of(early) == std::pair<std::uint64_t, std::uint64_t>(0, 150));
    CHECK(profile(R"(,"profilingStartTime":1e300)", R"("time":[-1e300,90])").realtime == start);
}

TEST_CASE("Firefox profiles in: errors") {
    CHECK(ImportedText(meta + R"("threads":[{"name":"A")").problem ==
          "the Firefox profile ends too early: fetch or export it again");
    CHECK_FALSE(ImportedText(meta + R"("threads":[]})").problem.empty());
    CHECK_FALSE(ImportedText(meta + R"("threads":[3]})").problem.empty());
    const ImportedText strange(meta + R"("threads":[{"name":"A","samples":{"stack":[0,1,2,3,99,-1],"time":["x",1e300],
        "weight":[1,-5,1,1,1,1]},"stackTable":{"prefix":[7,1,0],"frame":[0,0,88]},"frameTable":{"func":[4]},
        "funcTable":{"name":["x"]},"stringArray":[1]}]})");
    CHECK(strange.problem.empty());
    CHECK(strange.noted("import-negative"));
    CHECK(ImportedText(meta + R"("threads":[{"name":"A","samples":{"stack":[0,1,2,3]},"libs":[{}],
        "stackTable":{"prefixOffset":[1,-1,4000000000,2],"frame":[0,1,2,3]},
        "frameTable":{"func":[4,0,1,null],"flags":[255],"lib":[9,-1],"address":[-1],"nativeSymbol":[3]},
        "funcTable":{"name":[9],"flags":[255,255],"source":[7],"resource":[5,0]},"resourceTable":{"name":[3],"type":[1]},
        "nativeSymbols":{"libIndex":[77]},"sources":{"filename":[0]},"stringArray":["a"]}]})")
              .problem.empty());
}

TEST_CASE("Firefox profiles: export and import give the same") {
    Store store;
    REQUIRE(store.apply(mixed_batch("/usr/lib/liba.so", 1500)));
    const std::string text = firefox(store, {}, {.name = "app", .started_ns = 7'000'000}).value();
    rapidjson::Document document;
    document.Parse(text.c_str());
    REQUIRE_FALSE(document.HasParseError());
    REQUIRE(document["threads"].Size() == 3);
    const auto& samples = document["threads"][2]["samples"];
    CHECK(std::string(samples["weightType"].GetString()) == "tracing-ms");
    CHECK(samples["weight"][0].GetDouble() == 0.0015);
    CHECK(samples["time"][0].GetDouble() == 1000);  // 100 buckets of 10 ms after the first sample
    for (const auto& thread : document["threads"].GetArray())
        for (const char* table : {"stackTable", "frameTable", "funcTable", "resourceTable", "samples", "markers"})
            for (const auto& column : thread[table].GetObject())
                if (column.value.IsArray()) CHECK(column.value.Size() == thread[table]["length"].GetUint());
    const ImportedText again(text);
    CHECK(again.recognised == "firefox");
    CHECK(again.problem.empty());
    CHECK(again.target == "app");
    CHECK(again.realtime == 7'000'000);
    CHECK(again.events() == "cycles/cycles wall/ns ");
    CHECK(again.lines() == "cycles;main;main 3\ncycles;pool;main;tiny;ext4_read 2\nwall;main;main;tiny 1\n");
    CHECK(again.lines("cycles", true) == "main;main 30\npool;main;tiny;ext4_read 20\n");
    CHECK(again.lines("wall", true) == "main;main;tiny 1500\n");
    CHECK(again.function("tiny")->kind == FrameKind::inlined);
    CHECK(again.module_of("tiny") == "liba.so");
    CHECK(again.module_of("ext4_read") == "ext4.ko");
    CHECK(again.store.end_ns() - again.store.first_ns() == store.end_ns() - store.first_ns());
}

}  // namespace flamewire::profile
