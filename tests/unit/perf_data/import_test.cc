// Whole files, written by hand: the store must have their contents.
#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "file_maker.h"

namespace flamewire::profile::perf_data {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint16_t kernel_mode = 1, user_mode = 2;
constexpr std::uint64_t chain_kernel = static_cast<std::uint64_t>(-128), chain_user = static_cast<std::uint64_t>(-512);

// The trailer of an EventOf with default values: tid, time.
Writer& trailer(Writer& body, std::uint32_t pid, std::uint64_t time) { return body.u32(pid).u32(pid).u64(time); }

std::string comm(bool big, std::uint32_t pid, std::string_view name, std::uint64_t time, bool exec = false) {
    Writer body(big);
    body.u32(pid).u32(pid).padded(name);
    return record(big, 3, exec ? 1 << 13 : 0, trailer(body, pid, time));
}

std::string mmap(bool big, std::uint32_t pid, std::uint64_t start, std::uint64_t size, std::uint64_t offset,
                 std::string_view path, std::uint64_t time) {
    Writer body(big);
    body.u32(pid).u32(pid).u64(start).u64(size).u64(offset).padded(path);
    return record(big, 1, pid == 0xffffffff ? kernel_mode : user_mode, trailer(body, pid, time));
}

std::string sample(bool big, std::uint32_t pid, std::uint64_t ip, std::uint64_t time, std::uint64_t period = 5) {
    return record(big, 9, ip >> 63 != 0 ? kernel_mode : user_mode,
                  Writer(big).u64(ip).u32(pid).u32(pid).u64(time).u64(period));
}

std::string feature_text(bool big, std::string_view text) { return Writer(big).u32(text.size()).text(text).bytes(); }

// A program, its library, the kernel and a kernel module. Then an exec starts a second program.
std::string small_file(bool big, std::uint32_t attribute_size = 136) {
    std::string records;
    records += mmap(big, 0xffffffff, 0xffffffff81000000, 0x1000000, 0xffffffff81000000, "[kernel.kallsyms]_text", 0);
    records += mmap(big, 0xffffffff, 0xffffffffc0001000, 0x1000, 0, "/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz", 0);
    records += comm(big, 7, "one", 0);
    records += mmap(big, 7, 0x400000, 0x2000, 0, "/bin/one", 0);
    records += mmap(big, 7, 0x7f0000000000, 0x10000, 0x3000, "/lib/libx.so", 0);
    records += sample(big, 7, 0x400123, 1000 * ms);
    records += sample(big, 7, 0x7f0000000010, 1001 * ms);
    records += sample(big, 7, 0xffffffff81000040, 1002 * ms);
    records += sample(big, 7, 0xffffffffc0001234, 1003 * ms);
    records += comm(big, 7, "two", 1100 * ms, true);
    records += sample(big, 7, 0x400123, 1101 * ms);
    records += mmap(big, 7, 0x500000, 0x1000, 0x1000, "/bin/two", 1102 * ms);
    records += sample(big, 7, 0x500001, 1103 * ms, 6);
    return perf_file(big, {EventOf{.size = attribute_size}}, records,
                     {{3, feature_text(big, "board")},
                      {4, feature_text(big, "6.1.0")},
                      {6, feature_text(big, "x86_64")},
                      {7, Writer(big).u32(4).u32(2).bytes()},
                      {11, Writer(big).u32(2).bytes() + feature_text(big, "perf") + feature_text(big, "record")}});
}

constexpr const char* small_lines =
    "one;[ext4.ko+0x234] 1\n"
    "one;[kernel+0x40] 1\n"
    "one;[libx.so+0x3010] 1\n"
    "one;[one+0x400123] 1\n"
    "two;[0x400123] 1\n"
    "two;[two+0x500001] 1\n";

}  // namespace

TEST_CASE("perf.data of both byte orders: addresses, maps, an exec, and facts about the machine") {
    for (const bool big : {false, true}) {
        const Imported imported(small_file(big));
        CHECK(imported.problem.empty());
        CHECK(imported.lines() == small_lines);
        CHECK(imported.about.host == "board");
        CHECK(imported.about.kernel_release == "6.1.0");
        CHECK(imported.about.arch == "x86_64");
        CHECK(imported.about.cpus == 2);
        CHECK(imported.about.target == "perf record");
        CHECK(imported.about.start_ns == 1000 * ms);
        CHECK_FALSE(imported.noted("import-damaged"));
        REQUIRE(imported.rows.size() == 6);
        CHECK(imported.rows.front().weight == 5);
        CHECK(imported.rows.front().bucket == 100);
        CHECK(imported.rows.back().weight == 6);
        REQUIRE(imported.lifecycle.size() == 1);
        CHECK(imported.lifecycle[0].kind == wire::LifecycleKind::exec);
    }
}

// Linux reserves the size of one trailer per event that receives the record, but writes only one
// (perf_event_ksymbol_output).
TEST_CASE("a KSYMBOL record whose reserved size is larger than the written bytes has its time") {
    for (const bool big : {false, true}) {
        constexpr std::uint64_t program = 0xffffffffc0100000;
        const auto ksymbol = [&](bool gone, std::uint64_t time) {
            Writer body(big);
            body.u64(program).u32(0x100).u16(1).u16(gone ? 1 : 0).padded("bpf_prog_17_x");
            trailer(body, 1, time);
            for (int word = 0; word < 4; ++word) body.u64(0x5555555555555555);
            return record(big, 17, 0, body);
        };
        std::string records =
            mmap(big, 0xffffffff, 0xffffffff81000000, 0x1000000, 0xffffffff81000000, "[kernel.kallsyms]_text", 0);
        for (const std::uint64_t time : {999, 1001, 1003}) records += sample(big, 7, program + 4, time * ms);
        records += ksymbol(false, 1000 * ms) + ksymbol(true, 1002 * ms);
        const Imported imported(perf_file(big, {EventOf{}}, records));
        CHECK(imported.problem.empty());
        REQUIRE(imported.rows.size() == 3);
        const std::string lines = imported.lines();
        CHECK(lines.find("bpf_prog_17_x 1\n") != std::string::npos);
    }
}

TEST_CASE("perf.data with attributes of every size") {
    for (std::uint32_t size = 64; size <= 168; size += 8)
        CHECK(Imported(small_file(false, size)).lines() == small_lines);
}

TEST_CASE("perf.data truncated at every byte, or with any byte changed: the intact parts, or one error message") {
    const std::string whole = small_file(false);
    std::size_t most = 0;
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const Imported imported(whole.substr(0, size));
        CHECK(imported.rows.size() >= most);
        most = imported.rows.size();
        const bool has_notice = imported.noted("import-damaged") || imported.noted("import-features");
        CHECK(has_notice == imported.problem.empty());
    }
    CHECK(most == 6);
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string changed = whole;
        changed[at] = static_cast<char>(~changed[at]);
        (void)Imported(changed);
    }
}

TEST_CASE("perf.data of a killed perf") {
    std::string file = small_file(true);
    file.replace(48, 8, 8, '\0');  // the size of the records
    const Imported imported(file);
    CHECK(imported.noted("import-unfinished"));
    CHECK(imported.rows.size() == 6);
    CHECK(imported.about.host.empty());
}

TEST_CASE("perf.data of Linux before 3.3: one magic for both byte orders") {
    for (const bool big : {false, true}) {
        const Imported now(small_file(big));
        const Imported old("PERFFILE" + small_file(big).substr(8));
        CHECK(old.problem.empty());
        CHECK(old.lines() == now.lines());
        CHECK(old.about.host == now.about.host);
        // The first versions had no table of features.
        const std::string first = "PERFFILE" + Writer(big).u64(72).bytes() + small_file(big).substr(16, 56) +
                                  std::string(32, '\xff') + small_file(big).substr(104);
        CHECK(Imported(first).problem.empty());
        CHECK(Imported(first).lines() == now.lines());
        CHECK_FALSE(Imported(first).noted("import-features"));
    }
}

TEST_CASE("perf.data as a stream: events and names are records") {
    for (const bool big : {false, true}) {
        std::string file = Writer(big).text(big ? "2ELIFREP" : "PERFILE2").u64(16).bytes();
        const EventOf event{.ids = {77}};
        file += record(big, 64, 0, Writer(big).text(attribute(event, big)).u64(77));
        file += sample(big, 3, 0x1000, 50 * ms);
        // 8 bytes of trace data are between the records.
        file += record(big, 66, 0, Writer(big).u32(5)) + "trace   ";
        file +=
            record(big, 71, 0, Writer(big).u64(16).u64(0).u64(0).u32(0).u32(0).u32(0).u32(0)) + std::string(16, 'x');
        file += sample(big, 3, 0x1000, 51 * ms);
        file += record(big, 78, 0, Writer(big).u64(2).u64(77).padded("my-event:u"));
        file += record(big, 80, 0, Writer(big).u64(3).text(feature_text(big, "far")));
        const Imported imported(file);
        CHECK(imported.problem.empty());
        CHECK(imported.lines() == "[unknown];[0x1000] 2\n");
        CHECK(imported.about.host == "far");
        CHECK(imported.noted("import-not-shown"));
        const Store::Tables& tables = imported.store.tables();
        REQUIRE(tables.events.size() == 2);
        CHECK(tables.events[1].name == "my-event");
    }
    CHECK(Imported(Writer(false).text("PERFILE2").u64(16).bytes()).problem.find("stream") != std::string::npos);

    // Two invalid notes that no perf writes, and a valid one.
    const EventOf event{.ids = {77}};
    const Imported damaged(Writer(false).text("PERFILE2").u64(16).bytes() +
                           record(false, 64, 0, Writer(false).text(attribute(event, false)).u64(77)) +
                           record(false, 80, 0, Writer(false).u64(1000).u64(0)) +
                           record(false, 80, 0, Writer(false).u32(3)) +
                           record(false, 80, 0, Writer(false).u64(3).text(feature_text(false, "far"))) +
                           sample(false, 3, 0x1000, 50 * ms));
    REQUIRE(damaged.noted("import-features"));
    for (const wire::Notice& notice : damaged.notices)
        if (notice.code == "import-features") CHECK_THAT(notice.text, Catch::StartsWith("2 of the file's notes"));
    CHECK(damaged.about.host == "far");
}

TEST_CASE("perf.data: records of several rings are handled in the order of time") {
    // The map in the second ring is older than the sample in the first.
    const std::string round = record(false, 68, 0, Writer(false));
    std::string records = comm(false, 5, "p", 0) + sample(false, 5, 0x2010, 30 * ms) +
                          mmap(false, 5, 0x2000, 0x1000, 0x2000, "/bin/p", 20 * ms) + round;
    records += sample(false, 5, 0x2020, 40 * ms) + round;
    records += mmap(false, 5, 0x2000, 0x1000, 0x7000, "/bin/q", 35 * ms) + sample(false, 5, 0x2030, 45 * ms);
    const Imported imported(perf_file(false, {EventOf{}}, records));
    CHECK(imported.lines() == "p;[p+0x2010] 1\np;[q+0x2020] 1\np;[q+0x2030] 1\n");
}

TEST_CASE("perf.data: a child has its parent's maps until it changes them") {
    const auto fork = [](std::uint32_t pid, std::uint32_t parent, std::uint64_t time) {
        Writer body(false);
        body.u32(pid).u32(parent).u32(pid).u32(parent).u64(time);
        return record(false, 7, 0, trailer(body, pid, time));
    };
    const std::string records = comm(false, 5, "p", 1 * ms) + mmap(false, 5, 0x2000, 0x2000, 0x2000, "/bin/p", 2 * ms) +
                                fork(6, 5, 3 * ms) + mmap(false, 6, 0x3000, 0x1000, 0x3000, "/bin/q", 4 * ms) +
                                sample(false, 5, 0x3001, 5 * ms) + sample(false, 6, 0x3001, 6 * ms) +
                                sample(false, 6, 0x2001, 7 * ms) + sample(false, 9, 0x2001, 8 * ms);
    const Imported imported(perf_file(false, {EventOf{}}, records));
    CHECK(imported.lines() == "[unknown];[0x2001] 1\np;[p+0x2001] 1\np;[p+0x3001] 1\np;[q+0x3001] 1\n");
}

TEST_CASE("perf.data: perf maps name JIT code") {
    const auto fork = [](std::uint32_t pid, std::uint32_t parent, std::uint64_t time) {
        Writer body(false);
        body.u32(pid).u32(parent).u32(pid).u32(parent).u64(time);
        return record(false, 7, 0, trailer(body, pid, time));
    };
    const std::string root = std::filesystem::temp_directory_path() / fmt::format("flamewire-perf-map-{}", ::getpid());
    std::filesystem::create_directories(root + "/tmp");
    const auto write = [&](const std::string& name, const std::string& text) {
        REQUIRE(replace_file(root + "/tmp/" + name, as_bytes_view(text)));
    };
    write("perf-5.map", "7f0000000000 100 Main.run(int)\n7f0000000100 10 Main.stop()\n2000 fff no.code.of.a.file\n");
    std::filesystem::create_directories(root + "/tmp/perf-7.map");  // not a file
    std::string records = comm(false, 5, "java", 1 * ms) + comm(false, 7, "node", 1 * ms) +
                          mmap(false, 5, 0x7f0000000000, 0x1000, 0, "//anon", 2 * ms) +
                          mmap(false, 5, 0x2000, 0x1000, 0x2000, "/bin/p", 2 * ms) +
                          mmap(false, 7, 0x7f0000000000, 0x1000, 0, "//anon", 2 * ms) + fork(6, 5, 3 * ms);
    for (const std::uint32_t pid : {5, 6, 7}) records += sample(false, pid, 0x7f0000000010, (4 + pid) * ms);
    records += sample(false, 5, 0x7f0000000100, 20 * ms) + sample(false, 5, 0x7f0000000110, 21 * ms) +
               sample(false, 5, 0x2010, 22 * ms);
    const Imported imported(perf_file(false, {EventOf{}}, records), root);
    CHECK(imported.lines() ==
          "java;Main.run(int) 2\njava;Main.stop() 1\njava;[jit+0x7f0000000110] 1\njava;[p+0x2010] 1\n"
          "node;[jit+0x7f0000000010] 1\n");
    const auto text_of = [&](std::string_view code) {
        const auto found = std::ranges::find(imported.notices, code, &wire::Notice::code);
        return found == imported.notices.end() ? std::string() : found->text;
    };
    CHECK(text_of("import-perf-maps") ==
          "Code that was generated at run time has the names that " + root + "/tmp/perf-5.map has for it.");
    CHECK(text_of("import-no-perf-maps") ==
          "Code that was generated at run time has no names in processes 7 (node): there is no perf-PID.map of them "
          "here.");
    const Imported without(perf_file(false, {EventOf{}}, records));
    CHECK(without.lines().find("Main") == std::string::npos);
    CHECK_FALSE(without.noted("import-perf-maps"));
    std::filesystem::remove_all(root);
}

TEST_CASE("perf.data: call chains of kernel and user") {
    const EventOf event{.sample_type = with_ip | with_tid | with_time | with_chain, .sample_id_all = false};
    Writer body(false);
    body.u64(0xffffffff81000010).u32(5).u32(5).u64(9 * ms);
    body.u64(6).u64(chain_kernel).u64(0xffffffff81000010).u64(0xffffffff81000020).u64(chain_user).u64(0x10).u64(0x20);
    Writer deep(false);
    deep.u64(0x10).u32(5).u32(5).u64(10 * ms).u64(128).u64(chain_user);
    for (unsigned i = 0; i < 127; ++i) deep.u64(0x10);
    const Imported imported(perf_file(false, {event}, record(false, 9, kernel_mode, body) + record(false, 9, 2, deep)));
    std::string expected =
        "[unknown];[0x20];[0x10];[kernel+0xffffffff81000020];[kernel+0xffffffff81000010] 1\n[unknown];[truncated]";
    for (unsigned i = 0; i < 127; ++i) expected += ";[0x10]";
    CHECK(imported.lines() == expected + " 1\n");
    CHECK(imported.noted("import-kernel-base"));
    CHECK(imported.rows.front().weight == 1000);  // the event's period, because samples have none
}

// A sample whose user call chain follows later.
std::string deferring_sample(bool big, std::uint16_t mode, std::vector<std::uint64_t> chain, std::uint64_t cookie,
                             std::uint64_t time) {
    constexpr std::uint64_t chain_deferred = static_cast<std::uint64_t>(-640);
    Writer body(big);
    body.u64(mode == kernel_mode ? chain[1] : 0x2010).u32(5).u32(5).u64(time).u64(chain.size() + 2);
    for (const std::uint64_t entry : chain) body.u64(entry);
    return record(big, 9, mode, body.u64(chain_deferred).u64(cookie));
}

std::string deferred_chain(bool big, std::uint64_t cookie, const std::vector<std::uint64_t>& chain,
                           std::uint64_t time) {
    Writer body(big);
    body.u64(cookie).u64(chain.size());
    for (const std::uint64_t entry : chain) body.u64(entry);
    return record(big, 22, user_mode, trailer(body, 5, time));
}

TEST_CASE("perf.data: user call chains that follow the sample") {
    const EventOf event{.sample_type = with_ip | with_tid | with_time | with_chain};
    constexpr std::uint64_t in_kernel = 0xffffffff81000010;
    for (const bool big : {false, true}) {
        std::string records = comm(big, 5, "p", 1 * ms) + mmap(big, 5, 0x2000, 0x1000, 0x2000, "/bin/p", 2 * ms);
        records += mmap(big, 0xffffffff, 0xffffffff81000000, 0x10000, 0xffffffff81000000, "[kernel.kallsyms]_text", 0);
        // Two samples in one system call. It maps a library that its caller is in.
        records += deferring_sample(big, kernel_mode, {chain_kernel, in_kernel}, 7, 3 * ms);
        records += mmap(big, 5, 0x8000, 0x1000, 0x8000, "/lib/q.so", 4 * ms);
        records += deferring_sample(big, kernel_mode, {chain_kernel, in_kernel, in_kernel + 0x10}, 7, 5 * ms);
        records += deferred_chain(big, 9, {0x2999}, 6 * ms);  // of lost samples
        records += deferred_chain(big, 7, {0x8001, 0x2002}, 7 * ms);
        // In user code. Here the chain has its own marker.
        records += deferring_sample(big, user_mode, {}, 11, 8 * ms);
        records += deferred_chain(big, 11, {chain_user, 0x2010, 0x2020}, 9 * ms);
        // These two never get their chain.
        records += deferring_sample(big, kernel_mode, {chain_kernel, in_kernel}, 13, 10 * ms);
        records += deferring_sample(big, user_mode, {}, 15, 11 * ms);
        const Imported imported(perf_file(big, {event}, records));
        CHECK(imported.lines() ==
              "p;[incomplete];[kernel+0x10] 1\np;[incomplete];[p+0x2010] 1\n"
              "p;[p+0x2002];[q.so+0x8001];[kernel+0x10] 1\n"
              "p;[p+0x2002];[q.so+0x8001];[kernel+0x20];[kernel+0x10] 1\n"
              "p;[p+0x2020];[p+0x2010] 1\n");
        CHECK_FALSE(imported.noted("import-not-shown"));
        REQUIRE(imported.rows.size() == 5);
        CHECK(std::ranges::all_of(imported.rows, [](const wire::Row& row) { return row.bucket <= 1; }));
    }
}

TEST_CASE("perf.data: a deferred user call chain is truncated at the kernel's limit") {
    const EventOf event{.sample_type = with_ip | with_tid | with_time | with_chain};
    for (const std::size_t depth : {300U, 510U}) {
        const std::string records =
            deferring_sample(false, user_mode, {}, 7, 3 * ms) +
            deferred_chain(false, 7, std::vector<std::uint64_t>(depth, std::uint64_t{0x2010}), 4 * ms);
        const std::string lines = Imported(perf_file(false, {event}, records)).lines();
        CHECK(lines.starts_with("[unknown];[truncated];[0x2010]") == (depth == 510));
        CHECK(lines.starts_with("[unknown];[0x2010];[0x2010]") == (depth == 300));
    }
}

TEST_CASE("perf.data: the number of samples that wait for their call chains is limited") {
    const EventOf event{.sample_type = with_ip | with_tid | with_time | with_chain};
    std::string records;
    for (std::uint64_t i = 0; i < 65'536; ++i) records += deferring_sample(false, user_mode, {}, i, 3 * ms);
    records += deferred_chain(false, 65'535, {0x3000}, 4 * ms);
    const Imported imported(perf_file(false, {event}, records));
    CHECK(imported.lines() == "[unknown];[incomplete];[0x2010] 65536\n");
}

TEST_CASE("perf.data: branch records in call-stack mode are the user stack, others cause a notice") {
    EventOf event{.sample_type = with_ip | with_tid | with_time | with_branches, .sample_id_all = false};
    Writer body(false);
    body.u64(0x500).u32(5).u32(5).u64(9 * ms).u64(2);
    body.u64(0x400).u64(0x4f0).u64(0).u64(0x300).u64(0x3f0).u64(0);
    event.branches = 1 << 11;
    const std::string file = record(false, 9, user_mode, body);
    CHECK(Imported(perf_file(false, {event}, file)).lines() == "[unknown];[0x300];[0x400];[0x500] 1\n");
    event.branches = 1;
    const Imported plain(perf_file(false, {event}, file));
    CHECK(plain.lines() == "[unknown];[0x500] 1\n");
    CHECK(plain.noted("import-not-shown"));
}

TEST_CASE("perf.data: samples of a group's leader count for all its events") {
    const std::uint64_t type = with_identifier | with_ip | with_tid | with_time | with_read;
    const std::uint64_t group_with_ids = 8 | 4;
    const std::vector<EventOf> events{
        {.type = 0, .config = 0, .sample_type = type, .read_format = group_with_ids, .ids = {11}},
        {.type = 0, .config = 1, .sample_type = type, .read_format = group_with_ids, .ids = {12}}};
    const auto leader = [](std::uint64_t time, std::uint64_t cycles, std::uint64_t instructions) {
        Writer body(false);
        body.u64(11).u64(0x10).u32(5).u32(5).u64(time).u64(2);
        return record(false, 9, user_mode, body.u64(cycles).u64(11).u64(instructions).u64(12));
    };
    const Imported imported(
        perf_file(false, events, leader(20 * ms, 100, 40) + leader(30 * ms, 250, 40) + leader(40 * ms, 300, 90)));
    std::vector<std::pair<wire::Id, std::uint64_t>> weights;
    for (const wire::Row& row : imported.rows) weights.emplace_back(row.event, row.weight);
    std::ranges::sort(weights);
    CHECK(weights == std::vector<std::pair<wire::Id, std::uint64_t>>{{1, 50}, {1, 100}, {1, 150}, {2, 40}, {2, 50}});
}

TEST_CASE("perf.data: a data mapping is not code, and replaces earlier mappings") {
    constexpr std::uint16_t data_map = 1 << 13;  // PERF_RECORD_MISC_MMAP_DATA
    for (const bool data : {true, false}) {
        Writer map(false);
        map.u32(7).u32(7).u64(0x400000).u64(0x1000).u64(0).padded("/srv/table");
        const std::uint16_t misc = data ? user_mode | data_map : user_mode;
        const std::string records = comm(false, 7, "one", 0) + mmap(false, 7, 0x400000, 0x2000, 0, "/bin/one", 1 * ms) +
                                    record(false, 1, misc, trailer(map, 7, 2 * ms)) +
                                    sample(false, 7, 0x400123, 3 * ms);
        CHECK(Imported(perf_file(false, {EventOf{}}, records)).lines() ==
              (data ? "one;[0x400123] 1\n" : "one;[table+0x400123] 1\n"));
    }
}

TEST_CASE("perf.data: losses and pauses are reported") {
    Writer lost(false);
    lost.u64(0).u64(42);
    Writer pause(false);
    pause.u64(0).u64(0).u64(0);
    const std::string records = sample(false, 5, 0x10, 10 * ms) + record(false, 2, 0, trailer(lost, 5, 11 * ms)) +
                                record(false, 5, 0, trailer(pause, 5, 12 * ms)) +
                                record(false, 13, 0, trailer(Writer(false).u64(3), 5, 13 * ms));
    const Imported imported(perf_file(false, {EventOf{}}, records));
    REQUIRE(imported.losses.size() == 3);
    CHECK(imported.losses[0].reason == wire::LossReason::ring_full);
    CHECK(imported.losses[0].count == 42);
    CHECK(imported.losses[0].first_ns == 11 * ms);
    CHECK(imported.losses[1].reason == wire::LossReason::throttled);
    CHECK(imported.losses[1].count == 1);
    CHECK(imported.losses[2].count == 3);
}

TEST_CASE("perf.data: a loss counts for the event whose id it has, and for no event if the id is unknown") {
    std::vector<EventOf> events(2);
    events[0].ids = {70};
    events[1].config = 1;
    events[1].ids = {71, 72};
    events[0].sample_type = events[1].sample_type = with_identifier | with_ip | with_tid | with_time | with_period;
    std::string records;
    std::uint64_t now = 10 * ms;
    for (const std::uint64_t id : {70U, 72U, 99U, 0U}) {
        const auto trailed = [&](Writer body) { return body.u32(5).u32(5).u64(now).u64(id); };
        records += record(false, 2, 0, trailed(Writer(false).u64(id).u64(1)));
        records += record(false, 5, 0, trailed(Writer(false).u64(now).u64(id).u64(0)));
        now += ms;
    }
    const Imported imported(perf_file(false, events, records));
    REQUIRE(imported.problem.empty());
    std::vector<wire::Id> lost, throttled;
    for (const wire::Loss& loss : imported.losses)
        (loss.reason == wire::LossReason::throttled ? throttled : lost).push_back(loss.event);
    CHECK(lost == std::vector<wire::Id>{1, 2, 0, 0});
    CHECK(throttled == std::vector<wire::Id>{1, 2, 0, 0});
}

TEST_CASE("perf.data from writers that omit trailers, modes and times") {
    Writer comm(false);
    comm.u32(5).u32(5).padded("p");
    Writer map(false);
    map.u32(5).u32(5).u64(0x2000).u64(0x1000).u64(0x2000);
    map.u8(4).u8(0).u16(0).text("\x01\x02\x03\x04").text(std::string(16, '\0')).u32(5).u32(0).padded("/bin/p");
    std::string records = record(false, 3, 0, comm) + record(false, 10, 1 << 14, map);
    for (const std::uint64_t ip : {std::uint64_t{0x2010}, std::uint64_t{0xffffffff81000000}})
        records += record(false, 9, 0, Writer(false).u64(ip).u32(5).u32(5).u64(0).u64(3));
    const Imported imported(perf_file(false, {EventOf{}}, records));
    CHECK(imported.lines() == "p;[kernel+0xffffffff81000000] 1\np;[p+0x2010] 1\n");
    CHECK(imported.rows.front().bucket == import_moment_ns / wire::default_bucket_ns);
}

}  // namespace flamewire::profile::perf_data
