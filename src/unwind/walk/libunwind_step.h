// One step by libunwind, for a frame that our own rules cannot unwind. libunwind gets the module at an address derived
// from its id, not at its address in the process. So libunwind's caches are valid for all processes, as long as the id
// is. It is never called for names and never reads a live process.
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
    // Whether libunwind is built in (FLAMEWIRE_LIBUNWIND) and supports `arch`, which must be the architecture of this
    // build.
    static bool available(Arch arch);

    LibunwindStep();
    ~LibunwindStep();
    LibunwindStep(const LibunwindStep&) = delete;
    LibunwindStep& operator=(const LibunwindStep&) = delete;

    // The caller's registers from the .eh_frame_hdr of `module`, which `piece` maps. `registers` and `return_address`
    // are the frame's own; `read` takes runtime addresses. A result without a pc means that this frame is the
    // outermost. nullopt if libunwind fails too or would only guess. Reads fail once `work` is spent.
    std::optional<Registers> step(const Registers& registers, bool return_address, const CodePiece& piece,
                                  ModuleTables& module, const MemoryReader& read, TableWork& work);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::unwind
