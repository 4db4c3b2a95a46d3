// The unwinder behind a line protocol, for tests that get registers and memory from other sources (recorded cases,
// debuggers). Numbers are hexadecimal. Requests:
//   start ARCH ADDRESS_BITS           resets all state; x86_64, x86, aarch64 or arm
//   module ID ELF_OFFSET PATH         an ELF file, at ELF_OFFSET inside the file PATH
//   piece START END ID OFFSET         executable memory; OFFSET is that of START within the ELF file
//   memory ADDRESS SIZE FILE_OFFSET PATH, bytes ADDRESS HEX, no-memory
//   register NUMBER VALUE, no-registers
//   walk MAX_DEPTH                    answers "frame PC SP IS_RETURN HOW ID ADDRESS" lines, then "stop REASON"
// ADDRESS is the pc as the ELF file's virtual address, ID 0 for code without a file.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "elf/elf_file.h"
#include "unwind/walk/unwinder.h"

using namespace flamewire;
using namespace flamewire::unwind;

namespace {

struct Module {
    std::string bytes;
    std::vector<elf::Segment> segments;
};

class Files final : public ModuleFiles {
public:
    std::map<ModuleId, Module> modules;
    Result<elf::ByteSource> open(ModuleId module) override {
        const auto found = modules.find(module);
        if (found == modules.end()) return fail(ErrorCode::not_found, "no such module");
        return elf::source_of_bytes(as_bytes_view(found->second.bytes));
    }
};

class Pieces final : public CodeMap {
public:
    std::vector<CodePiece> pieces;
    std::optional<CodePiece> find(std::uint64_t address) override {
        for (const CodePiece& piece : pieces)
            if (piece.start <= address && address < piece.end) return piece;
        return {};
    }
};

// Runtime address minus ELF virtual address: from the executable segment that contains the offset, else from any such
// segment, else as if addresses were offsets.
std::uint64_t bias_of(const Module& module, std::uint64_t start, std::uint64_t offset) {
    constexpr std::uint64_t page = 4096;
    const elf::Segment* best = nullptr;
    for (const elf::Segment& segment : module.segments) {
        if (segment.type != elf::segment_load) continue;
        const std::uint64_t first = segment.offset & ~(page - 1);
        if (offset < first || offset >= segment.offset + segment.file_size) continue;
        if (best == nullptr || (segment.flags & elf::segment_executable) != 0) best = &segment;
    }
    // A mapping may start before the only executable segment if they share a page.
    if (best == nullptr || (best->flags & elf::segment_executable) == 0)
        for (const elf::Segment& segment : module.segments)
            if (segment.type == elf::segment_load && (segment.flags & elf::segment_executable) != 0) best = &segment;
    return start - offset - (best == nullptr ? 0 : best->vaddr - best->offset);
}

// All memory as one copy: gaps between ranges (two stacks) read as zeros and use no memory.
class Memory {
public:
    Memory() = default;
    ~Memory() { release(); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    void add(std::uint64_t address, std::string bytes) {
        if (!bytes.empty()) ranges_[address] = std::move(bytes);
    }
    void clear() { ranges_.clear(); }
    StackCopy view() {
        if (ranges_.empty()) return {};
        const std::uint64_t first = ranges_.begin()->first;
        if (ranges_.size() == 1) return {.address = first, .bytes = as_bytes_view(ranges_.begin()->second)};
        release();
        for (const auto& [address, bytes] : ranges_) size_ = std::max(size_, address + bytes.size() - first);
        void* area = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (area == MAP_FAILED) {
            std::cerr << "memory ranges are too far apart\n";
            std::exit(1);
        }
        area_ = static_cast<std::byte*>(area);
        for (const auto& [address, bytes] : ranges_) std::memcpy(area_ + (address - first), bytes.data(), bytes.size());
        return {.address = first, .bytes = Bytes(area_, size_)};
    }

private:
    void release() {
        if (area_ != nullptr) ::munmap(area_, size_);
        area_ = nullptr;
        size_ = 0;
    }
    std::map<std::uint64_t, std::string> ranges_;
    std::byte* area_ = nullptr;
    std::size_t size_ = 0;
};

const char* how(FoundBy found_by) {
    switch (found_by) {
        case FoundBy::registers: return "registers";
        case FoundBy::rule: return "rule";
        case FoundBy::expression: return "expression";
        case FoundBy::code: return "code";
        case FoundBy::signal: return "signal";
        case FoundBy::libunwind: return "libunwind";
        case FoundBy::frame_pointer: return "frame_pointer";
        case FoundBy::link_register: return "link_register";
        case FoundBy::chain: return "chain";
        case FoundBy::joined: return "joined";
    }
    return "?";
}

struct Session {
    Arch arch = Arch::x86_64;
    Files files;
    Pieces pieces;
    Memory memory;
    Registers registers;
    std::unique_ptr<Unwinder> unwinder;
};

bool start(Session& session, std::istringstream& line) {
    std::string name;
    unsigned bits = 0;
    line >> name >> bits;
    const std::map<std::string, Arch> names{
        {"x86_64", Arch::x86_64}, {"x86", Arch::x86}, {"aarch64", Arch::aarch64}, {"arm", Arch::arm}};
    const auto found = names.find(name);
    if (!line || found == names.end()) return false;
    session.arch = found->second;
    session.unwinder.reset();
    session.files.modules.clear();
    session.pieces.pieces.clear();
    session.memory.clear();
    session.registers = Registers(session.arch);
    UnwinderOptions options;
    options.aarch64_address_bits = static_cast<std::uint8_t>(bits);
    options.use_libunwind = false;
    session.unwinder = std::make_unique<Unwinder>(session.files, options);
    return true;
}

bool add_module(Session& session, std::istringstream& line) {
    ModuleId id = 0;
    std::uint64_t offset = 0;
    std::string path;
    line >> id >> offset >> path;
    auto bytes = read_file(path, std::size_t{1} << 30);
    if (!line || !bytes || offset > bytes->size()) return false;
    Module module;
    module.bytes = bytes->substr(offset);
    if (const auto header = elf::read_header(elf::source_of_bytes(as_bytes_view(module.bytes))))
        module.segments = header->segments;
    session.files.modules[id] = std::move(module);
    return true;
}

bool add_piece(Session& session, std::istringstream& line) {
    CodePiece piece;
    std::uint64_t offset = 0;
    line >> piece.start >> piece.end >> piece.module >> offset;
    if (!line) return false;
    if (piece.module != 0) piece.bias = bias_of(session.files.modules[piece.module], piece.start, offset);
    session.pieces.pieces.push_back(piece);
    return true;
}

bool add_memory(Session& session, std::istringstream& line) {
    std::uint64_t address = 0, size = 0, offset = 0;
    std::string path;
    line >> address >> size >> offset >> path;
    auto bytes = read_file(path, std::size_t{1} << 30);
    if (!line || !bytes || offset > bytes->size()) return false;
    session.memory.add(address, bytes->substr(offset, size));
    return true;
}

bool add_bytes(Session& session, std::istringstream& line) {
    std::uint64_t address = 0;
    std::string hex, bytes;
    line >> address >> hex;
    for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16)));
    session.memory.add(address, std::move(bytes));
    return !line.fail();
}

bool walk(Session& session, std::istringstream& line) {
    std::size_t max_depth = 0;
    line >> max_depth;
    if (!line || !session.unwinder) return false;
    std::vector<Frame> frames;
    const StopReason stop =
        session.unwinder->walk(session.registers, session.memory.view(), session.pieces, max_depth, frames);
    for (const Frame& frame : frames) {
        const auto piece = session.pieces.find(frame.return_address ? frame.pc - 1 : frame.pc);
        std::cout << std::hex << "frame " << frame.pc << ' ' << frame.sp << ' ' << frame.return_address << ' '
                  << how(frame.found_by) << ' ' << (piece ? piece->module : 0) << ' '
                  << (piece ? frame.pc - piece->bias : frame.pc) << '\n';
    }
    std::cout << "stop " << name_of(stop) << std::endl;
    return true;
}

bool execute(Session& session, const std::string& text) {
    std::istringstream line(text);
    std::string request;
    line >> std::hex >> request;
    if (request == "start") return start(session, line);
    if (request == "module") return add_module(session, line);
    if (request == "piece") return add_piece(session, line);
    if (request == "memory") return add_memory(session, line);
    if (request == "bytes") return add_bytes(session, line);
    if (request == "walk") return walk(session, line);
    if (request == "register") {
        std::size_t number = 0;
        std::uint64_t value = 0;
        line >> number >> value;
        if (line && number < max_registers) session.registers.set(number, value);
        return !line.fail();
    }
    if (request == "no-registers") session.registers = Registers(session.arch);
    if (request == "no-memory") session.memory.clear();
    return request == "no-registers" || request == "no-memory";
}

}  // namespace

int main() {
    Session session;
    std::string line;
    while (std::getline(std::cin, line)) {
        if (execute(session, line)) continue;
        std::cerr << "cannot do: " << line.substr(0, 200) << '\n';
        return 1;
    }
    return 0;
}
