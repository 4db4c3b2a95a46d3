// Facts about this machine and this process that hello, status and recordings carry, and what the agent sets up for
// itself.
#pragma once

#include <cstdint>
#include <string>

namespace flamewire::agent {

// What this binary was compiled for: "x86_64", "aarch64", "armv7l", …
const char* build_architecture();

struct Machine {
    std::string host, arch, kernel_release, boot_id;  // arch is the kernel's (uname -m)
    std::uint32_t page_size = 0, cpus = 0;
    bool little_endian = true;
    // Significant bits of a user address: 39, 42, 47 or 48. Higher bits carry tags.
    std::uint8_t address_bits = 48;
};
Machine describe_machine();

// 16 random bytes, as ids of agents and recordings need them.
void fill_random(void* bytes, std::size_t size);

// Resident memory of this process; 0 when /proc is not there.
class ResidentMemory {
public:
    ResidentMemory();
    ~ResidentMemory();
    ResidentMemory(const ResidentMemory&) = delete;
    ResidentMemory& operator=(const ResidentMemory&) = delete;
    [[nodiscard]] std::uint64_t bytes() const;

private:
    int fd_;
    std::uint64_t page_size_;
};

// The agent's manners: runs at nice 5 (kept if it is nicer already), raises the soft limit of open files to the hard
// one, and ignores SIGPIPE. Launched commands are forked before this and keep what they inherited.
void be_polite();

}  // namespace flamewire::agent
