// Resolves the frames of stacks to locations: addresses of modules, or names of JIT code and BPF programs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agent/perf/record.h"
#include "agent/pipeline/dictionary.h"
#include "agent/pipeline/kernel_names.h"
#include "agent/pipeline/located_frames.h"
#include "agent/process/process_table.h"
#include "base/code_address.h"
#include "process/kernel_symbols.h"
#include "wire/batch.h"

namespace flamewire::agent {

// A frame of a call chain, or of a walk over copied stack bytes.
struct ChainFrame {
    std::uint64_t address = 0;
    bool kernel = false;
    bool return_address = false;  // of `address`, see CodeAddress
    bool joined = false;          // copied from the thread's previous samples
    bool caller_missing = false;  // unwind::Frame::caller_missing

    [[nodiscard]] CodeAddress code_address() const { return {address, return_address}; }
};

class FrameLocator {
public:
    // Both must outlive this.
    FrameLocator(ProcessTable& processes, Dictionary& dictionary) : processes_(processes), dictionary_(dictionary) {}

    // Resolves `frames` into `locations`. False if /proc was read on the way and earlier results may be outdated. Sets
    // stack_flag::unknown_process and unnamed_jit.
    bool locate(ProcessHandle process, std::span<const ChainFrame> frames, std::vector<wire::Id>& locations,
                std::uint8_t& flags);
    // The location of an address that is a value of a sample, if it is code; otherwise 0.
    wire::Id locate_value(ProcessHandle process, std::uint64_t address);
    // A BPF program was loaded or unloaded. True if later addresses in it have `name`. False: it existed before.
    bool follow_program(const KsymbolRecord& record, const std::string& name);
    // The locations of this epoch are no longer valid.
    void clear() { located_.clear(); }

    [[nodiscard]] KernelNames& kernel_names() { return kernel_names_; }

private:
    wire::Id locate_kernel(const ChainFrame& frame, std::uint32_t flags);
    LocatedFrames::Located locate_jit(const ResolvedAddress& resolved, std::uint32_t flags);

    ProcessTable& processes_;
    Dictionary& dictionary_;
    LocatedFrames located_;
    KernelNames kernel_names_;
    process::KernelSymbols programs_{16'384};
};

}  // namespace flamewire::agent
