// Facts about this machine and this process for hello, status and recordings, and the agent's own process setup.
#pragma once

#include <cstdint>
#include <string>

namespace flamewire::agent {

// The architecture this binary was compiled for: "x86_64", "aarch64", "armv7l", …
const char* build_architecture();

struct Machine {
    std::string host, arch, kernel_release, boot_id;  // arch is the kernel's (uname -m)
    std::uint32_t page_size = 0, cpus = 0;
    bool little_endian = true;
    // Significant bits of a user address: 39, 42, 47 or 48. Higher bits carry tags.
    std::uint8_t address_bits = 48;
};
Machine describe_machine();

// Fills the buffer with random bytes, for the ids of agents and recordings.
void fill_random(void* bytes, std::size_t size);

// Resident memory of this process; 0 without /proc.
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

// Sets nice to 5 (unless it is already higher), raises the soft limit of open files to the hard limit, reserves space for
// many descriptors, and ignores SIGPIPE. Call it before threads start. Launched commands must be forked before this call,
// so that they keep what they inherited.
void be_polite();

// True: the calling thread gets the nice value that the process had before be_polite(). False: it is polite again.
// Without CAP_SYS_RESOURCE at the time of be_polite(), or a limit that permits it (RLIMIT_NICE), nothing changes.
void boost_priority(bool boost);

}  // namespace flamewire::agent
