// A whole walk over arbitrary memory: the input is registers, an address space, rows of tables and a stack. The walk
// must end within its limit of frames and read only its input. The stack copy is a separate block, so that
// AddressSanitizer finds reads past its end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "unwind/walk/frame_chain.h"
#include "unwind/walk/unwinder.h"

using namespace flamewire;
using namespace flamewire::unwind;

namespace {

// The bytes of the input, followed by zeros.
class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
    template <class Integer = std::uint8_t>
    Integer take() {
        Integer value{};
        const std::size_t count = std::min(sizeof value, size_);
        std::memcpy(&value, data_, count);
        data_ += count;
        size_ -= count;
        return value;
    }
    std::vector<std::byte> rest() {
        const auto* bytes = reinterpret_cast<const std::byte*>(data_);
        return {bytes, bytes + size_};
    }

private:
    const std::uint8_t* data_;
    std::size_t size_;
};

constexpr std::uint64_t code_at = 0x400000, code_size = 0x1000, stack_at = 0x7ff000;

// Rows from the input, each for 16 bytes of code.
std::vector<FrameRow> rows;
Arch arch = Arch::x86_64;
std::vector<std::byte> code;

FrameRow row_of(Input& input, std::uint64_t start) {
    FrameRow row;
    row.start = start;
    row.end = start + 16;
    const std::uint8_t flags = input.take();
    row.cfa_is_expression = (flags & 1) != 0;
    row.signal_frame = (flags & 6) == 6;
    row.cfa_register = input.take();
    row.cfa_offset = (flags & 8) != 0 ? input.take<std::int64_t>() : input.take<std::int8_t>();
    row.return_column = (flags & 16) != 0 ? input.take() : register_names(arch).return_column;
    for (std::uint8_t left = input.take() % 6; left > 0; --left) {
        RegisterRule& rule = row.registers[input.take() % max_registers];
        rule.kind = static_cast<RegisterRule::Kind>(input.take() % 7);
        rule.reg = input.take();
        rule.offset = input.take<std::int8_t>() * (input.take() % 9);
        rule.expression = {input.take(), input.take()};
    }
    for (std::uint8_t left = input.take() % 16; left > 0; --left) row.expressions.push_back(input.take<char>());
    row.cfa_expression = {input.take(), input.take()};
    return row;
}

class Tables final : public ModuleTables {
public:
    [[nodiscard]] Arch arch() const override { return ::arch; }
    [[nodiscard]] bool big_endian() const override { return false; }
    [[nodiscard]] std::uint64_t entry() const override { return 0xff0; }
    std::optional<FrameRow> row_at(std::uint64_t address) override {
        const std::uint64_t index = address / 16;
        return index < rows.size() ? std::optional(rows[index]) : std::nullopt;
    }
    bool read(std::uint64_t address, std::span<std::byte> out) override {
        if (address > code.size() || code.size() - address < out.size()) return false;
        std::copy_n(code.begin() + static_cast<std::ptrdiff_t>(address), out.size(), out.begin());
        return true;
    }
    std::vector<CodeRange> some_functions(std::size_t) override { return {}; }
    [[nodiscard]] std::size_t memory_bytes() const override { return 0; }
};
struct Files final : ModuleFiles {
    Result<elf::ByteSource> open(ModuleId) override { return elf::source_of_bytes({}); }
};
struct Space final : CodeMap {
    std::optional<CodePiece> find(std::uint64_t address) override {
        if (address - code_at < code_size) return CodePiece{code_at, code_at + code_size, 1, code_at};
        if (address - 0x600000 < 0x1000) return CodePiece{0x600000, 0x601000, 0, 0};
        return std::nullopt;
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const std::uint8_t choice = input.take();
    constexpr Arch archs[] = {Arch::x86_64, Arch::x86, Arch::aarch64, Arch::arm};
    arch = archs[choice & 3];
    rows.clear();
    code.clear();
    for (std::size_t left = input.take() % 16, i = 0; i < left; ++i) rows.push_back(row_of(input, i * 16));
    for (std::uint8_t left = input.take() % 64; left > 0; --left) code.push_back(input.take<std::byte>());
    Registers registers(arch);
    for (std::uint8_t left = input.take() % 40; left > 0; --left) {
        // Near valid memory, so that walks make progress.
        const std::uint64_t near = input.take<std::uint16_t>();
        const std::uint64_t bases[] = {0, code_at, stack_at, ~std::uint64_t{0}};
        registers.set(input.take() % max_registers, near + bases[left % 4]);
    }
    const std::vector<std::byte> bytes = input.rest();
    const StackCopy stack{.address = stack_at, .bytes = bytes, .cut = (choice & 4) != 0};

    Files files;
    Space space;
    UnwinderOptions options;
    options.memory_bytes = 1 << 16;
    options.use_libunwind = false;
    options.big_endian = (choice & 8) != 0;
    options.aarch64_address_bits = static_cast<std::uint8_t>(choice >> 4 << 3);
    options.open_tables = [](ModuleId, elf::ByteSource, PageCache&,
                             unwind::TableWork&) -> Result<std::unique_ptr<ModuleTables>> {
        return std::make_unique<Tables>();
    };
    Unwinder unwinder(files, options);
    std::vector<Frame> frames;
    for (const std::size_t max_depth : {std::size_t{1}, std::size_t{256}}) {
        (void)unwinder.walk(registers, stack, space, max_depth, frames);
        if (frames.empty() || frames.size() > max_depth) __builtin_trap();
    }
    // Use the frames also as a call chain: once to check it, and once reversed as the kernel's chain.
    std::vector<std::uint64_t> chain;
    for (const Frame& frame : frames) chain.push_back(frame.pc);
    if (check_chain(unwinder, arch, chain, space).right > chain.size()) __builtin_trap();
    std::reverse(chain.begin(), chain.end());
    bool at_root = false;
    const std::size_t before = frames.size();
    if (!splice(unwinder, arch, chain, stack, space, 300, frames, at_root) && frames.size() != before) __builtin_trap();
    if (frames.size() > 300) __builtin_trap();
    return 0;
}
