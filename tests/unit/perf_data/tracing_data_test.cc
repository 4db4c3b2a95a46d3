// Descriptions of tracepoints in the format of perf, in either byte order.
#include "profile/formats/perf_data/tracing_data.h"

#include <catch2/catch.hpp>

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "file_maker.h"

namespace flamewire::profile::perf_data {
namespace {

using Names = std::map<std::uint64_t, std::string>;

const std::set<std::uint64_t> ids{12, 314, 315, 316};

std::string made(bool big, std::string_view system = "sched") {
    const auto block = [big](std::string_view text) { return Writer(big).u64(text.size()).text(text).bytes(); };
    const auto number = [big](std::uint32_t value) { return Writer(big).u32(value).bytes(); };
    std::string bytes("\x17\x08\x44tracing0.6\0", 14);
    bytes += big ? '\1' : '\0';
    bytes += '\10';
    bytes += number(4096);
    bytes += std::string("header_page\0", 12) + block("fields") + std::string("header_event\0", 13) + block("");
    bytes += number(1) + block("name: function\nID: 1\nformat:\n");
    bytes += number(2);
    bytes += std::string(system) + std::string(1, '\0') + number(2) +
             block("name: sched_switch\nID: 314\nformat:\n\tfield: ID: 7\n") + block("name: sched_waking\nID: 315\n");
    bytes +=
        std::string("block\0", 6) + number(2) + block("ID: 12\nname: block_rq_issue\n") + block("name: none\nID: x\n");
    return bytes;
}

}  // namespace

TEST_CASE("tracepoints have the names of their system and event") {
    const bool big = GENERATE(false, true);
    CHECK(tracepoint_names(as_bytes_view(made(big)), ids) ==
          Names{{12, "block:block_rq_issue"}, {314, "sched:sched_switch"}, {315, "sched:sched_waking"}});
}

TEST_CASE("truncated tracing data yields the complete entries") {
    const std::string whole = made(false);
    std::size_t before = 0;
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        const Names names = tracepoint_names(as_bytes_view(std::string_view(whole).substr(0, size)), ids);
        CHECK(names.size() >= before);
        before = names.size();
    }
    CHECK(before == 3);
    // An impossible number of events.
    std::string wrong = whole;
    wrong.replace(wrong.find("sched") + 6, 4, "\xff\xff\xff\xff");
    CHECK(tracepoint_names(as_bytes_view(wrong), ids).contains(314));
    CHECK(tracepoint_names(as_bytes_view("no tracing data"), ids).empty());
}

TEST_CASE("only requested tracepoints with names of a reasonable length are kept") {
    CHECK(tracepoint_names(as_bytes_view(made(false)), {315}) == Names{{315, "sched:sched_waking"}});
    const std::string most(max_tracepoint_name_bytes, 's');
    CHECK(tracepoint_names(as_bytes_view(made(false, most)), {315}) == Names{{315, most + ":sched_waking"}});
    CHECK(tracepoint_names(as_bytes_view(made(false, most + "s")), ids) == Names{{12, "block:block_rq_issue"}});
}

}  // namespace flamewire::profile::perf_data
