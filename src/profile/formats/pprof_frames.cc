#include "profile/formats/pprof_frames.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace flamewire::profile {

using namespace pprof_file;

void PprofFrames::add(const Mapping& mapping) {
    Range& range = mappings_[mapping.id];
    range = {mapping.start, mapping.offset, 0, module_of_name(mapping.file), mapping.build_id};
    if (!range.name.path.empty() || !mapping.build_id.empty())
        range.module = builder_.module(range.name.kind, range.name.path, build_id_of(mapping.build_id));
}

void PprofFrames::place(const Location& location) {
    const auto known = mappings_.find(location.mapping);
    static const Range nowhere;
    if (known != mappings_.end() && location.lines.empty()) find_file(known->second);
    const Range& range = known == mappings_.end() ? nowhere : known->second;
    Place& place = places_[location.id];
    place.frames.clear();
    place.kernel = range.name.kind == wire::ModuleKind::kernel;
    for (std::size_t i = 0; i < location.lines.size(); ++i)
        named(place, range, location.lines[i], i + 1 < location.lines.size());
    if (place.frames.empty()) addressed(place, range, location.address);
}

void PprofFrames::named(Place& place, const Range& range, const Line& line, bool inlined) {
    const auto function = functions_.find(line.function);
    if (function == functions_.end() || function->second.name.empty()) return;
    std::string with_module;
    std::string_view name = function->second.name;
    if (!range.name.kernel_module.empty()) name = with_module = fmt::format("{} [{}]", name, range.name.kernel_module);
    place.frames.push_back(builder_.location(
        {.function = name,
         .file = function->second.file,
         .line = static_cast<std::uint32_t>(line.line <= std::numeric_limits<std::uint32_t>::max() ? line.line : 0),
         .module = range.module,
         .flags = inlined ? wire::location_flag::inlined : 0}));
}

// Finds the file with the code, once per module.
void PprofFrames::find_file(Range& range) {
    if (std::exchange(range.searched, true) || range.adjusted() || range.module == 0 ||
        range.name.kind != wire::ModuleKind::file)
        return;
    const auto [known, added] = code_.try_emplace(range.module);
    if (added) {
        symbol::ModuleIdentity identity;
        identity.path = range.name.path;
        identity.build_id = build_id_of(range.build_id);
        known->second = symbol::read_code_file(job_.module_file(identity));
        if (!known->second) missing_.push_back(range.name.path);
    }
    if (known->second) range.code = &*known->second;
}

// The ELF virtual address of a memory address. A mapping gives the file offset, and the file's segments convert it.
// Without the file, returns the most likely address.
std::uint64_t PprofFrames::file_address(const Range& range, std::uint64_t address) {
    if (range.adjusted() || address < range.start || (range.code != nullptr && range.code->fixed)) return address;
    const std::uint64_t offset = address - range.start + range.offset;
    if (range.code != nullptr)
        if (const auto found = range.code->address_of(offset)) return *found;
    return range.code == nullptr && range.start < symbol::fixed_programs_end ? address : offset;
}

void PprofFrames::addressed(Place& place, const Range& range, std::uint64_t address) {
    if (range.module == 0 && address == 0) {
        place.frames.push_back(builder_.location({.function = "[unknown]"}));
        return;
    }
    if (place.kernel)
        address -= address >= range.start ? range.start : 0;
    else
        address = file_address(range, address);
    const wire::Id module = range.name.kernel_module.empty() ? range.module : module_of_addresses(builder_, range.name);
    place.frames.push_back(builder_.location(module, address, 0));
    place.caller = builder_.location(module, address + 1, wire::location_flag::return_address);
}

const PprofFrames::Place& PprofFrames::place_of(std::uint64_t id) {
    if (!location_messages_.empty()) {
        for (const std::string_view one : std::exchange(location_messages_, {})) place(read_location(one));
    }
    static const Place none;
    const auto found = places_.find(id);
    return found == places_.end() ? none : found->second;
}

wire::Id PprofFrames::stack(const std::vector<std::uint64_t>& ids) {
    wire::Id stack = 0;
    // A sample can list many locations, each of which stands for many frames. So the loop stops soon after the
    // stack is full.
    for (std::size_t from = ids.size(); from-- > 0;) {
        const bool is_full = builder_.is_full(stack);
        const Place& place = place_of(ids[from]);
        const bool called_kernel = from > 0 && !place.kernel && place_of(ids[from - 1]).kernel;
        if (place.caller != 0 && from > 0 && !called_kernel)
            stack = builder_.stack(stack, place.caller);
        else
            for (auto frame = place.frames.rbegin(); frame != place.frames.rend(); ++frame)
                stack = builder_.stack(stack, *frame);
        if (is_full) break;
    }
    return stack;
}

}  // namespace flamewire::profile
