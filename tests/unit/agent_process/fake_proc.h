// A proc tree in a temporary directory, and small ELF files to map. The destructor deletes everything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flamewire::agent::test {

// One PT_LOAD of a 64-bit little-endian ELF file.
struct Load {
    std::uint64_t offset = 0, vaddr = 0, size = 0;
    bool executable = true;
};
// Headers and, if `build_id` is not empty, a PT_NOTE with it, then zeros up to the end of the last load. From the gABI,
// chapters 4 and 5.
std::string make_elf(const std::vector<Load>& loads, std::string_view build_id);

class FakeProc {
public:
    FakeProc();
    ~FakeProc();
    FakeProc(const FakeProc&) = delete;
    FakeProc& operator=(const FakeProc&) = delete;

    [[nodiscard]] std::string root() const { return directory_ + "/proc"; }
    [[nodiscard]] std::string path(std::string_view below) const { return directory_ + "/" + std::string(below); }

    // `below` is relative to the temporary directory. Missing parents are created.
    void write(std::string_view below, std::string_view content) const;
    void link(std::string_view below, std::string_view target) const;
    void remove(std::string_view below) const;  // a file or a tree

    // /proc/PID with stat, status, cmdline, exe and one thread. Start times are in ticks of 10 ms.
    void add_process(std::uint32_t pid, std::string_view comm, std::uint64_t start_ticks,
                     std::string_view exe = "/bin/tool", std::uint32_t parent = 1) const;
    void write_maps(std::uint32_t pid, std::string_view maps) const;
    [[nodiscard]] std::uint64_t inode(std::string_view below) const;

private:
    std::string directory_;
};

}  // namespace flamewire::agent::test
