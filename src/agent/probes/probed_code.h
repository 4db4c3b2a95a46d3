// Three functions of this program whose only purpose is that probes are placed in them (x86-64 and aarch64).
#pragma once

#include <cstdint>
#include <optional>

namespace flamewire::agent {

// What the instruction with the probe is.
enum class ProbedKind : std::uint8_t {
    emulated,  // a class that kernels emulate since Linux 4.16 (x86: push) and 4.10 (aarch64: bl)
    nop,       // a class that only newer kernels emulate: x86: a nop of 4 bytes (6.16); aarch64: nop (6.13)
    other,     // one that no kernel emulates
};

#if defined(__x86_64__) || defined(__aarch64__)
inline constexpr bool has_probed_code = true;
#else
inline constexpr bool has_probed_code = false;
#endif

struct ProbedCode {
    // `frame`: a frame record (the caller's frame pointer, then the return address). ProbedKind::emulated has it as
    // its frame pointer when the probe hits. The others ignore it.
    void (*function)(const void* frame) = nullptr;
    std::uint64_t file_offset = 0;  // of the instruction with the probe, in /proc/self/exe
};

// nullopt if has_probed_code is false, or if the program headers do not contain the function.
std::optional<ProbedCode> probed_code(ProbedKind kind);

}  // namespace flamewire::agent
