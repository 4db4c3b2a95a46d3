// One ELF file opened for symbols: libelf and libdw handles with one owner. Bytes are read, never mapped: a file that
// is overwritten while we look at it gives wrong names at worst, not a SIGBUS. A relocatable file (a kernel module's .ko)
// has its sections laid out one behind the other, and debug info that is relocated so. Not thread-safe, like libdw itself.
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <libelf.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "elf/elf_file.h"
#include "symbol/types/module_report.h"

namespace flamewire::symbol {

class ObjectFile {
public:
    // invalid: not an ELF file that libelf can read. too_large: its compressed sections, or those of the file that dwz
    // moved debug info into, hold more than section_growth.h allows.
    static Result<ObjectFile> open(const std::string& path);
    // An ELF image in memory (the vDSO); keeps the bytes.
    static Result<ObjectFile> of_image(std::string image);

    [[nodiscard]] Elf* elf() const { return elf_.get(); }
    // Opened on first use; nullptr when there is no usable DWARF.
    [[nodiscard]] Dwarf* dwarf();
    [[nodiscard]] const elf::Header& header() const { return header_; }
    // Its bytes; valid as long as this object.
    [[nodiscard]] elf::ByteSource source() const;
    // On disk, as it is there: compressed as a whole, too.
    [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
    // What .gnu_debugaltlink names: the build-id (raw bytes) of the file that dwz moved common debug info into; empty.
    [[nodiscard]] std::string alternate_build_id() const;
    // That file, for where libdw does not find it; before dwarf() is called first.
    void set_alternate(ObjectFile file) { alternate_ = std::make_unique<ObjectFile>(std::move(file)); }
    // What .gnu_debugdata holds (MiniDebugInfo: a small ELF file of the symbols that are not exported); nullptr if it is
    // absent, damaged or larger than max_mini_bytes unpacked.
    // The largest libraries have a tenth of that.
    static constexpr std::size_t max_mini_bytes = std::size_t{64} << 20;
    [[nodiscard]] const ObjectFile* mini() const { return mini_.get(); }
    // Contents of a section, decompressed if need be; empty when absent. Valid as long as this object.
    [[nodiscard]] Bytes section(std::string_view name) const;
    // Whether its code is in it: not so of separate debug info.
    [[nodiscard]] bool holds_code() const;
    // Up to `size` bytes at `vaddr`, fewer at the end of the section. not_found: none are at that address.
    [[nodiscard]] Result<std::string> code(std::uint64_t vaddr, std::uint64_t size) const;
    // Empty when there is none.
    [[nodiscard]] Result<std::string> build_id() const;
    // By the sections that are there.
    [[nodiscard]] Quality quality() const;
    // Whether code can stand at `vaddr`. Functions that the linker dropped keep DWARF with addresses where none can be.
    [[nodiscard]] bool is_code(std::uint64_t vaddr) const;

private:
    struct Closer {
        Closer() : borrowed(false) {}  // NOLINT(modernize-use-default-member-init): g++ 12 has it too late
        explicit Closer(bool of_dwfl) : borrowed(of_dwfl) {}
        bool borrowed;  // it is of dwfl_
        void operator()(Elf* elf) const {
            if (!borrowed) elf_end(elf);
        }
        void operator()(Dwarf* dwarf) const {
            if (!borrowed) dwarf_end(dwarf);
        }
    };
    struct DwflCloser {
        void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
    };

    ObjectFile() = default;
    void open_mini();
    // libdw opens the common file of dwz by itself, so that one is checked before.
    [[nodiscard]] Result<bool> check_alternates(const std::string& path) const;
    Result<bool> relocate(const std::string& path);

    // Order matters: libdw's handle goes first, then libelf's, then what they read from.
    UniqueFd fd_;
    std::unique_ptr<std::string> image_;
    std::unique_ptr<ObjectFile> alternate_, mini_;
    std::unique_ptr<Dwfl, DwflCloser> dwfl_;  // of a relocatable file: owns the two that follow
    std::unique_ptr<Elf, Closer> elf_;
    std::unique_ptr<Dwarf, Closer> dwarf_;
    bool dwarf_tried_ = false;
    std::uint64_t file_bytes_ = 0;
    elf::Header header_;
};

}  // namespace flamewire::symbol
