// Frames of locations, and the function trie that derives from them.
#include <fmt/format.h>

#include <algorithm>

#include "profile/store/tables.h"

namespace flamewire::profile {

namespace {

// A rebuild is worthwhile if a third of the nodes may be unused, but not for the first few nodes.
constexpr std::size_t rebuild_slack = 16'384;

bool is_kernel(const Module& module, const Location& location) {
    return module.identity.kind == symbol::ModuleKind::kernel ||
           (location.flags & wire::location_flag::kernel_mode) != 0;
}

// The name of an address that no source could name.
std::string placeholder(const Module& module, const Location& location) {
    if (location.module == 0) return fmt::format("[{:#x}]", location.address);
    std::string_view name = module.name;
    if (name.size() > 2 && name.front() == '[' && name.back() == ']') name = name.substr(1, name.size() - 2);
    if (name.empty()) name = "unknown";
    return fmt::format("[{}+{:#x}]", name, location.address);
}

// kallsyms' "name [module]" -> "name", "module.ko".
struct KernelName {
    std::string_view function;
    std::string module;
};
KernelName split_kernel_name(std::string_view name) {
    const std::size_t open = name.rfind(" [");
    if (open == std::string_view::npos || open == 0 || name.back() != ']' || name.size() - open < 4)
        return {name, "[kernel]"};
    const std::string_view module = name.substr(open + 2, name.size() - open - 3);
    // Code that the kernel generates has no file: "[bpf]", "[__builtin__kprobes]".
    if (module == "bpf" || module.starts_with("__builtin__"))
        return {name.substr(0, open), fmt::format("[{}]", module)};
    return {name.substr(0, open), std::string(module) + ".ko"};
}

}  // namespace

FunctionId Store::Tables::intern_function(std::string_view name, const Location& location, bool inlined, StringId file,
                                          std::uint32_t line) {
    const Module& module = modules[location.module];
    Function function{0, 0, FrameKind::user, file, line};
    if (name.empty()) {
        function.name = strings.intern(placeholder(module, location));
        function.module = strings.intern(module.name);
        function.kind = FrameKind::unknown;
    } else if (is_kernel(module, location)) {
        const KernelName kernel = split_kernel_name(name);
        function.name = strings.intern(kernel.function);
        function.module = strings.intern(kernel.module);
        function.kind = FrameKind::kernel;
    } else {
        function.name = strings.intern(name);
        function.module = strings.intern(module.name);
        if (module.identity.kind == symbol::ModuleKind::jit) function.kind = FrameKind::jit;
    }
    if (inlined && function.kind != FrameKind::unknown) function.kind = FrameKind::inlined;
    return functions.intern(function);
}

StringId Store::Tables::name_from_wire(const Location& location) const {
    if (location.name != 0 || module_symbols[location.module].empty()) return location.name;
    return module_symbols[location.module].find(location.code_address().lookup());
}

bool Store::Tables::is_ended_program(const Location& location) const {
    return modules[location.module].identity.kind == symbol::ModuleKind::kernel &&
           std::string_view(strings[name_from_wire(location)]).ends_with(" [bpf]");
}

LocationFrame Store::Tables::frame_from_wire(const Location& location) {
    const StringId name = name_from_wire(location);
    const bool inlined = (location.flags & wire::location_flag::inlined) != 0;
    return {intern_function(strings[name], location, inlined, location.file, location.line), location.file,
            location.line};
}

bool Store::Tables::frames_full() const {
    return bytes_beside_frames + nodes.memory_bytes() + frames.capacity() * sizeof(LocationFrame) >=
           limits.max_table_bytes;
}

std::span<const LocationFrame> Store::Tables::fitting(std::span<const LocationFrame> list) {
    if (list.size() < 2 || !frames_full()) return list;
    inlined_left_out = true;
    return list.last(1);
}

void Store::Tables::count_beside_frames() {
    bytes_beside_frames =
        memory_bytes() - rows.memory_bytes() - nodes.memory_bytes() - frames.capacity() * sizeof(LocationFrame);
}

bool Store::Tables::replace_frames(LocationId location, std::span<const LocationFrame> with) {
    with = fitting(with);
    if (std::ranges::equal(frames_of(location), with)) return false;
    Location& entry = locations[location];
    if (with.size() > entry.frame_count) {
        entry.first_frame = narrow32(frames.size());
        for (const LocationFrame& frame : with) append_tight(frames, frame);
    } else {
        std::ranges::copy(with, frames.begin() + entry.first_frame);
    }
    entry.frame_count = static_cast<std::uint16_t>(with.size());
    return true;
}

NodeId Store::Tables::extend_node(NodeId parent, LocationId location) {
    const std::span<const LocationFrame> list = fitting(frames_of(location));
    for (auto frame = list.rbegin(); frame != list.rend(); ++frame) parent = nodes.child(parent, frame->function);
    return parent;
}

void Store::Tables::remap_nodes(std::span<const std::uint8_t> changed) {
    if (nodes.size() > nodes_at_rebuild / 2 * 3 + rebuild_slack ||
        frames.size() > frames_at_rebuild / 2 * 3 + rebuild_slack)
        return rebuild_nodes();
    std::vector<std::uint8_t> moved(stacks.size());
    for (StackId stack = 1; stack < stacks.size(); ++stack) {
        const StackId parent = stacks.parent(stack);
        if (moved[parent] == 0 && changed[stacks.label(stack)] == 0) continue;
        const NodeId node = extend_node(node_of_stack[parent], stacks.label(stack));
        moved[stack] = node != node_of_stack[stack] ? 1 : 0;
        node_of_stack[stack] = node;
    }
}

void Store::Tables::rebuild_nodes() {
    std::vector<LocationFrame> kept;
    kept.reserve(frames.size());
    for (Location& location : locations) {
        const auto first = frames.begin() + location.first_frame;
        location.first_frame = narrow32(kept.size());
        kept.insert(kept.end(), first, first + location.frame_count);
    }
    kept.shrink_to_fit();
    frames = std::move(kept);
    const std::size_t expected = nodes_at_rebuild;
    nodes = Trie();
    nodes.reserve(expected);
    for (StackId stack = 1; stack < stacks.size(); ++stack)
        node_of_stack[stack] = extend_node(node_of_stack[stacks.parent(stack)], stacks.label(stack));
    nodes_at_rebuild = nodes.size();
    frames_at_rebuild = frames.size();
}

}  // namespace flamewire::profile
