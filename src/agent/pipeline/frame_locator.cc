#include "agent/pipeline/frame_locator.h"

#include <string_view>

#include "agent/perf/breakpoint_spec.h"
#include "agent/pipeline/folded_stack.h"

namespace flamewire::agent {

bool FrameLocator::locate(ProcessHandle process, std::span<const ChainFrame> frames, std::vector<wire::Id>& locations,
                          std::uint8_t& stack_flags) {
    const std::uint64_t before = processes_.generation(process);
    std::uint64_t generation = before;
    locations.clear();
    stack_flags = 0;
    for (const ChainFrame& frame : frames) {
        std::uint32_t flags = frame.return_address ? wire::location_flag::return_address : 0;
        if (frame.joined) flags |= wire::location_flag::joined;
        if (frame.kernel) flags |= wire::location_flag::kernel_mode;
        LocatedFrames::Key key{frame.kernel ? LocatedFrames::kernel : generation, frame.address, flags};
        if (const LocatedFrames::Located known = located_.find(key); known.location != 0) {
            locations.push_back(known.location);
            if (known.unnamed_jit) stack_flags |= stack_flag::unnamed_jit;
            continue;
        }
        if (frame.kernel) {
            locations.push_back(locate_kernel(frame, flags));
            located_.put(key, {locations.back()});
            continue;
        }
        const ResolvedAddress resolved = processes_.resolve(process, frame.address);
        // Without known mappings, addresses are meaningless. One frame, "[unknown process]", replaces them.
        if (!processes_.maps_known(process)) {
            stack_flags |= stack_flag::unknown_process;
            break;
        }
        key.generation = generation = processes_.generation(process);
        const LocatedFrames::Located found =
            resolved.jit ? locate_jit(resolved, flags) : LocatedFrames::Located{dictionary_.address(resolved, flags)};
        locations.push_back(found.location);
        if (found.unnamed_jit) stack_flags |= stack_flag::unnamed_jit;
        // Do not cache an address outside all mappings: its mapping may not have been read yet.
        if (resolved.module != 0) located_.put(key, found);
    }
    return processes_.generation(process) == before;
}

wire::Id FrameLocator::locate_value(ProcessHandle process, std::uint64_t address) {
    // The kernel's code and its modules are within this distance of _text.
    constexpr std::uint64_t kernel_bytes = std::uint64_t{1} << 31;
    if (is_kernel_address(address)) {
        const bool code = processes_.resolve_kernel(address).address + kernel_bytes < 2 * kernel_bytes;
        return code ? locate_kernel({.address = address, .kernel = true}, wire::location_flag::kernel_mode) : 0;
    }
    const ResolvedAddress resolved = processes_.resolve(process, address);
    return resolved.module != 0 && !resolved.jit ? dictionary_.address(resolved, 0) : 0;
}

wire::Id FrameLocator::locate_kernel(const ChainFrame& frame, std::uint32_t flags) {
    const ResolvedAddress resolved = processes_.resolve_kernel(frame.address);
    const std::string_view program = programs_.name_at(frame.code_address().lookup());
    if (!program.empty())
        return dictionary_.function_of(resolved.module, {program, {}, 0}, flags & ~wire::location_flag::return_address);
    kernel_names_.saw(resolved.address);
    return dictionary_.address(resolved, flags);
}

// Addresses of JIT code can later belong to other code, so look up the function now. If it is unknown yet, keep the
// address, which a later symbol can name.
LocatedFrames::Located FrameLocator::locate_jit(const ResolvedAddress& resolved, std::uint32_t flags) {
    const CodeAddress address{resolved.address, (flags & wire::location_flag::return_address) != 0};
    const auto function = processes_.jit_function(resolved.module, address.lookup());
    if (!function) return {dictionary_.address(resolved, flags), true};
    return {dictionary_.function_of(resolved.module, *function, flags & wire::location_flag::joined)};
}

bool FrameLocator::follow_program(const KsymbolRecord& record, const std::string& name) {
    clear();
    return programs_.follow(record, name);
}

}  // namespace flamewire::agent
