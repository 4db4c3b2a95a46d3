#include "views/sql/database.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../profile/batch_maker.h"
#include "views/sql/tables.h"

namespace {

using namespace flamewire;
namespace sql = views::sql;
using profile::BatchMaker;

constexpr std::uint64_t bucket_ns = 10'000'000;

// Two epochs of random rows: three events, two of them with one name, five threads of two processes, and two weights
// that no signed number holds.
profile::Store random_store(unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
    profile::Store store;
    for (int epoch = 0; epoch < 2; ++epoch) {
        BatchMaker maker;
        const wire::Id events[] = {maker.event("cycles", "cycles"), maker.event("wall", "ns"),
                                   maker.event("wall", "ms")};
        std::vector<wire::Id> threads;
        for (std::uint32_t tid = 10; tid < 15; ++tid)
            threads.push_back(maker.thread(maker.process(1 + tid % 2), tid, fmt::format("t{}", tid)));
        const wire::Id module = maker.module("/lib/x", "ab");
        std::vector<wire::Id> stacks;
        for (int i = 0; i < 20; ++i) {
            std::vector<wire::Id> stack;
            for (std::uint32_t depth = 1 + below(5); depth > 0; --depth)
                stack.push_back(maker.named(fmt::format("f{}", below(6)), module, 0, "x.c", 1 + below(9)));
            stacks.push_back(maker.stack(stack));
        }
        for (int i = 0; i < 300; ++i)
            maker.row(static_cast<std::uint64_t>(epoch) * 100 + below(90), events[below(3)], threads[below(5)],
                      stacks[below(20)], 1 + below(70'000), below(1'000), below(4));
        maker.row(200, events[0], threads[0], stacks[0], 1, std::uint64_t{1} << 63);
        maker.batch().bucket_ns = bucket_ns;
        maker.batch().seq = static_cast<std::uint64_t>(epoch) + 1;
        REQUIRE(store.apply(maker.take_and_end_epoch()));
    }
    return store;
}

std::string shown(const sql::Cell& cell) {
    if (const auto* number = std::get_if<std::int64_t>(&cell)) return std::to_string(*number);
    if (const auto* real = std::get_if<double>(&cell)) return fmt::format("{:.17g}r", *real);
    if (const auto* text = std::get_if<std::string_view>(&cell)) return fmt::format("'{}'", *text);
    if (const auto* blob = std::get_if<sql::Blob>(&cell)) return fmt::format("blob of {}", blob->bytes.size());
    return "NULL";
}

struct Outcome {
    std::vector<std::string> rows;  // values with | between them
    std::string error;
    ErrorCode code = ErrorCode::io;
};

class Opened {
public:
    explicit Opened(const profile::Store& store, std::uint64_t max_steps = 0)
        : database_(*sql::Database::open({.store = store,
                                          .start_ns = 5,
                                          .started_ns = 1'000,
                                          .notices = {{"code", "text", ""}},
                                          .unwinding = {},
                                          .reports = {},
                                          .loss_reason = [](wire::LossReason) -> std::string_view { return "lost"; },
                                          .info = {{"host", std::string("box")}, {"samples", std::int64_t{3}}}},
                                         interruption, max_steps)) {}

    Outcome run(std::string_view statements) {
        Outcome outcome;
        const auto done = database_.run(statements, {.begin = [](std::span<const std::string>) {},
                                                     .row =
                                                         [&](std::span<const sql::Cell> cells) {
                                                             std::string row;
                                                             for (const sql::Cell& cell : cells)
                                                                 row += (row.empty() ? "" : "|") + shown(cell);
                                                             outcome.rows.push_back(std::move(row));
                                                             return true;
                                                         },
                                                     .end = [] {}});
        if (!done) {
            outcome.error = done.error().message;
            outcome.code = done.error().code;
        }
        return outcome;
    }
    std::vector<std::string> rows(std::string_view statements) {
        Outcome outcome = run(statements);
        INFO(statements);
        REQUIRE(outcome.error.empty());
        return outcome.rows;
    }

    profile::Interruption interruption;

private:
    sql::Database database_;
};

// OR gives rows in the order of its conditions.
std::vector<std::string> sorted(std::vector<std::string> rows) {
    std::ranges::sort(rows);
    return rows;
}

TEST_CASE("Conditions that a scan uses select the same rows as conditions that only SQLite checks") {
    const profile::Store store = random_store(1);
    Opened opened(store);
    std::mt19937 random(2);
    const auto one_of = [&](const std::vector<std::string>& list) { return list[random() % list.size()]; };
    std::size_t selected = 0;
    for (int round = 0; round < 400; ++round) {
        std::string conditions;
        for (unsigned i = 0; i <= random() % 3; ++i) {
            const std::string column = one_of({"time_ns", "elapsed_ns", "wall_ns", "pid", "tid", "thread_id", "event"});
            std::string value;
            if (column == "event")
                value = one_of({"'cycles'", "'wall'", "'none'", "NULL", "5", "x'00'", "'CYCLES' COLLATE NOCASE"});
            else if (column.ends_with("_ns"))
                value = one_of({std::to_string(random() % 210 * bucket_ns),
                                fmt::format("{}.5", random() % 210 * bucket_ns - 7),
                                fmt::format("'{}'", random() % 210 * bucket_ns), "1e300", "-1", "NULL",
                                "9223372036854775807", "-9223372036854775807 - 1", "-1e999"});
            else
                value = one_of({"1", "2", "12", "14", "3.0", "'12'", "12.5", "NULL", "-1", "9223372036854775807"});
            conditions += fmt::format("{}{} {} {}", i == 0 ? "" : one_of({" AND ", " AND ", " OR "}), column,
                                      one_of({"=", "=", "<", "<=", ">", ">=", "IS", "!="}), value);
        }
        INFO(conditions);
        const auto found = sorted(opened.rows("SELECT * FROM samples WHERE " + conditions));
        // SQLite does not move conditions into a query with a limit.
        CHECK(found ==
              sorted(opened.rows("SELECT * FROM (SELECT * FROM samples LIMIT -1 OFFSET 0) WHERE " + conditions)));
        selected += found.size();
    }
    CHECK(selected > 1000);
}

TEST_CASE("The sums of samples equal the store's") {
    const profile::Store store = random_store(3);
    Opened opened(store);
    for (profile::EventId event = 1; event < store.events().size(); ++event) {
        const auto& about = store.events()[event];
        const auto total = store.total(event);
        CHECK(opened.rows(fmt::format("SELECT sum(samples) FROM samples WHERE event = '{}' AND unit = '{}'", about.name,
                                      about.unit)) == std::vector{std::to_string(total.samples)});
    }
    CHECK(opened.rows("SELECT count(*) FROM samples") == std::vector{std::to_string(store.row_count())});
    // Every function of the report, and the same sums from stacks and frames.
    const auto by_frames = opened.rows(
        "WITH w AS (SELECT stack_id, sum(samples) AS n FROM samples WHERE event = 'cycles' GROUP BY stack_id) "
        "SELECT function, sum(n) FROM (SELECT DISTINCT w.stack_id, w.n, f.function, f.module FROM w JOIN frames f "
        "USING (stack_id)) GROUP BY function, module ORDER BY 1");
    CHECK(by_frames == opened.rows("SELECT function, total_samples FROM functions WHERE event = 'cycles' ORDER BY 1"));
    CHECK(!by_frames.empty());
    std::map<std::string, std::uint64_t> self;
    for (const profile::FunctionRow& row : profile::functions(store, {.event = 1}))
        if (row.self.samples != 0) self[fmt::format("'{}'", store.string(row.function.name))] += row.self.samples;
    std::vector<std::string> expected;
    for (const auto& [name, samples] : self) expected.push_back(fmt::format("{}|{}", name, samples));
    CHECK(opened.rows("SELECT function, sum(samples) FROM samples WHERE event = 'cycles' GROUP BY 1 ORDER BY 1") ==
          expected);
}

TEST_CASE("Numbers above the largest signed one become real, and addresses keep their bits") {
    CHECK(std::get<std::int64_t>(sql::integer(9'223'372'036'854'775'807U)) == 9'223'372'036'854'775'807);
    CHECK(std::get<double>(sql::integer(std::uint64_t{1} << 63)) == 9223372036854775808.0);
    BatchMaker maker;
    const wire::Id kernel = maker.module("[kernel.kallsyms]", "", wire::ModuleKind::kernel);
    const wire::Id thread = maker.thread(maker.process(5), 6);
    maker.row(1, maker.event("cycles", "cycles"), thread, maker.stack({maker.location(kernel, 0xffffffff81000010)}), 1,
              std::uint64_t{1} << 63);
    maker.batch().bucket_ns = bucket_ns;
    profile::Store store;
    REQUIRE(store.apply(maker.take()));
    Opened opened(store);
    CHECK(opened.rows("SELECT weight, typeof(weight) FROM samples") ==
          std::vector<std::string>{"9.2233720368547758e+18r|'real'"});
    CHECK(opened.rows("SELECT printf('0x%x', address) FROM frames") ==
          std::vector<std::string>{"'0xffffffff81000010'"});
}

TEST_CASE("A stack that does not exist has no frames") {
    const profile::Store store = random_store(4);
    Opened opened(store);
    for (const char* id : {"0", "-1", "4294967296", "9223372036854775807", "1.5", "'x'", "NULL"}) {
        CHECK(opened.rows(fmt::format("SELECT * FROM frames WHERE stack_id = {}", id)).empty());
        CHECK(opened.rows(fmt::format("SELECT * FROM stacks WHERE stack_id = {}", id)).empty());
        CHECK(opened.rows(fmt::format("SELECT * FROM threads WHERE thread_id = {}", id)).empty());
    }
    CHECK(opened.rows("SELECT count(*) FROM stacks s WHERE frames != (SELECT count(*) FROM frames f WHERE f.stack_id = "
                      "s.stack_id)") == std::vector<std::string>{"0"});
    CHECK(opened.rows("SELECT count(*) FROM samples WHERE stack_id NOT IN (SELECT stack_id FROM stacks)") ==
          std::vector<std::string>{"0"});
}

TEST_CASE("Every table can be read whole, and each column has its declared type") {
    const profile::Store store = random_store(5);
    Opened opened(store);
    for (const sql::Table& table : sql::tables()) {
        INFO(table.name);
        (void)opened.rows(fmt::format("SELECT * FROM {}", table.name));
        for (const sql::Column& column : table.columns) {
            if (std::string_view(column.type).empty() || std::string_view(column.name).ends_with("weight")) continue;
            INFO(column.name);
            CHECK(opened
                      .rows(fmt::format(
                          "SELECT DISTINCT typeof({0}) FROM {1} WHERE {0} IS NOT NULL AND typeof({0}) != lower('{2}')",
                          column.name, table.name, column.type))
                      .empty());
        }
    }
    CHECK(opened.rows("SELECT name, value FROM info") == std::vector<std::string>{"'host'|'box'", "'samples'|3"});
    CHECK(opened.rows("SELECT * FROM notices") == std::vector<std::string>{"'code'|'text'|NULL"});
}

TEST_CASE("Statements create tables and views in memory, and several run in one text") {
    const profile::Store store = random_store(6);
    Opened opened(store);
    CHECK(
        opened.rows("-- a comment\n;; CREATE TABLE t AS SELECT 1 AS a; CREATE TEMP VIEW v AS SELECT a + 1 AS b FROM t;"
                    "INSERT INTO t VALUES (7); SELECT b FROM v; DROP VIEW v; DROP TABLE t;") ==
        std::vector<std::string>{"2", "8"});
    CHECK(opened.rows("CREATE TEMP VIEW v AS SELECT max(samples) FROM samples; SELECT count(*) FROM v") ==
          std::vector<std::string>{"1"});
    CHECK(opened.rows("").empty());
    CHECK(opened.rows("PRAGMA table_info(events)").size() == 6);
}

TEST_CASE("Statements cannot reach files, code or settings") {
    const profile::Store store = random_store(7);
    Opened opened(store);
    for (const char* statement :
         {"ATTACH ':memory:' AS x", "DETACH main", "VACUUM", "VACUUM INTO '/tmp/flamewire-never'",
          "PRAGMA journal_mode = WAL", "PRAGMA temp_store_directory = '/tmp'", "PRAGMA writable_schema = 1",
          "PRAGMA hard_heap_limit = 0", "SELECT load_extension('x')", "SELECT fts3_tokenizer('simple')",
          "CREATE VIRTUAL TABLE x USING fts5(y)", "CREATE VIRTUAL TABLE temp.x USING samples", "DROP TABLE samples"}) {
        INFO(statement);
        const Outcome outcome = opened.run(statement);
        CHECK(outcome.error.ends_with(" is not allowed: statements only read the profile"));
        CHECK(outcome.code == ErrorCode::invalid);
    }
    for (const char* statement :
         {"INSERT INTO samples VALUES (1)", "DELETE FROM threads", "UPDATE info SET value = 1",
          "INSERT INTO sqlite_schema VALUES (1, 2, 3, 4, 5)", "ALTER TABLE samples RENAME TO x"}) {
        INFO(statement);
        CHECK(!opened.run(statement).error.empty());
    }
    CHECK(opened.run("SELECT 1").rows.size() == 1);
}

TEST_CASE("Mistakes have their place and a remedy") {
    const profile::Store store = random_store(8);
    Opened opened(store);
    CHECK(opened.run("SELECT 1;\nSELECT é, * FROM é +").error == "near \"+\": syntax error, at line 2, column 20");
    const std::string tables = opened.run("SELECT 'sample', 1 FROM\n sample").error;
    CHECK(
        tables.starts_with("no such table: sample, at line 1, column 9; the tables are counters, coverage, events, "));
    CHECK(opened.run("SELECT nam FROM notices").error ==
          "no such column: nam, at line 1, column 8; notices has code, text, remedy");
    CHECK(opened.run("SELECT nope()").error == "no such function: nope, at line 1, column 8");
    CHECK(opened.run(std::string_view("SELECT 1;\0 SELECT 2", 19)).error == "there is a NUL byte at line 1, column 10");
    CHECK(opened.run("SELECT count(*) FROM samples LIMIT 'x'").error == "datatype mismatch");
}

TEST_CASE("A statement is interrupted") {
    const profile::Store store = random_store(9);
    Opened opened(store);
    opened.interruption.ask();
    const Outcome outcome =
        opened.run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n");
    CHECK(outcome.error == "interrupted");
    CHECK(outcome.code == ErrorCode::closed);
    // The queries of the store check it, too.
    CHECK(opened.run("SELECT * FROM functions").error == "interrupted");
}

TEST_CASE("SQL stops at its limits") {
    const profile::Store store = random_store(10);
    constexpr auto endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) ";
    Opened limited(store, 50'000);
    CHECK(limited.run(std::string(endless) + "SELECT count(*) FROM n").code == ErrorCode::too_large);
    Opened opened(store);
    const std::string longest(sql::max_statement_bytes, ' ');
    CHECK(opened.run(longest).error.empty());
    CHECK(opened.run(longest + " ").code == ErrorCode::too_large);
    CHECK(opened.run(fmt::format("SELECT length(zeroblob({}))", sql::max_value_bytes)).error.empty());
    CHECK(opened.run(fmt::format("SELECT length(zeroblob({}))", sql::max_value_bytes + 1)).code ==
          ErrorCode::too_large);
    // The real limit is checked with a smaller one, because memory of this size may not be there.
    CHECK(sqlite3_hard_heap_limit64(std::int64_t{8} << 20) == sql::max_memory_bytes);
    CHECK(opened.run(std::string(endless) + "SELECT randomblob(100000) FROM n ORDER BY 1").code ==
          ErrorCode::too_large);
    CHECK(opened.run("SELECT count(*) FROM samples").error.empty());
}

}  // namespace
