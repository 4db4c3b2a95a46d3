// Writes samples of a perf.data file as core files, so that a debugger can unwind them.
// Usage: cores FILE DIRECTORY < KEYS
//
// A line of KEYS is a tid and a time in ns. For each such sample, DIRECTORY/TID-TIME.core has its registers, the copied bytes of its stack
// with some room below, and the code around its frames. One line is printed, tab-separated: the key, the runtime addresses of our frames,
// `files`, and BIAS=PATH of each file that contains them. x86-64 only, because of the kernel's layout of struct elf_prstatus.
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "samples.h"
#include "unwind/walk/unwinder.h"

namespace {

using namespace flamewire;

// struct elf_prstatus: pr_pid at byte 32, pr_reg at 112. pr_reg is struct user_regs_struct; this is its order by DWARF number.
constexpr std::size_t prstatus_size = 336, pid_at = 32, registers_at = 112, not_in_dwarf = 99;
constexpr std::size_t user_regs_order[] = {
    15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, not_in_dwarf, 16, not_in_dwarf, not_in_dwarf, 7};

// Memory below the stack pointer is not copied. In an epilogue, tables can describe registers as saved there that were already restored;
// `judge.py` writes their values into this room. Before that, each word of it is its own address, so a read value shows its place.
constexpr std::size_t room_below = 512;

// If no table covers an address, gdb reads the code from the start of the function.
constexpr std::uint64_t page_size = 4096, code_before = 8192;

using Pages = std::map<std::uint64_t, std::string>;  // by address

void add_code(perf_data::Processes& processes, std::uint32_t pid, std::uint64_t pc, Pages& pages) {
    const auto place_of_frame = processes.place_of(pid, pc);
    const std::uint64_t first = (pc - std::min(pc, code_before)) & -page_size;
    for (std::uint64_t at = first; place_of_frame && at <= pc; at += page_size) {
        const auto place = processes.place_of(pid, at);
        if (!place || place->path != place_of_frame->path || pages.contains(at)) continue;
        std::string page(page_size, '\0');
        std::ifstream file{std::string(place->path), std::ios::binary};
        if (file.seekg(static_cast<std::streamoff>(place->file_offset)).read(page.data(), page_size))
            pages.emplace(at, std::move(page));
    }
}

template <class T>
void append(std::string& out, const T& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string core_of(const perf_data::Start& start, std::uint32_t pid, const Pages& code) {
    std::string status(prstatus_size, '\0');
    std::memcpy(status.data() + pid_at, &pid, sizeof pid);
    for (std::size_t i = 0; i < std::size(user_regs_order); ++i) {
        const std::uint64_t value = start.registers.get(user_regs_order[i]);
        std::memcpy(status.data() + registers_at + 8 * i, &value, sizeof value);
    }
    std::string note;
    append(note, Elf64_Nhdr{5, static_cast<Elf64_Word>(status.size()), NT_PRSTATUS});
    note.append("CORE\0\0\0\0", 8);
    note += status;

    std::string core;
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_CORE;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof header;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<Elf64_Half>(2 + code.size());
    append(core, header);
    const std::size_t contents = sizeof header + header.e_phnum * sizeof(Elf64_Phdr);
    Elf64_Phdr notes{};
    notes.p_type = PT_NOTE;
    notes.p_offset = contents;
    notes.p_filesz = note.size();
    append(core, notes);
    Elf64_Phdr stack{};
    stack.p_type = PT_LOAD;
    stack.p_flags = PF_R | PF_W;
    stack.p_offset = contents + note.size();
    stack.p_vaddr = start.stack.address - room_below;
    stack.p_filesz = stack.p_memsz = room_below + start.stack.bytes.size();
    append(core, stack);
    std::uint64_t end = stack.p_offset + stack.p_filesz;
    for (const auto& [address, bytes] : code) {
        Elf64_Phdr page{};
        page.p_type = PT_LOAD;
        page.p_flags = PF_R | PF_X;
        page.p_offset = end;
        page.p_vaddr = address;
        page.p_filesz = page.p_memsz = bytes.size();
        append(core, page);
        end += bytes.size();
    }
    core += note;
    for (std::uint64_t at = stack.p_vaddr; at < start.stack.address; at += sizeof at) append(core, at);
    core.append(reinterpret_cast<const char*>(start.stack.bytes.data()), start.stack.bytes.size());
    for (const auto& [address, bytes] : code) core += bytes;
    return core;
}

Result<bool> run(const std::string& file, const std::string& directory) {
    std::set<std::pair<std::uint32_t, std::uint64_t>> keys;
    for (std::pair<std::uint32_t, std::uint64_t> key; std::cin >> key.first >> key.second;) keys.insert(key);
    const std::string bytes = TRY(read_file(file, std::size_t{4} << 30));
    const perf_data::Recording recording = TRY(perf_data::read_recording(as_bytes_view(bytes)));
    perf_data::Processes processes;
    unwind::Unwinder unwinder(processes);
    perf_data::replay(recording, processes, [&](const perf_data::Sample& sample) {
        if (!keys.contains({sample.tid, sample.time_ns})) return;
        const auto start = perf_data::start_of(recording, sample);
        if (!start) return;
        unwind::CodeMap& map = processes.space_of(sample.pid);
        std::vector<unwind::Frame> frames;
        (void)unwinder.walk(start->registers, start->stack, map, unwind::highest_max_depth, frames);
        std::map<std::string, std::uint64_t> biases;
        Pages code;
        fmt::print("{}\t{}", sample.tid, sample.time_ns);
        for (const unwind::Frame& frame : frames) {
            fmt::print("\t{:x}", frame.pc);
            const auto piece = map.find(frame.code_address().lookup());
            const auto place = processes.place_of(sample.pid, frame.code_address().lookup());
            if (piece && place) biases.emplace(place->path, piece->bias);
            add_code(processes, sample.pid, frame.pc, code);
        }
        fmt::print("\tfiles");
        for (const auto& [path, bias] : biases) fmt::print("\t{:x}={}", bias, path);
        fmt::print("\n");
        const std::string core = core_of(*start, sample.pid, code);
        const std::string path = fmt::format("{}/{}-{}.core", directory, sample.tid, sample.time_ns);
        std::FILE* out = std::fopen(path.c_str(), "wb");
        if (out == nullptr || std::fwrite(core.data(), 1, core.size(), out) != core.size())
            fmt::print(stderr, "cannot write {}\n", path);
        if (out != nullptr) std::fclose(out);
    });
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        fmt::print(stderr, "usage: cores FILE DIRECTORY < KEYS\n");
        return 2;
    }
    const Result<bool> outcome = run(argv[1], argv[2]);
    if (!outcome) fmt::print(stderr, "cores: {}\n", outcome.error().message);
    return outcome ? 0 : 1;
}
