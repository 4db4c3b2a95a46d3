#include "processes.h"

#include <sys/auxv.h>

#include <algorithm>
#include <memory>

#include "base/fd.h"
#include "base/file.h"

namespace flamewire::perf_data {

using unwind::CodePiece;
using unwind::ModuleId;

namespace {

constexpr std::uint64_t page_size = 4096;

// This process's vDSO. It is mapped completely: up to the end of its section headers, which are last.
Result<elf::ByteSource> own_vdso() {
    const unsigned long address = ::getauxval(AT_SYSINFO_EHDR);
    if (address == 0) return fail(ErrorCode::not_found, "this process has no vDSO");
    const auto* image = reinterpret_cast<const std::byte*>(address);  // NOLINT: the kernel's address
    const elf::Header header = TRY(elf::read_header(elf::source_of_bytes(Bytes(image, page_size))));
    return elf::source_of_bytes(
        Bytes(image, header.section_offset + std::size_t{header.section_count} * header.section_entry_size));
}

Result<elf::ByteSource> open_file(const std::string& path) {
    if (path == "[vdso]") return own_vdso();
    if (!path.starts_with('/') || path.starts_with("//")) return fail(ErrorCode::not_found, path + " is not a file");
    auto file = std::make_shared<UniqueFd>(TRY(open_read(path)));
    return [file, source = elf::source_of_fd(file->get())](std::uint64_t offset, std::size_t size) {
        return source(offset, size);
    };
}

// The segments of the file, if it is the one that was mapped.
Result<std::vector<elf::Segment>> segments_of(const std::string& path, std::string_view build_id) {
    const elf::ByteSource source = TRY(open_file(path));
    const elf::Header header = TRY(elf::read_header(source));
    if (!build_id.empty() && TRY(elf::read_build_id(source, header)) != build_id)
        return fail(ErrorCode::not_found, path + " is not the recorded file");
    return header.segments;
}

}  // namespace

Processes::Processes(std::map<std::string, std::string, std::less<>> elsewhere) : elsewhere_(std::move(elsewhere)) {}

void Processes::apply(const Mapping& mapping) {
    if (mapping.kernel || mapping.length == 0) return;
    if (!mapping.executable) {
        const auto space = spaces_.find(mapping.pid);
        if (space != spaces_.end()) space->second.erase(mapping.start, mapping.start + mapping.length);
        return;
    }
    CodePiece code{
        .start = mapping.start, .end = mapping.start + mapping.length, .module = module_of(mapping), .bias = 0};
    if (code.module != 0) {
        std::vector<elf::Segment> executable = modules_[code.module - 1].segments;
        std::erase_if(executable, [](const elf::Segment& segment) {
            return segment.type != elf::segment_load || (segment.flags & elf::segment_executable) == 0;
        });
        const auto address = elf::vaddr_of_offset(executable, mapping.page_offset, page_size);
        code.bias = mapping.start - address.value_or(mapping.page_offset);
    }
    spaces_[mapping.pid].insert({code, mapping.start, mapping.page_offset, mapping.path});
}

void Processes::apply(const Comm& comm) {
    comms_[comm.tid] = comm.comm;
    if (comm.exec) spaces_.erase(comm.pid);
}

void Processes::apply(const Task& task) {
    if (task.exit) return;  // its last samples may arrive later
    const auto comm = comms_.find(task.parent_tid);
    if (comm != comms_.end()) comms_[task.tid] = std::string(comm->second);
    if (task.pid == task.parent_pid) return;
    const auto parent = spaces_.find(task.parent_pid);
    Space copy = parent == spaces_.end() ? Space() : parent->second;
    spaces_[task.pid] = std::move(copy);
}

unwind::CodeMap& Processes::space_of(std::uint32_t pid) { return spaces_[pid]; }

const std::string& Processes::comm_of(std::uint32_t tid) const {
    static const std::string unknown = "?";
    const auto found = comms_.find(tid);
    return found == comms_.end() ? unknown : found->second;
}

std::optional<Processes::Place> Processes::place_of(std::uint32_t pid, std::uint64_t address) {
    const Piece* piece = spaces_[pid].piece_at(address);
    if (piece == nullptr) return std::nullopt;
    return Place{piece->path, address - piece->mapped_at + piece->page_offset};
}

Result<elf::ByteSource> Processes::open(ModuleId module) {
    if (module == 0 || module > modules_.size() || modules_[module - 1].segments.empty())
        return fail(ErrorCode::not_found, "no such file");
    return open_file(modules_[module - 1].path);
}

// 0 for memory without a file. Each file has one id for all processes.
ModuleId Processes::module_of(const Mapping& mapping) {
    std::string path(mapping.path);
    if (path != "[vdso]" && (!path.starts_with('/') || path.starts_with("//") || path.starts_with("/memfd:"))) return 0;
    if (const auto here = elsewhere_.find(path.substr(path.rfind('/') + 1)); here != elsewhere_.end())
        path = here->second;
    const std::string build_id(as_text(mapping.build_id));
    ModuleId& id = ids_[path + '\0' + build_id];
    if (id == 0) {
        // A module without segments has no tables: the file is deleted or was replaced.
        Result<std::vector<elf::Segment>> segments = segments_of(path, build_id);
        modules_.push_back({path, build_id, segments ? *std::move(segments) : std::vector<elf::Segment>()});
        id = static_cast<ModuleId>(modules_.size());
    }
    return id;
}

const Processes::Piece* Processes::Space::piece_at(std::uint64_t address) const {
    const auto end_of = [](const Piece& piece) { return piece.code.end; };
    const auto next = std::ranges::upper_bound(pieces_, address, {}, end_of);
    return next == pieces_.end() || address < next->code.start ? nullptr : &*next;
}

std::optional<CodePiece> Processes::Space::find(std::uint64_t address) {
    const Piece* piece = piece_at(address);
    if (piece == nullptr) return std::nullopt;
    return piece->code;
}

void Processes::Space::erase(std::uint64_t start, std::uint64_t end) {
    std::vector<Piece> rest;
    for (const Piece& old : pieces_) {
        Piece below = old, above = old;
        below.code.end = std::min(below.code.end, start);
        above.code.start = std::max(above.code.start, end);
        if (below.code.start < below.code.end) rest.push_back(below);
        if (above.code.start < above.code.end) rest.push_back(above);
    }
    pieces_ = std::move(rest);
}

void Processes::Space::insert(const Piece& piece) {
    erase(piece.code.start, piece.code.end);
    const auto start_of = [](const Piece& any) { return any.code.start; };
    pieces_.insert(std::ranges::upper_bound(pieces_, piece.code.start, {}, start_of), piece);
}

}  // namespace flamewire::perf_data
