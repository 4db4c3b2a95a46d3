#include "unwind/tables/go_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "elf/gopclntab_file.h"

namespace flamewire::unwind {
namespace {

constexpr std::uint16_t machine_x86_64 = 62;
constexpr std::uint8_t rbp = 6, rsp = 7, rip = 16;
constexpr std::int64_t word = 8;

// Go's linker puts its build-id into a note of its own in every program.
bool is_go_program(const elf::ByteSource& source, const elf::Header& header) {
    constexpr std::uint32_t segment_note = 4;
    constexpr std::size_t most_bytes = 4096;
    constexpr std::string_view owner("\4\0\0\0Go\0\0", 8);  // a note's type 4, and its name
    return std::ranges::any_of(header.segments, [&](const elf::Segment& segment) {
        if (segment.type != segment_note) return false;
        const auto notes =
            source(segment.offset, static_cast<std::size_t>(std::min<std::uint64_t>(most_bytes, segment.file_size)));
        return notes && notes->find(owner) != std::string::npos;
    });
}

// An instruction with the stack pointer and a number: `short_form` has one byte of it, `long_form` four.
struct StackInstruction {
    std::array<unsigned char, 4> short_form, long_form;
    std::size_t opcode_size;
};
// mov %rbp, N(%rsp); lea N(%rsp), %rbp; add $N, %rsp
constexpr StackInstruction save_frame_pointer{{0x48, 0x89, 0x6c, 0x24}, {0x48, 0x89, 0xac, 0x24}, 4};
constexpr StackInstruction set_frame_pointer{{0x48, 0x8d, 0x6c, 0x24}, {0x48, 0x8d, 0xac, 0x24}, 4};
constexpr StackInstruction free_frame{{0x48, 0x83, 0xc4}, {0x48, 0x81, 0xc4}, 3};
constexpr std::uint64_t longest_instruction = 8;

// The size of the instruction if `code` starts with it and its number is `number`. Otherwise 0.
std::size_t size_of(const StackInstruction& wanted, std::span<const std::byte> code, std::int64_t number) {
    const auto begins_with = [&](const std::array<unsigned char, 4>& form) {
        return std::ranges::equal(code.first(std::min(code.size(), wanted.opcode_size)),
                                  std::as_bytes(std::span(form)).first(wanted.opcode_size));
    };
    const std::size_t at = wanted.opcode_size;
    if (code.size() > at && begins_with(wanted.short_form) &&
        static_cast<std::int8_t>(std::to_integer<std::uint8_t>(code[at])) == number)
        return at + 1;
    std::int32_t value = 0;
    if (code.size() < at + sizeof value || !begins_with(wanted.long_form)) return 0;
    std::memcpy(&value, code.data() + at, sizeof value);
    return value == number ? at + sizeof value : 0;
}

FrameRow row_by_stack_pointer(std::int64_t depth) {
    FrameRow row;
    row.cfa_register = rsp;
    row.cfa_offset = depth + word;
    row.return_column = rip;
    row.registers[rip] = {.kind = RegisterRule::Kind::at_cfa, .offset = -word};
    return row;
}

FrameRow row_by_frame_pointer() {
    FrameRow row;
    row.cfa_register = rbp;
    row.cfa_offset = 2 * word;
    row.return_column = rip;
    row.registers[rip] = {.kind = RegisterRule::Kind::at_cfa, .offset = -word};
    row.registers[rbp] = {.kind = RegisterRule::Kind::at_cfa, .offset = -2 * word};
    return row;
}

// The frame pointer leads to the caller's value, which is stored below the return address.
FrameRow with_frame_pointer(FrameRow row) {
    row.registers[rbp] = {.kind = RegisterRule::Kind::at_cfa, .offset = -2 * word};
    row.frame_pointer_set = true;
    row.skips_caller = false;
    return row;
}

// runtime.sigtramp is marked as outermost, but the signal frame is its caller.
bool is_root(const elf::GoPclntab& table, const elf::GoPclntab::Function& function) {
    return function.is_outermost && !table.name_of(function).starts_with("runtime.sigtramp");
}

}  // namespace

std::optional<GoTable> GoTable::open(ModuleFile& file, const elf::Header& header) {
    if (header.machine != machine_x86_64 || !is_go_program(file.source(), header)) return std::nullopt;
    const auto sections = elf::read_sections(file.source(), header);
    if (!sections) return std::nullopt;
    const auto place = elf::find_go_pclntab(file.source(), header, *sections);
    if (!place) return std::nullopt;
    const auto read = [&file](std::uint64_t offset, std::span<std::byte> out) { return file.read(offset, out); };
    auto table = elf::open_go_pclntab(read, header.big_endian, *place);
    if (!table) return std::nullopt;
    return GoTable(file, *std::move(table));
}

std::optional<CodeRange> GoTable::function(std::size_t position) const {
    const auto function = table_.function(position);
    if (!function) return std::nullopt;
    return CodeRange{function->start, function->end - function->start};
}

std::optional<FrameRow> GoTable::row_at(std::uint64_t address) {
    const auto function = table_.function_at(address);
    if (!function) return std::nullopt;
    FrameRow row;
    row.start = function->start;
    row.end = function->end;
    if (is_root(table_, *function)) {
        row.return_column = rip;
        row.registers[rip] = {.kind = RegisterRule::Kind::undefined};
        return row;
    }
    const auto depth = table_.value_at(function->stack_depth, *function, address);
    // The frame pointer leads from one stack to the other. Exception: cgocallback prepares the goroutine's stack as if
    // it had been interrupted there before the call to C, so the frame pointer would lead into C.
    const bool calls_back = function->switches_stacks && table_.name_of(*function) == "runtime.cgocallback";
    if (function->switches_stacks && !calls_back) {
        row = row_by_frame_pointer();
        row.other_stack = true;
        row.skips_caller = !body_of(*function);
        row.start = address;
        row.end = address + 1;
        return row;
    }
    if (!depth || depth->value < 0) return std::nullopt;
    row = row_by_stack_pointer(depth->value);
    row.start = depth->start;
    row.end = depth->end;
    row.skips_caller = !calls_back;
    if (calls_back) {
        row.registers[rbp].kind = RegisterRule::Kind::undefined;
        row.signal_frame = true;
        return row;
    }
    // The callers of duffzero and duffcopy set up a frame for them.
    if (depth->value == 0 && table_.name_of(*function).starts_with("runtime.duff")) return with_frame_pointer(row);
    const auto body = depth->value == 0 ? std::nullopt : body_of(*function);
    if (!body) return row;

    // Before the body starts and after the frame is freed, the register holds the caller's value.
    if (address < *body) {
        row.end = std::min(row.end, *body);
        return row;
    }
    row.start = std::max(row.start, *body);
    if (size_of(free_frame, code_at(address, function->end), depth->value) != 0) {
        row.start = address;
        return row;
    }
    return with_frame_pointer(row);
}

std::span<const std::byte> GoTable::code_at(std::uint64_t address, std::uint64_t end) {
    const auto place = file_->range_from(address);
    if (!place || address >= end) return {};
    return file_->all(place->offset,
                      static_cast<std::size_t>(std::min({longest_instruction, end - address, place->size})));
}

std::optional<std::uint64_t> GoTable::body_of(const elf::GoPclntab::Function& function) {
    const auto before = table_.value_at(function.stack_depth, function, function.start);
    if (!before || before->value != 0) return std::nullopt;
    const std::uint64_t room = before->end;  // the first address with the frame allocated
    const auto after = table_.value_at(function.stack_depth, function, room);
    if (!after || after->value < word) return std::nullopt;
    if (after->value == word && room > function.start) {  // since Go 1.21: push %rbp; mov %rsp, %rbp
        constexpr std::array<unsigned char, 4> push_and_set{0x55, 0x48, 0x89, 0xe5};
        const auto code = code_at(room - 1, function.end);
        if (code.size() >= push_and_set.size() &&
            std::ranges::equal(code.first(push_and_set.size()), std::as_bytes(std::span(push_and_set))))
            return room + push_and_set.size() - 1;
    }
    const std::size_t save = size_of(save_frame_pointer, code_at(room, function.end), after->value - word);
    const std::size_t set =
        save == 0 ? 0 : size_of(set_frame_pointer, code_at(room + save, function.end), after->value - word);
    return set == 0 ? std::nullopt : std::optional(room + save + set);
}

}  // namespace flamewire::unwind
