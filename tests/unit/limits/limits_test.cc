// The constants define docs/limits.md. The test compares both, and FLAMEWIRE_WRITE_DOCS=1 rewrites the page. Every
// bound names the tests that reach it, and test_named_tests.py checks that these exist and run.
#include "server/limits.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "agent/options.h"
#include "base/file.h"
#include "base/growth.h"
#include "profile/formats/export_limit.h"
#include "profile/store/store.h"
#include "secure/attempts.h"
#include "server/http/access.h"
#include "server/http/request.h"
#include "server/link/key_ring.h"
#include "server/options.h"
#include "server/session/health_history.h"
#include "server/session/label.h"
#include "server/session/module_store.h"
#include "server/session/source_bundle.h"
#include "server/session/unpack.h"
#include "server/session/upload_store.h"
#include "symbol/dwarf/index_budget.h"
#include "symbol/files/compressed_file.h"
#include "symbol/files/object_file.h"
#include "symbol/files/section_growth.h"
#include "views/sql/database.h"
#include "wire/batch.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/module_chunk.h"

namespace {

using namespace flamewire;
namespace limits = server::limits;

// One line of the table. `counted`: where a user can find out that the bound was reached. `tests`: "unit_AREA: name of
// the test case", or a pytest node.
struct Row {
    std::string bound, value, beyond, counted;
    std::vector<std::string> tests;
};
struct Part {
    std::string title;
    std::vector<Row> rows;
};

std::string bytes(std::uint64_t count) {
    if (count % (std::uint64_t{1} << 30) == 0) return fmt::format("{} GiB", count >> 30);
    if (count % (1U << 20) == 0) return fmt::format("{} MiB", count >> 20);
    return count % 1024 == 0 ? fmt::format("{} KiB", count >> 10) : fmt::format("{} bytes", count);
}

std::string count(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
    return text;
}

std::string seconds(std::chrono::seconds time) { return fmt::format("{} s", time.count()); }

std::string metric(server::Limit limit) {
    return fmt::format("`{}`", server::limit_names[static_cast<std::size_t>(limit)]);
}

std::vector<Part> parts() {
    using server::Limit;
    const auto node = [](const char* file, const char* test) {
        return fmt::format("tests/integration/test_{}.py::test_{}", file, test);
    };
    const auto here = [&](const char* test) { return node("limits", test); };
    const std::string lists = "unit_wire: lists that exceed a batch's limit are refused";
    const std::string numbers = "unit_agent: numbers are whole, in range, and nothing else";
    const std::string uploads =
        "unit_server: an upload has a plain id, a size that fits and slices of a bounded length";
    const std::string closed = "the page's list of refused connections";
    const server::Options options;
    const agent::Options agent;
    return {
        {"Connections of agents",
         {{"connections",
           count(limits::agent_connections),
           "the new one is closed",
           metric(Limit::agent_connections),
           {here("connections_with_a_name")}},
          {"connections without a hello",
           count(limits::unnamed_connections),
           "one connection of the address with the most of them is closed",
           metric(Limit::unnamed_connections),
           {here("connections_without_a_name")}},
          {"connections without a hello, from one address",
           count(limits::unnamed_connections_of_host),
           "one of these connections is closed",
           metric(Limit::unnamed_connections),
           {here("connections_without_a_name")}},
          {"time until hello",
           seconds(limits::hello_time),
           "closed",
           metric(Limit::hello_time),
           {here("connections_without_a_name")}},
          {"agents with one pairing key",
           count(limits::connections_of_key),
           "the new one is refused with a message",
           metric(Limit::connections_of_key),
           {here("connections_with_a_name")}},
          {"hello", bytes(limits::hello_bytes), "closed", closed, {here("hellos_are_bounded")}},
          {"frame from an agent, and its decompressed batch",
           bytes(wire::max_payload_from_agent),
           "closed",
           closed,
           {here("frames_are_bounded"), "unit_wire: zstd: 64 MiB are decompressed, one byte more is not"}},
          {"JSON of an agent",
           fmt::format("{}, {} levels", bytes(wire::max_json_bytes), wire::max_json_depth),
           "closed",
           closed,
           {"unit_wire: depth and size are bounded"}},
          {"incomplete frames of all agents",
           bytes(limits::unfinished_bytes),
           "connections whose frame exceeds 1 MiB are closed",
           metric(Limit::unfinished_bytes),
           {here("frames_that_do_not_end")}},
          {"batches that wait for the disk, per connection",
           bytes(limits::inbox_bytes),
           "the connection is not read until they are written",
           metric(Limit::inbox_bytes),
           {here("an_agent_that_is_faster_than_the_disk")}},
          {"data that an agent does not read",
           bytes(limits::outbox_bytes),
           "closed",
           metric(Limit::outbox_bytes),
           {here("an_agent_that_does_not_read")}},
          {"commands that wait for an agent's reply",
           count(limits::commands_of_agent),
           "status 502",
           metric(Limit::commands_of_agent),
           {here("commands_without_answers")}},
          {"dialed addresses", count(limits::dials), "status 409", metric(Limit::dials), {here("dials")}},
          {"new dialed addresses per minute",
           count(limits::new_dials),
           "status 409",
           metric(Limit::new_dials),
           {here("new_dials")}},
          {"wrong pairing codes from an address at once",
           count(secure::Attempts::allowed_failures),
           fmt::format("then one handshake every {} ms; two wrong codes per second are forgiven",
                       limits::handshake_pause.count()),
           "–",
           {"unit_secure: an address may fail twenty times at once, and then twice per second",
            node("pairing", "wrong_codes_do_not_block_the_right_one")}}}},
        {"Recordings",
         {{"new recordings per minute of a key, or of an address without one",
           count(limits::new_recordings),
           "they wait, and the agent is shown with a message",
           metric(Limit::new_recordings),
           {here("recordings_without_end")}},
          {"recordings and agent names of another pairing key",
           "none",
           "refused with a message, and a log line that begins with `security:`",
           metric(Limit::foreign_recordings),
           {here("a_recording_belongs_to_its_key")}},
          {"rows of a batch; locations, stack nodes", count(wire::max_batch_rows), "closed", closed, {lists}},
          {"other entries of a batch", count(wire::max_batch_entries), "closed", closed, {lists}},
          {"events of an epoch",
           count(wire::max_events - 1),
           "closed",
           closed,
           {"unit_wire: an epoch has 4,095 events"}},
          {"hits of an event in a batch; values of each",
           fmt::format("{}, {}", count(wire::max_batch_hits), count(wire::max_event_fields)),
           "closed",
           closed,
           {"unit_wire: hits whose columns do not match are refused"}},
          {"hits of traced events in memory",
           fmt::format("{}, {}", count(profile::HitHistory::default_hits), bytes(profile::HitHistory::default_bytes)),
           "the oldest are removed; the file contains them",
           "`removed` of `/api/hits`",
           {"unit_views: the newest hits stay"}},
          {"rows in memory, `--max-samples`",
           count(options.max_samples),
           "the oldest rows are coarsened, then dropped with a loss",
           "`retention` of the session, `memory_limit`",
           {"unit_profile: old rows are coarsened, sums stay exact, the newest stay whole",
            "unit_profile: the oldest rows are dropped when nothing can be merged, and every sample is shown or "
            "counted as lost"}},
          {"names and stacks in memory, `--table-memory`",
           bytes(options.table_memory),
           "new entries are counted but not shown; the file contains them",
           metric(Limit::table_bytes) + ", `session-full`",
           {here("names_without_end")}},
          {"inlined functions within this memory",
           "the same",
           "they are not shown for some addresses",
           metric(Limit::table_bytes) + ", `inlined-left-out`",
           {"unit_profile: inlined functions never exceed the memory of the tables"}},
          {"file of a session, `--session-size`",
           bytes(options.session_size),
           "batches wait at the agent",
           metric(Limit::session_bytes) + ", `disk`",
           {here("a_file_without_end")}},
          {"health of a session in memory",
           fmt::format("{} per type", bytes(server::HealthHistory::default_bytes)),
           "the older half is thinned",
           metric(Limit::health_bytes),
           {"unit_server: health: large frames stay within the limit of bytes"}},
          {"health frame",
           bytes(server::HealthHistory::max_frame_bytes),
           "it is not shown",
           metric(Limit::health_frame),
           {"unit_server: health: invalid frames are not kept"}},
          {"sources kept with a session",
           fmt::format("{}, {} files", bytes(server::max_source_bundle_bytes), count(server::max_source_bundle_files)),
           "the rest is not kept",
           "the answer",
           {"unit_server: sources beyond 5,000 files or 64 MiB are not kept"}},
          {"name and tags of a session",
           fmt::format("{} bytes, {} tags of {} and {} bytes", server::max_session_name_bytes, server::max_tags,
                       server::max_tag_key_bytes, server::max_tag_value_bytes),
           "status 400",
           "the answer",
           {"unit_server: labels are bounded, and one line of text"}},
          {"part of a module's file",
           fmt::format("{}, {} ranges", bytes(wire::max_module_chunk), count(wire::max_module_ranges)),
           "closed",
           closed,
           {"unit_wire: an invalid chunk is refused", "unit_wire: a chunk has 1,024 ranges"}},
          {"a module's symbols from an agent, `--fetch-cap`",
           fmt::format("{} MiB", options.fetch_cap_mib),
           "the symbols are not fetched",
           "the module's line on the page",
           {node("modules", "refusals_of_the_agent_are_reported")}},
          {"MiniDebugInfo of a module, decompressed",
           bytes(symbol::ObjectFile::max_mini_bytes),
           "only exported functions have names",
           "the module's line on the page",
           {"tests/oracle/symbol/test_separate_debug_info.py::test_mini_debug_info_as_distributions_make_it"}},
          {"compressed sections of a module's file, decompressed",
           fmt::format("{}, beyond that {} times their size; {}", bytes(free_growth_bytes), max_growth_ratio,
                       bytes(symbol::max_unpacked_section_bytes)),
           "the file is not used, with a message",
           "the module's line on the page",
           {"unit_symbol: compressed sections: 64 MiB are always permitted, more only up to 64 times the file size",
            "unit_symbol: compressed sections have a cap, whatever their size"}},
          {"lines and address ranges of a module's debug info in memory",
           fmt::format("{}, beyond that {} times the size of its file; {}", bytes(free_growth_bytes), max_growth_ratio,
                       bytes(symbol::max_index_bytes)),
           "functions beyond the limit have only names",
           "the module's line on the page",
           {"unit_symbol: a line program whose rows exceed the budget has none",
            "unit_symbol: a file whose lines exceed the budget keeps its functions and reports it"}},
          {"compressed file of a kernel module, decompressed",
           fmt::format("{}, beyond that {} times its size; {}", bytes(free_growth_bytes), max_growth_ratio,
                       bytes(symbol::max_unpacked_file_bytes)),
           "its functions have no lines",
           "",
           {"unit_symbol: a compressed file grows to 64 MiB, or 64 times its size"}},
          {"files of modules on disk",
           bytes(server::ModuleStore::default_limit),
           "the least recently used are deleted",
           metric(Limit::module_bytes),
           {"unit_server: least recently used files make room for new ones, never the new one itself"}},
          {"pairing keys",
           count(server::KeyRing::max_keys),
           "a message",
           "the answer",
           {"unit_server: keys have a bound"}}}},
        {"Browsers",
         {{"connections",
           count(limits::http_connections),
           "one without a request is closed to make room",
           metric(Limit::http_connections),
           {here("connections_of_browsers"),
            "unit_server: if all connections are taken, one without a request is closed"}},
          {"connections from one other machine",
           count(limits::http_connections_of_host),
           "the new one is closed",
           metric(Limit::http_connections_of_host),
           {here("connections_of_browsers_of_one_machine")}},
          {"target and header fields of a request",
           fmt::format("{}, {}", bytes(limits::http_target_bytes), bytes(limits::http_fields_bytes)),
           "closed, like after bytes that are not HTTP",
           metric(Limit::http_message),
           {here("invalid_requests")}},
          {"logged wrong tokens per address and minute",
           count(server::Access::max_failures),
           "only counted",
           metric(Limit::wrong_tokens),
           {node("access", "wrong_tokens_are_logged")}},
          {"readers of the event stream",
           count(limits::streams),
           "status 503",
           metric(Limit::streams),
           {here("readers_of_the_stream")}},
          {"time for a TLS handshake",
           seconds(limits::tls_handshake_time),
           "closed",
           metric(Limit::tls_handshake_time),
           {here("browsers_without_a_tls_handshake")}},
          {"time for a request to arrive, or to arrive at 4 KiB per second",
           seconds(limits::http_header_time),
           "closed",
           metric(Limit::http_header_time),
           {"unit_server: a slow request is closed, an idle connection is not", here("requests_that_never_end")}},
          {"rate at which a browser must read an answer",
           fmt::format("{} bytes per second in {}", count(limits::http_write_rate), seconds(limits::http_write_time)),
           "closed",
           metric(Limit::http_write_rate),
           {"unit_server: an answer that the client does not read is closed, one that it reads slowly is not"}},
          {"time that a request waits for a worker",
           seconds(limits::http_wait),
           "status 503",
           metric(Limit::http_wait),
           {"unit_server: a request that has waited for too long is refused"}},
          {"time for an answer that only reads",
           fmt::format("{}; if files are read first, {}", seconds(limits::query_time),
                       seconds(limits::background_query_time)),
           "status 503",
           metric(Limit::query_time),
           {"unit_server: a request that runs for too long is interrupted, if it may end early"}},
          {"requests of one host that wait for queries, or for reading files",
           count(limits::http_waiting),
           "status 503",
           metric(Limit::http_waiting),
           {"unit_server: a host has a limited number of waiting requests, and more are refused",
            node("starvation", "more_queries_than_connections")}},
          {"time for a request, and for reading an answer",
           seconds(limits::http_read_time),
           "closed",
           "",
           {node("fault_resources", "a_browser_that_does_not_read")}},
          {"body of a request",
           bytes(server::max_body_bytes),
           "status 413",
           "the answer",
           {here("bodies_are_bounded")}},
          {"slice of an upload", bytes(server::max_upload_slice), "status 413", "the answer", {uploads}},
          {"waiting uploads on disk, with their announced size",
           fmt::format("{}, {} files", bytes(server::UploadStore::default_limit),
                       count(server::UploadStore::max_uploads)),
           "status 413",
           "the answer",
           {uploads, "unit_server: uploads reserve the size that they announce, and their number is limited"}},
          {"an export",
           bytes(profile::max_export_bytes),
           "status 413; in folded stacks, the rest is one line",
           "the answer",
           {"unit_profile: exports have a bound, also within one stack"}},
          {"waiting imports that a page has begun",
           count(limits::imports_waiting),
           "status 409",
           metric(Limit::imports_waiting),
           {"unit_server: a page cannot begin more imports than may wait"}},
          {"memory of an import, `--import-memory`",
           bytes(options.import_memory),
           "the import ends with a message",
           metric(Limit::import_memory) + ", the import",
           {here("an_import_that_takes_too_much_memory")}},
          {"compressed import, after decompression",
           fmt::format("{}, beyond that {} times its size; {}", bytes(free_growth_bytes), max_growth_ratio,
                       bytes(server::max_unpacked_import_bytes)),
           "refused with a message",
           "the import",
           {"unit_server: compressed imports: 64 MiB are always permitted, more only up to 64 times the file size",
            "unit_server: compressed imports have a cap, whatever their size"}},
          {"files of an archive",
           "its size; no sparse files",
           "refused with a message",
           "the import",
           {node("travel", "hostile_archives_are_refused_or_harmless")}}}},
        {"The command line",
         {{"memory of `flamewire sql` for sorting, grouping and tables of the user",
           bytes(views::sql::max_memory_bytes),
           "the statement ends with a message",
           "stderr",
           {"unit_sql: SQL stops at its limits"}},
          {"statements of `flamewire sql` together",
           bytes(views::sql::max_statement_bytes),
           "refused with a message",
           "stderr",
           {"unit_sql: SQL stops at its limits"}},
          {"text or blob in `flamewire sql`",
           bytes(views::sql::max_value_bytes),
           "the statement ends with a message",
           "stderr",
           {"unit_sql: SQL stops at its limits"}}}},
        {"The agent",
         {{"frame from a server",
           bytes(wire::max_payload_to_agent),
           "the connection ends with a log line",
           "the agent's stderr",
           {here("a_server_that_is_hostile")}},
          {"batches that wait for a server, `--spool`",
           bytes(agent.spool_bytes),
           "coarser time, then rows dropped with a loss",
           "`TIME_COARSENED`, `SPOOL_FULL`",
           {node("accounting", "server_away_longer_than_the_spool")}},
          {"a module's symbols for a server, `--module-cap`",
           bytes(agent.module_cap_bytes),
           "refused with a message",
           "the module's line on the page",
           {node("modules", "refusals_of_the_agent_are_reported")}},
          {"frequency",
           count(agent::limits::max_frequency_hz) + " Hz",
           "a message",
           "the answer, or stderr",
           {numbers}},
          {"pids of a command",
           count(agent::limits::max_pids),
           "a message",
           "the answer, or stderr",
           {"unit_agent: a command has 256 pids", "unit_agent: start takes 256 pids"}},
          {"frames of a stack, `--max-depth`",
           fmt::format("at most {}", count(agent::limits::max_depth)),
           "the stack has the root `[truncated]`",
           "the page's unwinding table",
           {numbers, "tests/captures/test_unwinding_scenes.py::test_the_frame_limit_is_reported"}},
          {"displayed refusal of a server",
           bytes(wire::max_refusal_bytes),
           "truncated",
           "the agent's stderr",
           {here("a_server_that_is_hostile")}}}},
    };
}

std::string page() {
    std::string out =
        "# Limits\n\n"
        "How much do the programs accept from each other and from files? A hostile or broken peer can use at\n"
        "most this much, and cannot reach the data of others. The server's counters are in `/metrics`, as\n"
        "`flamewire_limit_reached_total{limit=\"…\"}`. The last column says where each limit can be seen.\n\n"
        "`unit_limits` makes this page from the constants. `FLAMEWIRE_WRITE_DOCS=1 build/bin/unit_limits`\n"
        "rewrites it.\n";
    for (const Part& part : parts()) {
        out += fmt::format("\n## {}\n\n| bound | at most | beyond it | where it is seen |\n|---|---|---|---|\n",
                           part.title);
        for (const Row& row : part.rows)
            out += fmt::format("| {} | {} | {} | {} |\n", row.bound, row.value, row.beyond,
                               row.counted.empty() ? "–" : row.counted);
    }
    out +=
        "\nMemory is compared with its limit after each batch, so it can exceed the limit by the size of a\n"
        "frame.\n";
    out += "\n## Which test reaches it\n\n| bound | tests |\n|---|---|\n";
    for (const Part& part : parts())
        for (const Row& row : part.rows) out += fmt::format("| {} | `{}` |\n", row.bound, fmt::join(row.tests, "`, `"));
    return out;
}

const std::string root = PROJECT_DIR "/";

}  // namespace

TEST_CASE("docs/limits.md agrees with the constants") {
    const std::string path = root + "docs/limits.md", fresh = page();
    if (std::getenv("FLAMEWIRE_WRITE_DOCS") != nullptr)
        REQUIRE(replace_file(path, as_bytes_view(fresh), Durable::no, 0644));
    INFO("FLAMEWIRE_WRITE_DOCS=1 rewrites it");
    CHECK(read_file(path).value_or("") == fresh);
}

TEST_CASE("each bound names tests") {
    for (const Part& part : parts())
        for (const Row& row : part.rows) {
            INFO(row.bound);
            CHECK_FALSE(row.tests.empty());
        }
}

TEST_CASE("each counter of /metrics is on the page") {
    const std::string text = page();
    for (const std::string_view name : server::limit_names) {
        INFO(name);
        CHECK(text.find(fmt::format("`{}`", name)) != std::string::npos);
    }
}
