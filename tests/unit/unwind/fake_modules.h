// Modules with tables that a test writes by hand, an address space for them, and stacks to walk.
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/code_address.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::unwind::fake {

struct Module {
    Arch arch = Arch::x86_64;
    std::uint64_t entry = 0;
    std::vector<FrameRow> rows;
    std::map<std::uint64_t, std::string> memory;  // by ELF virtual address
    std::size_t index_bytes = 0;
    bool opens = true;
    std::uint64_t work_of_row = 0;

    int opened = 0;  // times
    int rows_asked = 0;
};

// The modules of a test. They are global because open_tables has no other access to them.
inline std::map<ModuleId, Module>& modules() {
    static std::map<ModuleId, Module> all;
    return all;
}

class Tables final : public ModuleTables {
public:
    Tables(Module& module, TableWork& work) : module_(module), work_(work) {}
    [[nodiscard]] Arch arch() const override { return module_.arch; }
    [[nodiscard]] bool big_endian() const override { return false; }
    [[nodiscard]] std::uint64_t entry() const override { return module_.entry; }
    std::optional<FrameRow> row_at(std::uint64_t address) override {
        ++module_.rows_asked;
        work_.add(module_.work_of_row);
        for (const FrameRow& row : module_.rows)
            if (row.start <= address && address < row.end) return row;
        return std::nullopt;
    }
    bool read(std::uint64_t address, std::span<std::byte> out) override {
        for (const auto& [start, bytes] : module_.memory) {
            if (address < start || address - start > bytes.size() || bytes.size() - (address - start) < out.size())
                continue;
            std::memcpy(out.data(), bytes.data() + (address - start), out.size());
            return true;
        }
        return false;
    }
    std::vector<CodeRange> some_functions(std::size_t count) override {
        std::vector<CodeRange> functions;
        for (const FrameRow& row : module_.rows)
            if (functions.size() < count) functions.push_back({row.start, row.end - row.start});
        return functions;
    }
    [[nodiscard]] std::size_t memory_bytes() const override { return module_.index_bytes; }

private:
    Module& module_;
    TableWork& work_;
};

inline Result<std::unique_ptr<ModuleTables>> open_tables(ModuleId id, elf::ByteSource, PageCache&, TableWork& work) {
    Module& module = modules()[id];
    ++module.opened;
    if (!module.opens) return fail(ErrorCode::invalid, "not an ELF file");
    return std::unique_ptr<ModuleTables>(std::make_unique<Tables>(module, work));
}

class Files final : public ModuleFiles {
public:
    int lookups = 0;
    Result<elf::ByteSource> open(ModuleId) override {
        ++lookups;
        return elf::source_of_bytes({});
    }
};

class Space final : public CodeMap {
public:
    explicit Space(std::vector<CodePiece> pieces) : pieces_(std::move(pieces)) {}
    std::optional<CodePiece> find(std::uint64_t address) override {
        ++lookups;
        for (const CodePiece& piece : pieces_)
            if (piece.start <= address && address < piece.end) return piece;
        return std::nullopt;
    }
    std::optional<Rule> rule_at(const CodePiece&, Arch, CodeAddress pc) override {
        const auto found = code_rules.find(pc.value);
        return found == code_rules.end() ? std::nullopt : std::optional(found->second);
    }
    int lookups = 0;
    std::map<std::uint64_t, Rule> code_rules;  // for code without a file, by pc

private:
    std::vector<CodePiece> pieces_;
};

// Memory of a stack, word by word.
class Stack {
public:
    Stack(std::uint64_t address, std::size_t words, std::uint8_t word_size = 8, bool big_endian = false)
        : address_(address), word_size_(word_size), big_endian_(big_endian), bytes_(words * word_size) {}
    Stack& put(std::uint64_t address, std::uint64_t value) {
        for (std::size_t i = 0; i < word_size_; ++i) {
            const std::size_t shift = 8 * (big_endian_ ? word_size_ - 1 - i : i);
            bytes_.at(address - address_ + i) = static_cast<std::byte>(value >> shift);
        }
        return *this;
    }
    [[nodiscard]] StackCopy copy(bool cut = false) const { return {.address = address_, .bytes = bytes_, .cut = cut}; }

private:
    std::uint64_t address_;
    std::size_t word_size_;
    bool big_endian_;
    std::vector<std::byte> bytes_;
};

// A row, described in the order of a debugger's listing.
struct RowIs {
    FrameRow row;
    RowIs(std::uint64_t start, std::uint64_t end, std::uint8_t cfa_register, std::int64_t cfa_offset,
          std::uint8_t return_column) {
        row.start = start;
        row.end = end;
        row.cfa_register = cfa_register;
        row.cfa_offset = cfa_offset;
        row.return_column = return_column;
    }
    RowIs& saved(std::uint8_t number, std::int64_t offset) {
        row.registers[number] = {.kind = RegisterRule::Kind::at_cfa, .reg = 0, .offset = offset, .expression = {}};
        return *this;
    }
    RowIs& kind(std::uint8_t number, RegisterRule::Kind what, std::uint8_t reg = 0, std::int64_t offset = 0) {
        row.registers[number] = {.kind = what, .reg = reg, .offset = offset, .expression = {}};
        return *this;
    }
    RowIs& expression(std::uint8_t number, RegisterRule::Kind what, const std::string& code) {
        row.registers[number] = {.kind = what, .reg = 0, .offset = 0, .expression = add(code)};
        return *this;
    }
    RowIs& cfa_expression(const std::string& code) {
        row.cfa_is_expression = true;
        row.cfa_expression = add(code);
        return *this;
    }
    RowIs& signal_frame() {
        row.signal_frame = true;
        return *this;
    }
    operator FrameRow() const { return row; }  // NOLINT(google-explicit-constructor)

private:
    ExpressionRange add(const std::string& code) {
        const ExpressionRange range{static_cast<std::uint32_t>(row.expressions.size()),
                                    static_cast<std::uint32_t>(code.size())};
        row.expressions += code;
        return range;
    }
};

// What every test needs: files, and an unwinder over the modules above, which are empty at first.
struct World {
    explicit World(UnwinderOptions options = {}) : unwinder(files, with_fakes(options)) { modules().clear(); }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    static UnwinderOptions with_fakes(UnwinderOptions options) {
        options.open_tables = open_tables;
        options.use_libunwind = false;
        return options;
    }

    StopReason walk(const Registers& registers, const StackCopy& stack, CodeMap& map, std::size_t max_depth = 1024) {
        return unwinder.walk(registers, stack, map, max_depth, frames);
    }
    [[nodiscard]] std::vector<std::uint64_t> pcs() const {
        std::vector<std::uint64_t> result;
        for (const Frame& frame : frames) result.push_back(frame.pc);
        return result;
    }

    Files files;
    Unwinder unwinder;
    std::vector<Frame> frames;
};

inline Registers registers_of(Arch arch, std::initializer_list<std::pair<std::uint8_t, std::uint64_t>> values) {
    Registers registers(arch);
    for (const auto& [number, value] : values) registers.set(number, value);
    return registers;
}

}  // namespace flamewire::unwind::fake
