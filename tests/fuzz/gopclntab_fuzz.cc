// Arbitrary bytes as a Go program, or as its function table: functions must be inside the input.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "elf/gopclntab_file.h"

namespace {

using namespace flamewire;

void require(bool holds) {
    if (!holds) std::abort();
}

void read_function(const elf::GoPclntab& table, const elf::GoPclntab::Function& function,
                   const elf::GoPclntab::Reader& bytes) {
    require(function.start < function.end);
    const std::uint64_t end = table.code_end(function);
    require(function.start < end && end <= function.end);
    require(table.name_of(function).size() <= 5000);
    for (const std::uint64_t address : {function.start, function.start + (end - function.start) / 2, end - 1}) {
        for (const std::uint32_t values : {function.stack_depth, function.file, function.line}) {
            const auto value = table.value_at(values, function, address);
            require(!value || (value->start <= address && address < value->end));
        }
        if (const auto file = table.value_at(function.file, function, address))
            require(table.file_name(function, file->value).size() <= 5000);
        const auto call = table.inlined_call(function, address, bytes);
        require(!call || call->caller < function.end);
        if (call) (void)table.name_at(call->name);
    }
}

void read_table(elf::GoPclntab& table, const elf::GoPclntab::Reader& bytes) {
    if (table.text_start() == 0) table.set_text_start(0x401000);
    for (std::size_t i = 0; i < std::min<std::size_t>(table.size(), 16); ++i)
        if (const auto function = table.function(i)) {
            read_function(table, *function, bytes);
            if (const auto found = table.function_at(function->start)) require(found->start <= function->start);
        }
    (void)table.function_at(table.text_start() + 100);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    const auto reader = [bytes](std::uint64_t offset, std::span<std::byte> out) {
        if (offset > bytes.size() || bytes.size() - offset < out.size()) return false;
        std::memcpy(out.data(), bytes.data() + offset, out.size());
        return true;
    };
    for (const bool big_endian : {false, true})
        if (auto table = elf::GoPclntab::open(reader, size, big_endian)) read_table(*table, reader);

    const elf::ByteSource source = elf::source_of_bytes(bytes);
    const auto header = elf::read_header(source);
    const auto sections = header ? elf::read_sections(source, *header) : std::vector<elf::Section>();
    if (!header || !sections) return 0;
    const auto place = elf::find_go_pclntab(source, *header, *sections);
    if (!place) return 0;
    (void)elf::find_go_module(source, *header, *sections, *place);
    if (auto table = elf::open_go_pclntab(source, *header, *place)) read_table(*table, reader);
    return 0;
}
