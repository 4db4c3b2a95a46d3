// Go function tables written by hand (go_table.h), of every version, word size and byte order, intact and damaged.
#include "elf/gopclntab.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <memory>

#include "go_program.h"

namespace flamewire::elf {
namespace {

GoPclntab::Reader reader_of(std::string bytes) {
    return [bytes = std::move(bytes)](std::uint64_t offset, std::span<std::byte> out) {
        if (offset > bytes.size() || bytes.size() - offset < out.size()) return false;
        std::memcpy(out.data(), bytes.data() + offset, out.size());
        return true;
    };
}

std::optional<GoPclntab> open(const std::string& bytes, bool big_endian) {
    return GoPclntab::open(reader_of(bytes), bytes.size(), big_endian);
}

std::vector<GoTableShape> all_shapes() {
    std::vector<GoTableShape> shapes;
    for (const int version : {2, 16, 18, 20})
        for (const bool is_64 : {true, false})
            for (const bool big_endian : {false, true})
                for (const unsigned quantum : {1u, 4u}) shapes.push_back({version, is_64, big_endian, quantum});
    return shapes;
}

TEST_CASE("functions, names and values of every version of Go's table") {
    for (const GoTableShape& shape : all_shapes()) {
        CAPTURE(shape.version, shape.is_64, shape.big_endian, shape.quantum);
        const unsigned q = shape.quantum;
        const auto table = open(small_go_table(shape).bytes(), shape.big_endian);
        REQUIRE(table);
        CHECK(table->size() == 2);
        CHECK(table->text_start() == (shape.version >= 18 ? 0x401000u : 0u));

        const auto method = table->function(0);
        REQUIRE(method);
        CHECK(method->start == 0x401020);
        CHECK(method->end == 0x401020 + 32 * q);
        CHECK(table->name_of(*method) == "main.(*T).Method");
        CHECK_FALSE(method->is_outermost);
        CHECK_FALSE(method->switches_stacks);
        CHECK(method->values == 2);
        CHECK(method->data == 0);

        const auto main = table->function(1);
        REQUIRE(main);
        CHECK(main->end == 0x401020 + 232 * q);
        CHECK(table->name_of(*main) == "main.main");
        CHECK(main->is_outermost == (shape.version >= 16));
        CHECK(main->switches_stacks == (shape.version >= 16));
        CHECK(main->data == 2);
        CHECK_FALSE(table->function(2));

        const auto depth = [&](std::uint64_t address) {
            return table->value_at(method->stack_depth, *method, address);
        };
        REQUIRE(depth(0x401020));
        CHECK(depth(0x401020)->value == 0);
        CHECK(depth(0x401020)->end == 0x401020 + 4 * q);
        CHECK(depth(0x401020 + 4 * q - 1)->value == 0);
        CHECK(depth(0x401020 + 4 * q)->value == 24);
        CHECK(depth(0x401020 + 27 * q)->start == 0x401020 + 4 * q);
        CHECK(depth(0x401020 + 28 * q)->value == 0);
        CHECK(depth(0x401020 + 32 * q - 1)->value == 0);
        CHECK_FALSE(depth(0x40101f));
        CHECK_FALSE(depth(0x401020 + 32 * q));
        CHECK(table->value_at(method->line, *method, 0x401020 + 8 * q)->value == 300);
        CHECK(table->value_at(method->line, *method, 0x401020 + 16 * q)->value == 11);
        CHECK_FALSE(table->value_at(0, *method, 0x401020));
    }
}

TEST_CASE("the function at an address") {
    for (const GoTableShape& shape : all_shapes()) {
        CAPTURE(shape.version, shape.is_64, shape.big_endian, shape.quantum);
        GoTable built{.shape = shape};
        for (unsigned i = 0; i < 9; ++i)
            built.functions.push_back({.start = 0x401000 + 0x40 * i * (i + 1), .name = "f" + std::to_string(i)});
        built.end = 0x401000 + 0x40 * 9 * 10;
        const auto table = open(built.bytes(), shape.big_endian);
        REQUIRE(table);
        CHECK_FALSE(table->function_at(0x400fff));
        for (const GoTestFunction& function : built.functions) {
            CHECK(table->name_of(*table->function_at(function.start)) == function.name);
            CHECK(table->name_of(*table->function_at(function.start + 0x3f)) == function.name);
        }
        CHECK(table->function_at(built.end - 1)->start == built.functions.back().start);
        CHECK_FALSE(table->function_at(built.end));
    }
}

TEST_CASE("a function's code ends before the padding that follows it") {
    for (const GoTableShape& shape : all_shapes()) {
        CAPTURE(shape.version, shape.is_64, shape.big_endian, shape.quantum);
        const unsigned q = shape.quantum;
        GoTable built = small_go_table(shape);
        built.functions[0].depth = {{0, 4 * q}, {24, 15 * q}};
        built.functions[1].depth.clear();  // only the linker knows its end
        const auto table = open(built.bytes(), shape.big_endian);
        REQUIRE(table);
        CHECK(table->code_end(*table->function(0)) == 0x401020 + 19 * q);
        CHECK(table->code_end(*table->function(1)) == built.end);
        // Damaged values extend at most to the end of the function.
        built.functions[0].depth = {{0, 4000 * q}};
        const auto damaged = open(built.bytes(), shape.big_endian);
        CHECK(damaged->code_end(*damaged->function(0)) == 0x401020 + 32 * q);
        // Also if their sum exceeds the address space.
        GoPclntab::Function highest = *damaged->function(0);
        highest.end = ~std::uint64_t{0};
        highest.start = highest.end - 20 * q;
        CHECK(damaged->code_end(highest) == highest.end);
        CHECK(damaged->value_at(highest.stack_depth, highest, highest.start)->end == highest.end);
        GoPclntab::Function outside = *damaged->function(0);
        outside.stack_depth = 0xffffffff;
        CHECK(damaged->code_end(outside) == outside.end);
    }
}

TEST_CASE("files of every version of Go's table") {
    for (const GoTableShape& shape : all_shapes()) {
        CAPTURE(shape.version, shape.is_64, shape.big_endian, shape.quantum);
        GoTable built = small_go_table(shape);
        if (shape.version >= 16) built.files[2].clear();
        built.functions[1].has_unit = false;
        const auto table = open(built.bytes(), shape.big_endian);
        REQUIRE(table);
        const auto method = table->function(0), main = table->function(1);
        // Since 1.16, indexes start at 0, before at 1.
        const int first = shape.version >= 16 ? 0 : 1;
        CHECK(table->file_name(*method, first) == "/src/a.go");
        CHECK(table->file_name(*method, first + 1) == "/src/b.go");
        CHECK(table->file_name(*method, first + 2) == (shape.version >= 16 ? "" : "/src/c.go"));
        CHECK(table->file_name(*method, first - 1).empty());
        CHECK(table->file_name(*method, 0x7fffffff).empty());
        CHECK(table->file_name(*main, first) == (shape.version >= 16 ? "" : "/src/a.go"));
    }
}

TEST_CASE("inlined calls of Go 1.18 and later") {
    for (const GoTableShape& shape : all_shapes()) {
        CAPTURE(shape.version, shape.is_64, shape.big_endian, shape.quantum);
        const unsigned q = shape.quantum;
        GoTable built = go_table_with_inlined_calls(shape);
        const std::string bytes = built.bytes();
        const auto table = open(bytes, shape.big_endian);
        REQUIRE(table);
        const auto reader = reader_of(shape.version >= 18 ? go_function_data(built) : std::string(100, '\0'));
        const auto function = table->function(0);
        REQUIRE(function);
        const auto call = [&](unsigned offset) {
            return table->inlined_call(*function, 0x401020 + offset * q, reader);
        };
        if (shape.version < 18) {
            CHECK_FALSE(call(4));
            continue;
        }
        CHECK_FALSE(call(3));
        REQUIRE(call(4));
        CHECK(table->name_at(call(4)->name) == "main.a");
        CHECK(call(4)->caller == 0x401022);
        CHECK(table->name_at(call(11)->name) == "main.a");
        REQUIRE(call(12));
        CHECK(table->name_at(call(12)->name) == "main.b");
        CHECK(call(12)->caller == 0x401029);
        CHECK_FALSE(call(20));
        CHECK_FALSE(call(24));  // a position after the end of the tree
        // A function without a tree.
        CHECK_FALSE(table->inlined_call(*table->function(1), table->function(1)->start, reader));
        // Other data is not a tree: its names start nowhere, or its callers are outside of the function.
        const auto with = [&](std::size_t at, char byte) {
            std::string tree = go_function_data(built);
            tree[at] = byte;
            return table->inlined_call(*function, 0x401020 + 4 * q, reader_of(tree));
        };
        const std::size_t low = shape.big_endian ? 3 : 0, name = shape.version >= 20 ? 12 : 20;
        CHECK(with(8, 1));
        CHECK_FALSE(with(name + low, static_cast<char>(built.name_offsets["main.a"] + 1)));
        CHECK_FALSE(with(name + 4 + low, static_cast<char>(32 * q)));
        CHECK(with(name + 4 + low, static_cast<char>(32 * q - 1)));
    }
}

TEST_CASE("functions move with the text start since 1.18") {
    for (const int version : {18, 20}) {
        GoTable built = small_go_table({.version = version});
        built.text_start_is_in_the_file = false;
        auto table = open(built.bytes(), false);
        REQUIRE(table);
        CHECK(table->text_start() == 0);
        CHECK(table->text_start_at() == 24u);
        table->set_text_start(0x7000);
        CHECK(table->function(0)->start == 0x7020);
        CHECK(table->name_of(*table->function_at(0x7040)) == "main.main");
    }
    CHECK_FALSE(open(small_go_table({.version = 16}).bytes(), false)->text_start_at());
    CHECK(open(small_go_table({.is_64 = false}).bytes(), false)->text_start_at() == 16u);
}

TEST_CASE("data that is not Go's table is refused") {
    const std::string good = small_go_table({}).bytes();
    CHECK_FALSE(open("", false));
    CHECK_FALSE(open(good.substr(0, 60), false));
    CHECK_FALSE(open(good, true));
    const auto with = [&](std::size_t offset, char byte) {
        std::string bytes = good;
        bytes[offset] = byte;
        return bytes;
    };
    CHECK_FALSE(open(with(0, '\x2'), false));  // no such version
    CHECK_FALSE(open(with(4, '\1'), false));
    CHECK_FALSE(open(with(6, '\3'), false));   // instructions of 3 bytes
    CHECK_FALSE(open(with(7, '\2'), false));   // words of 2 bytes
    CHECK_FALSE(open(with(10, '\1'), false));  // more functions than fit
    CHECK_FALSE(open(with(34, '\1'), false));  // names that begin after the end
}

TEST_CASE("an index that does not point to the function's entry is damage") {
    GoTable built = small_go_table({});
    std::string bytes = built.bytes();
    const std::size_t index = bytes.find(built.number(0x20, 4) + built.number(20, 4));
    REQUIRE(index != std::string::npos);
    bytes[index + 4] = 24;
    const auto table = open(bytes, false);
    REQUIRE(table);
    CHECK_FALSE(table->function(0));
    CHECK(table->function(1));
}

// Reads everything in a table that may be damaged.
void read_everything(const std::string& bytes, bool big_endian) {
    const auto table = open(bytes, big_endian);
    if (!table) return;
    for (std::size_t i = 0; i < std::min<std::size_t>(table->size(), 4); ++i) {
        const auto function = table->function(i);
        if (!function) continue;
        CHECK(function->start < function->end);
        CHECK(table->name_of(*function).size() <= 4096);
        for (const std::uint32_t values : {function->stack_depth, function->file, function->line}) {
            CHECK(table->code_end(*function) <= function->end);
            CHECK(table->file_name(*function, 1).size() <= 4096);
            (void)table->inlined_call(*function, function->start, reader_of(bytes));
            const auto value = table->value_at(values, *function, function->start + 5);
            if (value) CHECK((value->start <= function->start + 5 && function->start + 5 < value->end));
        }
    }
    (void)table->function_at(0x401030);
}

TEST_CASE("a truncated table, and each byte damaged") {
    for (const GoTableShape& shape : all_shapes()) {
        const std::string good = small_go_table(shape).bytes();
        for (std::size_t i = 0; i < good.size(); ++i) {
            read_everything(good.substr(0, i), shape.big_endian);
            for (const char byte : {'\0', '\x7f', '\xff'}) {
                std::string bytes = good;
                bytes[i] = byte;
                read_everything(bytes, shape.big_endian);
            }
        }
    }
}

TEST_CASE("values that do not end, and a name that does not") {
    GoTable built = small_go_table({});
    std::string bytes = built.bytes();
    const auto whole = open(bytes, false);
    const auto function = whole->function(0);
    // The last part of the table is the last entry: values there continue to the end of the table.
    const std::string endless = bytes.substr(0, bytes.size() - 8) + std::string(8, '\x81');
    const auto table = open(endless, false);
    REQUIRE(table);
    for (std::uint32_t values = 1; values < endless.size(); ++values)
        (void)table->value_at(values, *function, function->end - 1);
    GoPclntab::Function unnamed = *function;
    unnamed.name = static_cast<std::uint32_t>(endless.size());
    CHECK(table->name_of(unnamed).empty());

    built.functions[0].name = std::string(5000, 'x');
    const auto with_long_name = open(built.bytes(), false);
    CHECK(with_long_name->name_of(*with_long_name->function(0)).empty());
}

}  // namespace
}  // namespace flamewire::elf
