#include "fake_proc.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace flamewire::agent::test {
namespace {

template <class T>
void put(std::string& bytes, T value) {
    std::array<char, sizeof(T)> raw{};
    std::memcpy(raw.data(), &value, sizeof(T));
    bytes.append(raw.data(), raw.size());
}

void put_program_header(std::string& bytes, std::uint32_t type, std::uint32_t flags, std::uint64_t offset,
                        std::uint64_t vaddr, std::uint64_t size) {
    put<std::uint32_t>(bytes, type);
    put<std::uint32_t>(bytes, flags);
    put<std::uint64_t>(bytes, offset);
    put<std::uint64_t>(bytes, vaddr);
    put<std::uint64_t>(bytes, vaddr);
    put<std::uint64_t>(bytes, size);
    put<std::uint64_t>(bytes, size);
    put<std::uint64_t>(bytes, 4096);
}

void make_parents(const std::string& path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
        ::mkdir(path.substr(0, slash).c_str(), 0755);
}

int remove_one(const char* path, const struct stat* /*status*/, int /*type*/, struct FTW* /*walk*/) {
    return ::remove(path);
}

}  // namespace

std::string make_elf(const std::vector<Load>& loads, std::string_view build_id) {
    const std::uint16_t headers = static_cast<std::uint16_t>(loads.size() + (build_id.empty() ? 0 : 1));
    const std::uint64_t note_offset = 64 + std::uint64_t{headers} * 56;
    std::string elf(
        "\x7f"
        "ELF\x02\x01\x01",
        7);
    elf.resize(16, '\0');
    put<std::uint16_t>(elf, 3);   // ET_DYN
    put<std::uint16_t>(elf, 62);  // EM_X86_64
    put<std::uint32_t>(elf, 1);
    put<std::uint64_t>(elf, 0);   // entry
    put<std::uint64_t>(elf, 64);  // program headers
    put<std::uint64_t>(elf, 0);   // no sections
    put<std::uint32_t>(elf, 0);
    put<std::uint16_t>(elf, 64);
    put<std::uint16_t>(elf, 56);
    put<std::uint16_t>(elf, headers);
    put<std::uint16_t>(elf, 64);
    put<std::uint16_t>(elf, 0);
    put<std::uint16_t>(elf, 0);
    std::uint64_t end = 0;
    for (const Load& load : loads) {
        put_program_header(elf, 1, load.executable ? 5 : 4, load.offset, load.vaddr, load.size);
        end = std::max(end, load.offset + load.size);
    }
    if (!build_id.empty()) {
        put_program_header(elf, 4, 4, note_offset, note_offset, 16 + build_id.size());
        put<std::uint32_t>(elf, 4);
        put<std::uint32_t>(elf, static_cast<std::uint32_t>(build_id.size()));
        put<std::uint32_t>(elf, 3);  // NT_GNU_BUILD_ID
        elf.append("GNU", 4);
        elf.append(build_id);
    }
    if (elf.size() < end) elf.resize(end, '\0');
    return elf;
}

FakeProc::FakeProc() {
    std::string name = "/tmp/flamewire-proc-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    directory_ = name;
    ::mkdir(root().c_str(), 0755);
}

FakeProc::~FakeProc() { ::nftw(directory_.c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS); }

void FakeProc::write(std::string_view below, std::string_view content) const {
    make_parents(path(below));
    std::FILE* file = std::fopen(path(below).c_str(), "wb");
    if (file == nullptr) throw std::runtime_error("cannot write " + path(below));
    std::fwrite(content.data(), 1, content.size(), file);
    std::fclose(file);
}

void FakeProc::link(std::string_view below, std::string_view target) const {
    make_parents(path(below));
    ::unlink(path(below).c_str());
    if (::symlink(std::string(target).c_str(), path(below).c_str()) != 0) throw std::runtime_error("symlink failed");
}

void FakeProc::remove(std::string_view below) const {
    ::nftw(path(below).c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void FakeProc::add_process(std::uint32_t pid, std::string_view comm, std::uint64_t start_ticks, std::string_view exe,
                           std::uint32_t parent) const {
    const std::string base = "proc/" + std::to_string(pid) + "/";
    write(base + "stat", std::to_string(pid) + " (" + std::string(comm) + ") S " + std::to_string(parent) +
                             " 1 1 0 -1 4194304 10 0 0 0 5 6 0 0 20 0 1 0 " + std::to_string(start_ticks) +
                             " 1000 10\n");
    write(base + "status",
          "Name:\t" + std::string(comm) + "\nUid:\t1000\t1001\t1000\t1000\nNStgid:\t" + std::to_string(pid) + "\n");
    write(base + "cmdline", std::string(exe) + std::string("\0-x\0", 4));
    write(base + "cgroup", "0::/user.slice\n");
    write(base + "task/" + std::to_string(pid) + "/comm", std::string(comm) + "\n");
    link(base + "exe", exe);
}

void FakeProc::write_maps(std::uint32_t pid, std::string_view maps) const {
    write("proc/" + std::to_string(pid) + "/maps", maps);
}

std::uint64_t FakeProc::inode(std::string_view below) const {
    struct stat status{};
    ::stat(path(below).c_str(), &status);
    return status.st_ino;
}

}  // namespace flamewire::agent::test
