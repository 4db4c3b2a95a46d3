// Reads the table that Go's linker puts into every program, stripped ones too (.gopclntab): functions, names, stack
// depths, files and lines. Go 1.2, 1.16, 1.18, 1.20 and later, either byte order. Keeps only the header in memory.
// Source: golang.org/s/go12symtab; src/debug/gosym/pclntab.go and src/runtime/symtab.go of Go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace flamewire::elf {

class GoPclntab {
public:
    // Fills `out` from `offset` of the table on; false when not all of it is there.
    using Reader = std::function<bool(std::uint64_t offset, std::span<std::byte> out)>;

    // Nothing: not such a table, of an unknown version, or one whose parts lie outside of its `size` bytes.
    static std::optional<GoPclntab> open(Reader read, std::uint64_t size, bool big_endian);

    // Where the program's Go code begins: what functions are relative to since 1.18. A file that is relocated when it is
    // loaded may hold 0 here, and the address in its relocations (of text_start_at).
    [[nodiscard]] std::uint64_t text_start() const { return text_start_; }
    void set_text_start(std::uint64_t address) { text_start_ = address; }
    // Offset of that word in the table; nothing before 1.18.
    [[nodiscard]] std::optional<std::uint64_t> text_start_at() const;

    [[nodiscard]] std::size_t size() const { return count_; }  // in functions
    // The minor number of the first Go that wrote this version: 2, 16, 18 or 20.
    [[nodiscard]] unsigned version() const { return static_cast<unsigned>(version_); }
    [[nodiscard]] bool is_64() const { return word_size_ == 8; }
    [[nodiscard]] bool big_endian() const { return big_endian_; }

    struct Function {
        std::uint64_t start = 0, end = 0;  // ELF virtual addresses
        // Offsets into other parts of the table; value_at() takes the last three.
        std::uint32_t name = 0, unit = 0;
        std::uint32_t stack_depth = 0, file = 0, line = 0;
        bool is_outermost = false;     // nobody called it (TOPFRAME): goexit, mstart, rt0_go
        bool switches_stacks = false;  // sets the stack pointer to something else (SPWRITE)
        std::uint64_t values_at = 0;   // offset in the table of the offsets of its further values (PCDATA)
        std::uint32_t values = 0;      // how many of those there are
        std::uint64_t data_at = 0;     // offset in the table of its FUNCDATA
        std::uint8_t data = 0;         // how many of those there are
    };
    [[nodiscard]] std::optional<Function> function(std::size_t position) const;
    [[nodiscard]] std::optional<Function> function_at(std::uint64_t address) const;

    // One of a function's values (Function::stack_depth, file, line), and the addresses for which it holds.
    struct Value {
        std::int32_t value = -1;
        std::uint64_t start = 0, end = 0;
    };
    [[nodiscard]] std::optional<Value> value_at(std::uint32_t values, const Function& function,
                                                std::uint64_t address) const;

    // Empty when it is damaged or longer than 4 KiB.
    [[nodiscard]] std::string name_of(const Function& function) const { return name_at(function.name); }
    [[nodiscard]] std::string name_at(std::uint32_t name) const { return text_at(names_ + name); }

    // Where its instructions end: Function::end is where the next one begins, behind the padding.
    [[nodiscard]] std::uint64_t code_end(const Function& function) const;
    // Of a value of Function::file; empty when it is damaged or left out of the table.
    [[nodiscard]] std::string file_name(const Function& function, std::int32_t file) const;

    // The innermost of the calls that were inlined at an address. The next one is that at `caller`.
    struct InlinedCall {
        std::uint32_t name = 0;    // name_at()
        std::uint64_t caller = 0;  // address of an instruction at the call's line
    };
    // Of programs of Go 1.18 and later. `function_data` fills `out` from an offset of go:func.* on (GoModule).
    [[nodiscard]] std::optional<InlinedCall> inlined_call(const Function& function, std::uint64_t address,
                                                          const Reader& function_data) const;

private:
    enum class Version : std::uint8_t { go1_2 = 2, go1_16 = 16, go1_18 = 18, go1_20 = 20 };

    [[nodiscard]] std::optional<std::uint64_t> number(std::uint64_t offset, std::size_t size) const;
    [[nodiscard]] std::optional<std::uint64_t> start_of(std::size_t position) const;
    [[nodiscard]] std::string text_at(std::uint64_t offset) const;
    bool read_header();

    Reader read_;
    std::uint64_t size_ = 0;
    bool big_endian_ = false;
    Version version_ = Version::go1_2;
    std::uint8_t quantum_ = 1, word_size_ = 8, field_size_ = 8;
    std::size_t count_ = 0;
    std::uint64_t text_start_ = 0;
    // Offsets of the parts.
    std::uint64_t names_ = 0, units_ = 0, files_ = 0, values_ = 0, functions_ = 0, index_ = 0;
};

}  // namespace flamewire::elf
