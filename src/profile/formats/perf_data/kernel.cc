#include "profile/formats/perf_data/kernel.h"

#include <string_view>

#include "profile/formats/perf_data/kernel_names.h"

namespace flamewire::profile::perf_data {
namespace {

// Kernels have some hundred thousand functions, but damaged files can have any number of addresses.
constexpr std::size_t most_named = std::size_t{1} << 17;
constexpr std::uint32_t return_flag = wire::location_flag::return_address;

// "/lib/modules/6.1.0/kernel/fs/xfs/xfs.ko.xz" → "/…/xfs.ko"
std::string without_compression(std::string_view path) {
    const std::size_t dot = path.rfind(".ko.");
    return std::string(path.substr(0, dot == std::string_view::npos ? path.size() : dot + 3));
}

}  // namespace

void Kernel::map(const perf::MmapRecord& map) {
    ++generation_;
    if (map.path.starts_with("[kernel.kallsyms]") || map.path.starts_with("[kernel.vmlinux]") ||
        map.path.starts_with("[kernel]")) {
        // The text after the bracket is the symbol whose address is the offset.
        if ((map.path.ends_with("_text") || map.path.ends_with("_stext")) && map.page_offset != 0)
            base_ = map.page_offset;
        return;
    }
    if (map.path.empty() || map.length == 0) return;
    const std::uint64_t end = map.start + std::min(map.length, ~map.start);
    loaded_.insert_or_assign(map.start, Area{end, without_compression(map.path), 0});
}

void Kernel::symbol(const perf::KsymbolRecord& symbol) {
    ++generation_;
    if (symbol.gone || !symbol.name.empty()) (void)symbols_.follow(symbol, symbol.name);
}

Kernel::Area* Kernel::find_loaded(std::uint64_t address) {
    auto found = loaded_.upper_bound(address);
    if (found == loaded_.begin()) return nullptr;
    --found;
    return address < found->second.end ? &found->second : nullptr;
}

wire::Id Kernel::location(RecordingBuilder& builder, CodeAddress address) {
    const std::uint32_t flags = wire::location_flag::kernel_mode | (address.return_address ? return_flag : 0);
    const std::uint64_t looked_up = address.lookup();
    if (image_ == 0) image_ = builder.module(wire::ModuleKind::kernel, "[kernel]", modules_.known_build_id({}, true));
    if (const std::string_view symbol = symbols_.name_at(looked_up); !symbol.empty())
        return builder.location({.function = symbol, .module = image_, .flags = wire::location_flag::kernel_mode});
    if (Area* const area = find_loaded(looked_up)) {
        // Not of kind `kernel`: names of the kernel image must not apply to these addresses. The module's file is not
        // used, because its addresses start at 0 in each section.
        if (area->wire_id == 0) area->wire_id = builder.module(wire::ModuleKind::jit, area->name);
        auto start = loaded_.upper_bound(looked_up);
        return builder.location(area->wire_id, address.value - std::prev(start)->first, flags);
    }
    used_ = true;
    if (base_ && seen_.size() < most_named) seen_.insert(looked_up - *base_);
    return builder.location(image_, address.value - base_.value_or(0), flags);
}

void Kernel::name(RecordingBuilder& builder) const {
    name_kernel(builder, image_, modules_.known_build_id({}, true), seen_);
}

}  // namespace flamewire::profile::perf_data
