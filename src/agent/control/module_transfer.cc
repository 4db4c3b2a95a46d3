#include "agent/control/module_transfer.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/hex.h"
#include "base/json_writer.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t max_transfers = 4;  // files kept open; a server fetches them one after the other
constexpr std::uint64_t header_bytes = 4096;
// Smaller holes are not worth a separate range.
constexpr std::uint64_t least_hole = 4096;

// Section types of the gABI.
constexpr std::uint32_t type_symtab = 2, type_strtab = 3, type_note = 7, type_nobits = 8, type_dynsym = 11;

bool names_code(const elf::Section& section) {
    if (section.type == type_nobits || section.size == 0) return false;
    if (section.type == type_symtab || section.type == type_strtab || section.type == type_note ||
        section.type == type_dynsym)
        return true;
    for (const std::string_view start :
         {".debug_", ".zdebug_", ".gnu_debug", ".plt", ".rela.plt", ".rel.plt", ".symtab_shndx"})
        if (section.name.starts_with(start)) return true;
    return false;
}

// A Go program without debug info has its names, lines and inlined calls in these sections (elf/gopclntab_file.h): the
// table, the tree of inlined calls, the runtime's data about both, and relocations.
bool names_go_code(const elf::Section& section) {
    constexpr std::array names = {
        ".gopclntab", ".data.rel.ro.gopclntab", ".data.rel.ro", ".rodata", ".noptrdata", ".data", ".go.module", ".rela",
        ".rela.dyn",  ".go.buildinfo"};
    return section.type != type_nobits && std::ranges::find(names, section.name) != names.end();
}

bool is_go_without_debug_info(const std::vector<elf::Section>& sections) {
    const auto any = [&](auto... names) {
        return std::ranges::any_of(
            sections, [&](const elf::Section& section) { return (... || (section.name == std::string_view(names))); });
    };
    return any(".note.go.buildid", ".go.buildinfo", ".gopclntab") && !any(".debug_info", ".zdebug_info");
}

std::string_view code_name(ErrorCode code) {
    switch (code) {
        case ErrorCode::too_large: return "too_large";
        case ErrorCode::unsupported: return "switched_off";
        case ErrorCode::closed: return "changed";
        case ErrorCode::busy: return "busy";
        default: return "gone";
    }
}

std::int64_t mtime_of(const struct stat& status) {
    return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

Result<FetchRequest> parse_fetch(const wire::Command& command) {
    FetchRequest request;
    request.id = command.id;
    const rapidjson::Value& args = command.args;
    const auto build_id = from_hex(wire::text_member(args, "build_id"));
    if (!build_id) return fail(ErrorCode::invalid, "build_id must be hexadecimal digits");
    request.identity = {*build_id, wire::text_member(args, "path"), wire::number_member(args, "size"), 0};
    if (const auto mtime = args.FindMember("mtime_ns"); mtime != args.MemberEnd() && mtime->value.IsInt64())
        request.identity.mtime_ns = mtime->value.GetInt64();
    if (request.identity.build_id.empty() && request.identity.path.empty())
        return fail(ErrorCode::invalid, "a module is named by build_id, or by path, size and mtime_ns");
    request.offset = wire::number_member(args, "offset");
    const std::uint64_t bytes = wire::number_member(args, "bytes", wire::max_module_chunk);
    if (bytes == 0 || bytes > wire::max_module_chunk)
        return fail(ErrorCode::invalid, fmt::format("bytes must be 1 to {}", wire::max_module_chunk));
    request.bytes = static_cast<std::size_t>(bytes);
    return request;
}

std::string encode_fetch_refusal(const std::string& id, const Error& error) {
    JsonWriter json;
    json.object()
        .member("id", id)
        .member("ok", false)
        .member("error", error.message)
        .member("code", code_name(error.code))
        .end_object();
    return json.take();
}

Result<std::vector<wire::FileRange>> symbol_ranges(const elf::ByteSource& source, std::uint64_t file_size) {
    const elf::Header header = TRY(elf::read_header(source));
    const std::vector<elf::Section> sections = TRY(elf::read_sections(source, header));
    std::vector<wire::FileRange> wanted = {{0, std::min(header_bytes, file_size)}};
    const auto want = [&](std::uint64_t offset, std::uint64_t size) {
        if (offset < file_size) wanted.push_back({offset, std::min(size, file_size - offset)});
    };
    // The section headers themselves. Entry 0 is included, because it holds their number if the file header has 0.
    if (header.section_offset != 0)
        want(header.section_offset, std::uint64_t{header.section_entry_size} * (sections.size() + 1));
    const bool go = is_go_without_debug_info(sections);
    for (const elf::Section& section : sections)
        if (names_code(section) || (go && names_go_code(section))) want(section.offset, section.size);
    std::sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
    std::vector<wire::FileRange> ranges;
    std::uint64_t total = 0;
    for (const wire::FileRange& range : wanted) {
        const std::uint64_t end = ranges.empty() ? 0 : ranges.back().offset + ranges.back().size;
        if (!ranges.empty() && range.offset <= end + least_hole) {
            const std::uint64_t longer = std::max(end, range.offset + range.size);
            total += longer - end;
            ranges.back().size = longer - ranges.back().offset;
        } else {
            total += range.size;
            ranges.push_back(range);
        }
    }
    if (ranges.size() > wire::max_module_ranges || total + file_size / 16 >= file_size) ranges = {{0, file_size}};
    return ranges;
}

Result<ModuleTransfers::Transfer*> ModuleTransfers::transfer_of(const FileIdentity& identity) {
    const auto known = std::find_if(transfers_.begin(), transfers_.end(),
                                    [&](const Transfer& transfer) { return transfer.identity == identity; });
    if (known != transfers_.end()) {
        transfers_.splice(transfers_.begin(), transfers_, known);
        return &transfers_.front();
    }
    Transfer fresh;
    fresh.identity = identity;
    fresh.file = TRY(open_(identity));
    struct stat status{};
    if (::fstat(fresh.file.get(), &status) != 0) return fail_errno("fstat", errno);
    fresh.device = status.st_dev;
    fresh.inode = status.st_ino;
    fresh.size = static_cast<std::uint64_t>(status.st_size);
    fresh.mtime_ns = mtime_of(status);
    fresh.ranges = TRY(symbol_ranges(elf::source_of_fd(fresh.file.get()), fresh.size));
    for (const wire::FileRange& range : fresh.ranges) fresh.total += range.size;
    transfers_.push_front(std::move(fresh));
    if (transfers_.size() > max_transfers) transfers_.pop_back();
    return &transfers_.front();
}

Result<bool> ModuleTransfers::check_unchanged(const Transfer& transfer) {
    struct stat status{};
    if (::fstat(transfer.file.get(), &status) == 0 && transfer.device == status.st_dev &&
        transfer.inode == status.st_ino && transfer.size == static_cast<std::uint64_t>(status.st_size) &&
        transfer.mtime_ns == mtime_of(status))
        return true;
    return fail(ErrorCode::closed, "the file was changed while it was read: restart the program, then record again");
}

Result<std::string> ModuleTransfers::read_stream(const Transfer& transfer, std::uint64_t offset, std::size_t bytes) {
    std::string part;
    for (const wire::FileRange& range : transfer.ranges) {
        if (offset >= range.size) {
            offset -= range.size;
            continue;
        }
        const std::size_t size =
            static_cast<std::size_t>(std::min<std::uint64_t>(bytes - part.size(), range.size - offset));
        const std::string read = TRY(read_range(transfer.file.get(), range.offset + offset, size));
        if (read.size() != size) return fail(ErrorCode::closed, "the file became shorter while it was read");
        part += read;
        offset = 0;
        if (part.size() == bytes) break;
    }
    return part;
}

Result<wire::ModuleChunk> ModuleTransfers::read(const FetchRequest& request) {
    if (cap_bytes_ == 0)
        return fail(ErrorCode::unsupported, "the agent sends no files: start it without --no-module-upload");
    const Transfer* const transfer = TRY(transfer_of(request.identity));
    if (transfer->total > cap_bytes_)
        return fail(ErrorCode::too_large,
                    fmt::format("{} bytes of symbols, and the agent sends at most {}: start it with --module-cap {}M",
                                transfer->total, cap_bytes_, (transfer->total >> 20) + 1));
    if (request.offset > transfer->total) return fail(ErrorCode::closed, "the file is shorter than requested");
    auto unchanged = check_unchanged(*transfer);
    Result<std::string> bytes = std::string();
    if (unchanged) bytes = read_stream(*transfer, request.offset, request.bytes);
    wire::ModuleChunk chunk{request.id, transfer->size, request.offset, transfer->total, transfer->ranges, {}, {}};
    if (unchanged && bytes && request.offset == transfer->total) {
        std::uint64_t hash = wire::content_hash_begin;
        for (std::uint64_t at = 0; bytes && at < transfer->total; at += wire::max_module_chunk) {
            bytes = read_stream(*transfer, at, wire::max_module_chunk);
            if (bytes) hash = wire::content_hash(hash, *bytes);
        }
        chunk.hash = fmt::format("{:016x}", hash);
        if (bytes) bytes->clear();
    }
    // Check again after reading, so that a file that changed in the meantime is not sent.
    if (unchanged) unchanged = check_unchanged(*transfer);
    if (!unchanged || !bytes) {
        const Error error = unchanged ? bytes.error() : unchanged.error();
        transfers_.pop_front();
        return std::unexpected(error);
    }
    chunk.bytes = std::move(*bytes);
    return chunk;
}

}  // namespace flamewire::agent
