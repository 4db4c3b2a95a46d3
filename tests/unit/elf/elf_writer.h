// Writes ELF headers field by field, from the tables of the gABI, in both classes and byte orders.
#pragma once

#include <cstdint>
#include <string>

namespace flamewire::elf {

// Appends fields in the file's byte order and word size.
struct Writer {
    bool is_64, big_endian;
    std::string out{};

    void number(std::uint64_t value, int size) {
        for (int i = 0; i < size; ++i) {
            const int byte = big_endian ? size - 1 - i : i;
            out.push_back(static_cast<char>(value >> (8 * byte) & 0xff));
        }
    }
    void u16(std::uint64_t value) { number(value, 2); }
    void u32(std::uint64_t value) { number(value, 4); }
    void word(std::uint64_t value) { number(value, is_64 ? 8 : 4); }
    void pad_to(std::size_t size) { out.resize(size, '\0'); }
};

inline void write_segment(Writer& out, std::uint64_t type, std::uint64_t flags, std::uint64_t offset,
                          std::uint64_t vaddr, std::uint64_t file_size, std::uint64_t memory_size) {
    out.u32(type);
    if (out.is_64) out.u32(flags);
    out.word(offset);
    out.word(vaddr);
    out.word(vaddr);
    out.word(file_size);
    out.word(memory_size);
    if (!out.is_64) out.u32(flags);
    out.word(0x1000);
}

inline void write_section(Writer& out, std::uint64_t name, std::uint64_t type, std::uint64_t flags,
                          std::uint64_t address, std::uint64_t offset, std::uint64_t size, std::uint64_t link = 0) {
    out.u32(name);
    out.u32(type);
    out.word(flags);
    out.word(address);
    out.word(offset);
    out.word(size);
    out.u32(link);
    out.u32(0);
    out.word(1);
    out.word(0);
}

}  // namespace flamewire::elf
