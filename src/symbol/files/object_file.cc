#include "symbol/files/object_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/stat.h>
#include <system_error>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/byte_reader.h"
#include "base/file.h"
#include "base/hex.h"
#include "elf/xz.h"
#include "symbol/files/compressed_file.h"
#include "symbol/files/section_growth.h"
#include "symbol/files/zstd_sections.h"

namespace flamewire::symbol {
namespace {

constexpr std::size_t largest_image = std::size_t{4} << 30;

// Calls visit(section, header, name) for each section until it returns true.
template <class Visit>
void each_section(Elf* elf, Visit visit) {
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) return;
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(elf, section)) != nullptr) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr) continue;
        const char* name = elf_strptr(elf, names, header.sh_name);
        if (visit(section, header, std::string_view(name == nullptr ? "" : name))) return;
    }
}

Result<std::string> read_all(int fd, const std::string& path) {
    struct stat status{};
    if (::fstat(fd, &status) != 0) return fail_errno("read " + path, errno);
    if (static_cast<std::size_t>(status.st_size) > largest_image)
        return fail(ErrorCode::too_large, path + " is larger than 4 GiB");
    return read_range(fd, 0, static_cast<std::size_t>(status.st_size));
}

Result<bool> check_growth(int fd, Elf* elf, const elf::Header& header, const std::string& path) {
    struct stat status{};
    if (::fstat(fd, &status) != 0) return fail_errno("read " + path, errno);
    return check_section_growth(elf, header, elf::source_of_fd(fd), static_cast<std::uint64_t>(status.st_size), path);
}

// The contents of .gnu_debugaltlink: a file name, a zero byte, and the build-id.
struct AlternateLink {
    std::string name, build_id;
};
AlternateLink alternate_link(Bytes bytes) {
    ByteReader in(bytes);
    AlternateLink link;
    link.name = in.c_string();
    const std::size_t at = in.position();
    if (!in.ok() || at >= bytes.size()) return {};
    link.build_id = as_text(bytes.subspan(at));
    return link;
}

// Where libdw searches for that file, as soon as something refers to it.
std::vector<std::string> alternate_places(const AlternateLink& link, const std::string& path) {
    std::vector<std::string> places;
    if (link.build_id.size() > 1) {
        const std::string id = to_hex(link.build_id);
        places.push_back("/usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
    }
    if (link.name.empty()) return places;
    places.push_back(link.name);
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    if (!link.name.starts_with('/') && !error) places.push_back((real.parent_path() / link.name).string());
    return places;
}

}  // namespace

Result<ObjectFile> ObjectFile::open(const std::string& path) {
    elf_version(EV_CURRENT);
    ObjectFile file;
    file.fd_ = TRY(open_uncompressed(path));
    std::error_code unknown;
    if (const std::uintmax_t size = std::filesystem::file_size(path, unknown); !unknown) file.file_bytes_ = size;
    file.header_ = TRY(elf::read_header(elf::source_of_fd(file.fd_.get())));
    file.elf_.reset(elf_begin(file.fd_.get(), ELF_C_READ, nullptr));
    if (!file.elf_ || elf_kind(file.elf_.get()) != ELF_K_ELF)
        return fail(ErrorCode::invalid, path + " cannot be read as ELF");
    TRY(check_growth(file.fd_.get(), file.elf_.get(), file.header_, path));
    TRY(file.check_alternates(path));
    if (has_zstd_sections(file.elf_.get())) {
        file.image_ = std::make_unique<std::string>(TRY(read_all(file.fd_.get(), path)));
        file.elf_.reset(TRY(open_decompressed(*file.image_)));
    }
    if (file.header_.type == ET_REL) TRY(file.relocate(path));
    if (file.quality() < Quality::symbols) file.open_mini();
    return file;
}

Result<ObjectFile> ObjectFile::of_image(std::string image) {
    elf_version(EV_CURRENT);
    ObjectFile file;
    file.image_ = std::make_unique<std::string>(std::move(image));
    file.file_bytes_ = file.image_->size();
    file.header_ = TRY(elf::read_header(elf::source_of_bytes(as_bytes_view(*file.image_))));
    file.elf_.reset(elf_memory(file.image_->data(), file.image_->size()));
    if (!file.elf_) return fail(ErrorCode::invalid, "the image cannot be read as ELF");
    TRY(check_section_growth(file.elf_.get(), file.header_, file.source(), file.image_->size(), "the image"));
    return file;
}

Result<bool> ObjectFile::check_alternates(const std::string& path) const {
    for (const std::string& place : alternate_places(alternate_link(section(".gnu_debugaltlink")), path)) {
        std::error_code error;
        if (!std::filesystem::is_regular_file(place, error)) continue;
        ObjectFile other;
        auto fd = open_read(place);
        if (!fd) continue;
        other.fd_ = std::move(*fd);
        auto header = elf::read_header(other.source());
        if (!header) continue;
        other.header_ = std::move(*header);
        other.elf_.reset(elf_begin(other.fd_.get(), ELF_C_READ, nullptr));
        if (!other.elf_ || elf_kind(other.elf_.get()) != ELF_K_ELF) continue;
        TRY(check_growth(other.fd_.get(), other.elf_.get(), other.header_, place));
        // dwz does not create such chains, which could be endless.
        if (!other.section(".gnu_debugaltlink").empty())
            return fail(ErrorCode::invalid,
                        fmt::format("{}, the common debug info of {}, refers to another file", place, path));
    }
    return true;
}

Result<bool> ObjectFile::relocate(const std::string& path) {
    static const Dwfl_Callbacks callbacks = {
        // No search: the file is already known.
        .find_elf = nullptr,
        .find_debuginfo = [](Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
                             char**) { return -1; },
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = nullptr};
    dwfl_.reset(dwfl_begin(&callbacks));
    UniqueFd fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
    if (fd.get() < 0) return fail_errno("open " + path, errno);
    dwfl_report_begin(dwfl_.get());
    Dwfl_Module* const module = dwfl_report_offline(dwfl_.get(), path.c_str(), path.c_str(), fd.get());
    if (module != nullptr) (void)fd.release();  // now owned by dwfl
    dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    Dwarf_Addr bias = 0;
    Elf* const elf = module == nullptr ? nullptr : dwfl_module_getelf(module, &bias);
    if (elf == nullptr) return fail(ErrorCode::invalid, path + " cannot be laid out as a relocatable file");
    dwarf_ = {dwfl_module_getdwarf(module, &bias), Closer{true}};
    dwarf_tried_ = true;
    elf_ = {elf, Closer{true}};
    return true;
}

void ObjectFile::open_mini() {
    auto image = elf::decompress_xz(section(".gnu_debugdata"), max_mini_bytes);
    if (!image) return;
    if (auto mini = of_image(std::move(*image)); mini && mini->quality() >= Quality::symbols)
        mini_ = std::make_unique<ObjectFile>(std::move(*mini));
}

Dwarf* ObjectFile::dwarf() {
    if (!dwarf_tried_ && quality() == Quality::debug_info)
        dwarf_.reset(dwarf_begin_elf(elf_.get(), DWARF_C_READ, nullptr));
    if (!dwarf_tried_ && dwarf_ && alternate_ && alternate_->dwarf() != nullptr)
        dwarf_setalt(dwarf_.get(), alternate_->dwarf());
    dwarf_tried_ = true;
    return dwarf_.get();
}

std::string ObjectFile::alternate_build_id() const { return alternate_link(section(".gnu_debugaltlink")).build_id; }

Bytes ObjectFile::section(std::string_view name) const {
    Bytes bytes;
    each_section(elf_.get(), [&](Elf_Scn* section, const GElf_Shdr& header, std::string_view section_name) {
        if (section_name != name || header.sh_type == SHT_NOBITS) return false;
        if ((header.sh_flags & SHF_COMPRESSED) != 0 && elf_compress(section, 0, 0) < 0) return true;
        if (const Elf_Data* data = elf_rawdata(section, nullptr); data != nullptr && data->d_buf != nullptr)
            bytes = Bytes(static_cast<const std::byte*>(data->d_buf), data->d_size);
        return true;
    });
    return bytes;
}

elf::ByteSource ObjectFile::source() const {
    return image_ ? elf::source_of_bytes(as_bytes_view(*image_)) : elf::source_of_fd(fd_.get());
}

Result<std::string> ObjectFile::build_id() const { return elf::read_build_id(source(), header_); }

bool ObjectFile::holds_code() const {
    bool sections = false, code = false;
    each_section(elf_.get(), [&](Elf_Scn*, const GElf_Shdr& header, std::string_view) {
        if ((header.sh_flags & SHF_ALLOC) == 0 || (header.sh_flags & SHF_EXECINSTR) == 0) return false;
        sections = true;
        code = header.sh_type != SHT_NOBITS && header.sh_size != 0;
        return code;
    });
    return code || !sections;
}

// Uses sections, because only they distinguish debug info (whose segments point nowhere) from the program. Uses
// segments if the sections were stripped.
Result<std::string> ObjectFile::code(std::uint64_t vaddr, std::uint64_t size) const {
    std::uint64_t offset = 0, there = 0;
    bool sections = false;
    each_section(elf_.get(), [&](Elf_Scn*, const GElf_Shdr& header, std::string_view) {
        if ((header.sh_flags & SHF_ALLOC) == 0) return false;
        sections = true;
        if (header.sh_type == SHT_NOBITS || (header.sh_flags & SHF_EXECINSTR) == 0) return false;
        if (vaddr < header.sh_addr || vaddr - header.sh_addr >= header.sh_size) return false;
        offset = header.sh_offset + (vaddr - header.sh_addr);
        there = header.sh_size - (vaddr - header.sh_addr);
        return true;
    });
    if (!sections)
        for (const elf::Segment& segment : header_.segments) {
            if (segment.type != elf::segment_load || (segment.flags & elf::segment_executable) == 0) continue;
            if (vaddr < segment.vaddr || vaddr - segment.vaddr >= segment.file_size) continue;
            offset = segment.offset + (vaddr - segment.vaddr);
            there = segment.file_size - (vaddr - segment.vaddr);
        }
    if (there == 0) return fail(ErrorCode::not_found, "no code is at that address");
    return source()(offset, static_cast<std::size_t>(std::min(size, there)));
}

Quality ObjectFile::quality() const {
    Quality best = mini_ ? Quality::symbols : Quality::none;
    each_section(elf_.get(), [&](Elf_Scn*, const GElf_Shdr& header, std::string_view name) {
        if (header.sh_type == SHT_NOBITS) return false;
        if (name == ".debug_info" || name == ".zdebug_info")
            best = Quality::debug_info;
        else if (header.sh_type == SHT_SYMTAB)
            best = std::max(best, Quality::symbols);
        else if (header.sh_type == SHT_DYNSYM)
            best = std::max(best, Quality::dynamic_symbols);
        return false;
    });
    return best;
}

bool ObjectFile::is_code(std::uint64_t vaddr) const {
    bool any = false;
    for (const elf::Segment& segment : header_.segments) {
        if (segment.type != elf::segment_load || (segment.flags & elf::segment_executable) == 0) continue;
        any = true;
        if (vaddr >= segment.vaddr && vaddr - segment.vaddr < segment.memory_size) return true;
    }
    return !any;  // relocatable files have no segments
}

}  // namespace flamewire::symbol
