// A program that runs one instruction at a time: with ptrace on this machine, or through the GDB stub of an emulator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "unwind/frame/registers.h"

namespace flamewire::steps {

struct Mapping {
    std::uint64_t start = 0, end = 0, offset = 0;
    bool executable = false;
    std::string path;  // empty: no file; "[vdso]"
};

// The effect of the last step.
enum class Event : std::uint8_t {
    stepped,
    handler,  // a signal's handler is about to run; nothing else happened
    ended,    // the program has exited
};

class Target {
public:
    virtual ~Target() = default;
    virtual Event step() = 0;
    // Runs on to `address`, which was not executed before. Returns false if the program never reaches it.
    virtual bool run_to(std::uint64_t address) = 0;
    virtual unwind::Registers registers() = 0;
    // Reads as much as possible, at most out.size() bytes.
    virtual std::size_t read(std::uint64_t address, std::span<std::byte> out) = 0;
    virtual std::vector<Mapping> mappings() = 0;

    template <class T>
    std::optional<T> read_value(std::uint64_t address) {
        T value{};
        if (read(address, std::as_writable_bytes(std::span(&value, 1))) != sizeof(T)) return {};
        return value;
    }
};

// Starts `arguments`, stopped at the first instruction (of the dynamic linker, if it has one), without address
// randomization.
std::unique_ptr<Target> ptrace_target(const std::vector<std::string>& arguments);

// Starts `emulator` ("qemu-arm-static") with a static ELF program, stopped at its first instruction.
std::unique_ptr<Target> emulated_target(unwind::Arch arch, const std::string& emulator, const std::string& program);

}  // namespace flamewire::steps
