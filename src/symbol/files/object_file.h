// One ELF file opened for symbols: libelf and libdw handles with one owner. Bytes are read, never mapped: overwriting a
// file during a lookup gives wrong names at worst, not a SIGBUS. The sections of a relocatable file (a kernel module's
// .ko) are laid out one after the other, and its debug info is relocated accordingly. Not thread-safe, like libdw.
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
    // invalid: not an ELF file that libelf can read. too_large: its compressed sections, or those of the file into
    // which dwz moved debug info, unpack to more than section_growth.h allows.
    static Result<ObjectFile> open(const std::string& path);
    // An ELF image in memory (the vDSO); keeps the bytes.
    static Result<ObjectFile> of_image(std::string image);

    [[nodiscard]] Elf* elf() const { return elf_.get(); }
    // Opened on first use; nullptr if there is no usable DWARF.
    [[nodiscard]] Dwarf* dwarf();
    [[nodiscard]] const elf::Header& header() const { return header_; }
    // Valid as long as this object.
    [[nodiscard]] elf::ByteSource source() const;
    // Size on disk; if the whole file is compressed, its compressed size.
    [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
    // From .gnu_debugaltlink: the build-id (raw bytes) of the file into which dwz moved common debug info; empty if
    // none.
    [[nodiscard]] std::string alternate_build_id() const;
    // Sets that file, if libdw cannot find it. Call it before the first dwarf().
    void set_alternate(ObjectFile file) { alternate_ = std::make_unique<ObjectFile>(std::move(file)); }
    // The contents of .gnu_debugdata (MiniDebugInfo: a small ELF file with the symbols that are not exported). nullptr
    // if it is absent, damaged or larger than max_mini_bytes unpacked. The largest libraries have a tenth of that.
    static constexpr std::size_t max_mini_bytes = std::size_t{64} << 20;
    [[nodiscard]] const ObjectFile* mini() const { return mini_.get(); }
    // Contents of a section, decompressed if necessary; empty if absent. Valid as long as this object.
    [[nodiscard]] Bytes section(std::string_view name) const;
    // Whether it contains its code. Separate debug info does not.
    [[nodiscard]] bool holds_code() const;
    // Up to `size` bytes at `vaddr`, fewer at the end of the section. not_found: there are none at that address.
    [[nodiscard]] Result<std::string> code(std::uint64_t vaddr, std::uint64_t size) const;
    // Empty if there is none.
    [[nodiscard]] Result<std::string> build_id() const;
    // Depends on which sections exist.
    [[nodiscard]] Quality quality() const;
    // Whether `vaddr` can be code. The linker drops functions but keeps their DWARF, with addresses that cannot be
    // code.
    [[nodiscard]] bool is_code(std::uint64_t vaddr) const;

private:
    struct Closer {
        Closer() : borrowed(false) {}  // NOLINT(modernize-use-default-member-init): g++ 12 has it too late
        explicit Closer(bool of_dwfl) : borrowed(of_dwfl) {}
        bool borrowed;  // it belongs to dwfl_
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
    // libdw opens dwz's common file itself, so that file must be checked first.
    [[nodiscard]] Result<bool> check_alternates(const std::string& path) const;
    Result<bool> relocate(const std::string& path);

    // The order matters: libdw's handle is destroyed first, then libelf's, then what they read from.
    UniqueFd fd_;
    std::unique_ptr<std::string> image_;
    std::unique_ptr<ObjectFile> alternate_, mini_;
    std::unique_ptr<Dwfl, DwflCloser> dwfl_;  // of a relocatable file: owns the next two
    std::unique_ptr<Elf, Closer> elf_;
    std::unique_ptr<Dwarf, Closer> dwarf_;
    bool dwarf_tried_ = false;
    std::uint64_t file_bytes_ = 0;
    elf::Header header_;
};

}  // namespace flamewire::symbol
