// Reads .gopclntab, the table that Go's linker adds to every program, also to stripped ones: functions, names, stack
// depths, files and lines. Supports Go 1.2, 1.16, 1.18, 1.20 and later, in either byte order. Keeps only the header in
// memory. Source: golang.org/s/go12symtab; src/debug/gosym/pclntab.go and src/runtime/symtab.go of Go.
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
    // Fills `out` with the table's bytes from `offset`. Returns false if they are not all available.
    using Reader = std::function<bool(std::uint64_t offset, std::span<std::byte> out)>;

    // nullopt if this is not such a table, its version is unknown, or a part lies outside its `size` bytes.
    static std::optional<GoPclntab> open(Reader read, std::uint64_t size, bool big_endian);

    // Start of the program's Go code. Since Go 1.18, function addresses are relative to it. A file that is relocated at
    // load time may have 0 here; the address is then in the relocation of the word at text_start_at().
    [[nodiscard]] std::uint64_t text_start() const { return text_start_; }
    void set_text_start(std::uint64_t address) { text_start_ = address; }
    // Offset of the text-start word in the table. nullopt before Go 1.18.
    [[nodiscard]] std::optional<std::uint64_t> text_start_at() const;

    [[nodiscard]] std::size_t size() const { return count_; }  // in functions
    // Minor number of the first Go release that wrote this table version: 2, 16, 18 or 20.
    [[nodiscard]] unsigned version() const { return static_cast<unsigned>(version_); }
    [[nodiscard]] bool is_64() const { return word_size_ == 8; }
    [[nodiscard]] bool big_endian() const { return big_endian_; }

    struct Function {
        std::uint64_t start = 0, end = 0;  // ELF virtual addresses
        // Offsets into other parts of the table. value_at() takes the last three.
        std::uint32_t name = 0, unit = 0;
        std::uint32_t stack_depth = 0, file = 0, line = 0;
        bool is_outermost = false;     // has no caller (TOPFRAME): goexit, mstart, rt0_go
        bool switches_stacks = false;  // switches to another stack (SPWRITE)
        std::uint64_t values_at = 0;   // table offset of the offsets of its PCDATA values
        std::uint32_t values = 0;      // number of PCDATA values
        std::uint64_t data_at = 0;     // table offset of its FUNCDATA
        std::uint8_t data = 0;         // number of FUNCDATA entries
    };
    [[nodiscard]] std::optional<Function> function(std::size_t position) const;
    [[nodiscard]] std::optional<Function> function_at(std::uint64_t address) const;

    // One value of a function (Function::stack_depth, file, line), and the address range in which it holds.
    struct Value {
        std::int32_t value = -1;
        std::uint64_t start = 0, end = 0;
    };
    [[nodiscard]] std::optional<Value> value_at(std::uint32_t values, const Function& function,
                                                std::uint64_t address) const;

    // Empty if the name is damaged or longer than 4 KiB.
    [[nodiscard]] std::string name_of(const Function& function) const { return name_at(function.name); }
    [[nodiscard]] std::string name_at(std::uint32_t name) const { return text_at(names_ + name); }

    // End of the function's instructions. Function::end also includes the padding before the next function.
    [[nodiscard]] std::uint64_t code_end(const Function& function) const;
    // `file` is a value of Function::file. Empty if the name is damaged or not in the table.
    [[nodiscard]] std::string file_name(const Function& function, std::int32_t file) const;

    // The innermost inlined call at an address. The next one is the innermost at `caller`.
    struct InlinedCall {
        std::uint32_t name = 0;    // name_at()
        std::uint64_t caller = 0;  // address of an instruction on the line of the call
    };
    // Only for programs of Go 1.18 and later. `function_data` fills `out` from an offset in go:func.* (GoModule).
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
    // Offsets of the table's parts.
    std::uint64_t names_ = 0, units_ = 0, files_ = 0, values_ = 0, functions_ = 0, index_ = 0;
};

}  // namespace flamewire::elf
