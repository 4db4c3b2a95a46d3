// One step by libunwind, for a frame that our own rules cannot leave. libunwind sees the module at an address that is
// made of its id, not where the process has it: what libunwind caches then holds for every process, and for as long as
// the id does. It is never asked for names and never reads a live process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "unwind/frame/memory_reader.h"
#include "unwind/frame/registers.h"
#include "unwind/tables/code_map.h"
#include "unwind/tables/module_tables.h"

namespace flamewire::unwind {

class LibunwindStep {
public:
    // Whether it is built in (FLAMEWIRE_LIBUNWIND) and knows frames of `arch`: those of the architecture that this
    // program was compiled for.
    static bool available(Arch arch);

    LibunwindStep();
    ~LibunwindStep();
    LibunwindStep(const LibunwindStep&) = delete;
    LibunwindStep& operator=(const LibunwindStep&) = delete;

    // The caller's registers, by the .eh_frame_hdr of `module`, which `piece` maps. `registers` and `return_address` are
    // the frame's own; `read` sees memory at its runtime addresses. Without a pc: this frame is the outermost. Nothing:
    // libunwind cannot leave it either; what libunwind would only guess counts as nothing. Reads fail when
    // `work` is spent.
    std::optional<Registers> step(const Registers& registers, bool return_address, const CodePiece& piece,
                                  ModuleTables& module, const MemoryReader& read, TableWork& work);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::unwind
