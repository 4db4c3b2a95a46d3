// Format files of Linux 6.18 on x86-64, and data laid out by hand as they say.
#include "perf/tracepoint_format.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <random>
#include <string>

using namespace flamewire;
using namespace flamewire::perf;

namespace {

constexpr std::string_view common =
    "name: x\nID: 7\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

std::string format_of(std::string_view fields) { return std::string(common) + std::string(fields); }

std::string raw_data(std::size_t size) { return std::string(size, '\0'); }

template <class T>
void put(std::string& data, std::size_t offset, T value) {
    std::memcpy(data.data() + offset, &value, sizeof value);
}

std::vector<std::string> names_of(const ValueFields& fields) {
    std::vector<std::string> names;
    for (const ValueField& field : fields) names.push_back(field.name);
    return names;
}

}  // namespace

TEST_CASE("fields of a format file") {
    using Fields = std::vector<TracepointField>;
    CHECK(parse_tracepoint_format(format_of("\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
                                            "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
                                            "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\n"
                                            "print fmt: \"prev_comm=%s\", REC->prev_comm\n")) ==
          Fields{{"prev_comm", "char[16]", 8, 16, false},
                 {"prev_pid", "pid_t", 24, 4, true},
                 {"prev_state", "long", 32, 8, true}});
    CHECK(parse_tracepoint_format(format_of("\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
                                            "\tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;\n"
                                            "\tfield:__data_loc char[] path;\toffset:8;\tsize:4;\tsigned:0;\n"
                                            "\tfield:struct sk_buff *skb;\toffset:8;\tsize:8;\tsigned:0;\n")) ==
          Fields{{"__syscall_nr", "int", 8, 4, true},
                 {"filename", "const char *", 24, 8, false},
                 {"path", "__data_loc char[]", 8, 4, false},
                 {"skb", "struct sk_buff *", 8, 8, false}});
    for (const char* bad :
         {"", "field:", "field:;", "field:]", "field: ;", "field:a]", "field:common_x", "field:a;offset"})
        CHECK(parse_tracepoint_format(bad).size() <= 1);
}

TEST_CASE("the print format of a format file") {
    CHECK(print_format_of(format_of("\nprint fmt: \"fd=%d\", REC->fd\n")) == "\"fd=%d\", REC->fd");
    CHECK(print_format_of(common).empty());
    CHECK(print_format_of("print fmt: " + std::string(16'385, 'x')).empty());
}

TEST_CASE("numbers in the data of a tracepoint") {
    const ValueFields fields =
        value_fields(parse_tracepoint_format(format_of("\tfield:u8 small;\toffset:8;\tsize:1;\tsigned:0;\n"
                                                       "\tfield:short two;\toffset:10;\tsize:2;\tsigned:1;\n"
                                                       "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
                                                       "\tfield:unsigned int number;\toffset:16;\tsize:4;\tsigned:0;\n"
                                                       "\tfield:const void * ptr;\toffset:24;\tsize:8;\tsigned:0;\n")));
    REQUIRE(names_of(fields) == std::vector<std::string>{"small", "two", "pid", "number", "ptr"});
    std::string data = raw_data(32);
    put<std::uint8_t>(data, 8, 0xfe);
    put<std::int16_t>(data, 10, -2);
    put<std::int32_t>(data, 12, -1);
    put<std::uint32_t>(data, 16, 0xffff'ffff);
    put<std::uint64_t>(data, 24, 0xffff'8880'0000'1234);
    const Bytes bytes = as_bytes_view(data);
    CHECK(value_of(fields[0], bytes, 0) == 0xfe);
    CHECK(static_cast<std::int64_t>(value_of(fields[1], bytes, 0)) == -2);
    CHECK(static_cast<std::int64_t>(value_of(fields[2], bytes, 0)) == -1);
    CHECK(value_of(fields[3], bytes, 0) == 0xffff'ffff);
    CHECK(value_of(fields[4], bytes, 0) == 0xffff'8880'0000'1234);
    CHECK(fields[4].kind == ValueKind::address);
    CHECK(value_of(fields[4], bytes.first(31), 0) == 0);
    // The same bytes, written by a machine of the other byte order.
    constexpr std::endian other = std::endian::native == std::endian::big ? std::endian::little : std::endian::big;
    CHECK(static_cast<std::int64_t>(value_of(fields[1], bytes, 0, other)) == -257);
}

TEST_CASE("arguments of system calls have the size of a register") {
    const ValueFields fields = value_fields(
        parse_tracepoint_format(format_of("\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
                                          "\tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n"
                                          "\tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;\n")));
    REQUIRE(names_of(fields) == std::vector<std::string>{"dfd", "filename"});
    std::string data = raw_data(32);
    put<std::uint64_t>(data, 16, 0x0000'0000'ffff'ff9c);  // AT_FDCWD
    CHECK(static_cast<std::int64_t>(value_of(fields[0], as_bytes_view(data), 0)) == -100);
}

TEST_CASE("texts, bytes and arrays") {
    const ValueFields fields = value_fields(
        parse_tracepoint_format(format_of("\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
                                          "\tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n"
                                          "\tfield:__rel_loc char[] other;\toffset:28;\tsize:4;\tsigned:0;\n"
                                          "\tfield:u8 mac[6];\toffset:32;\tsize:6;\tsigned:0;\n"
                                          "\tfield:unsigned long args[3];\toffset:40;\tsize:24;\tsigned:0;\n"
                                          "\tfield:u8 many[9];\toffset:64;\tsize:9;\tsigned:0;\n")));
    REQUIRE(names_of(fields) == std::vector<std::string>{"comm", "name", "other", "mac[0]", "mac[1]", "mac[2]",
                                                         "mac[3]", "mac[4]", "mac[5]", "args[0]", "args[1]", "args[2]",
                                                         "many"});
    std::string data = raw_data(96);
    std::memcpy(data.data() + 8, "bash\0rest", 9);
    put<std::uint32_t>(data, 24, 6U << 16 | 80);  // at 80, from the start
    put<std::uint32_t>(data, 28, 4U << 16 | 56);  // at 32 + 56 = 88
    std::memcpy(data.data() + 80, "eth0\0x", 6);
    std::memcpy(data.data() + 88, "lo\0", 3);
    put<std::uint64_t>(data, 48, 42);
    const Bytes bytes = as_bytes_view(data);
    CHECK(as_text(bytes_of(fields[0], bytes)) == "bash");
    CHECK(as_text(bytes_of(fields[1], bytes)) == "eth0");
    CHECK(as_text(bytes_of(fields[2], bytes)) == "lo");
    CHECK(value_of(fields[10], bytes, 0) == 42);
    CHECK(fields[12].kind == ValueKind::bytes);
    CHECK(bytes_of(fields[12], bytes).size() == 9);
    // A length or place outside of the data.
    put<std::uint32_t>(data, 24, 0xffff'0050);
    CHECK(bytes_of(fields[1], bytes).size() <= 16);
    put<std::uint32_t>(data, 24, 4U << 16 | 0xffff);
    CHECK(bytes_of(fields[1], bytes).empty());
    CHECK(bytes_of(fields[1], bytes.first(25)).empty());
}

TEST_CASE("the address of a sample is a value") {
    const ValueField address{"address", ValueKind::address, ValueField::Place::sample_address};
    CHECK(value_of(address, {}, 0x7fff'1234) == 0x7fff'1234);
}

TEST_CASE("numbers that the kernel prints as pointers are addresses") {
    const auto fields =
        parse_tracepoint_format(format_of("\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n"
                                          "\tfield:unsigned long call;\toffset:16;\tsize:8;\tsigned:0;\n"));
    const ValueFields values = value_fields(fields, "\"call_site=%pS %lu\", (void *)REC->call_site, REC->call");
    REQUIRE(values.size() == 2);
    CHECK(values[0].kind == ValueKind::address);
    CHECK(values[1].kind == ValueKind::unsigned_number);
}

TEST_CASE("a tracepoint with very many fields") {
    std::string lines;
    for (int i = 0; i < 200; ++i) lines += "\tfield:int f" + std::to_string(i) + ";\toffset:8;\tsize:4;\tsigned:1;\n";
    CHECK(value_fields(parse_tracepoint_format(lines)).size() == max_value_fields);
}

TEST_CASE("any bytes") {
    std::mt19937 random(7);
    for (int round = 0; round < 20'000; ++round) {
        std::string data(random() % 64, '\0');
        for (char& c : data) c = static_cast<char>(random());
        ValueField field{"x", static_cast<ValueKind>(random() % 5), static_cast<ValueField::Place>(random() % 3),
                         static_cast<std::uint16_t>(random() % 80), static_cast<std::uint16_t>(random() % 80)};
        CHECK(bytes_of(field, as_bytes_view(data)).size() <= data.size());
        (void)value_of(field, as_bytes_view(data), 0);
    }
}
