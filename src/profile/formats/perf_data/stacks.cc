#include "profile/formats/perf_data/stacks.h"

#include <algorithm>
#include <string_view>

#include "perf/abi.h"
#include "perf/callchain.h"
#include "profile/formats/import_names.h"
#include "profile/store/id_index.h"
#include "unwind/frame/linux_registers.h"

namespace flamewire::profile::perf_data {
namespace {

constexpr std::size_t first_known = std::size_t{1} << 12, most_known = std::size_t{1} << 20;
// The default of kernel.perf_event_max_stack, unless the event sets another limit. A chain of this length was cut.
constexpr std::size_t usual_max_stack = 127;

std::optional<unwind::Arch> arch_of(std::string_view machine) {
    if (machine == "x86_64" || machine == "amd64") return unwind::Arch::x86_64;
    if (machine == "aarch64" || machine == "arm64" || machine == "aarch64_be") return unwind::Arch::aarch64;
    if (machine.starts_with("arm")) return unwind::Arch::arm;
    if (machine.size() == 4 && machine.starts_with('i') && machine.ends_with("86")) return unwind::Arch::x86;
    return std::nullopt;
}

bool has_copy(const RecordedEvent& event) {
    return event.samples(perf::sample::stack_user) && event.samples(perf::sample::regs_user);
}

bool has_branches(const RecordedEvent& event, const Sample& sample) {
    return (event.branch_sample_type & perf::branch::call_stack) != 0 && !sample.branches.empty();
}

}  // namespace

Stacks::Stacks(const Header& header, Modules& modules, Kernel& kernel, PerfMaps& perf_maps)
    : header_(header),
      modules_(modules),
      kernel_(kernel),
      perf_maps_(perf_maps),
      machine_(arch_of(header.machine.arch)),
      unwinder_(modules, {.big_endian = header.big_endian}),
      known_(first_known) {}

Stacks::Kind Stacks::kind_of(perf::CpuMode mode) {
    switch (mode) {
        case perf::CpuMode::kernel:
        case perf::CpuMode::hypervisor: return Kind::kernel;
        case perf::CpuMode::guest_kernel:
        case perf::CpuMode::guest_user: return Kind::guest;
        case perf::CpuMode::user:
        case perf::CpuMode::unknown: break;
    }
    return Kind::user;
}

// Some writers omit the mode. Then the address decides: all kernels are in the upper half.
perf::CpuMode Stacks::mode_of(const Sample& sample) const {
    if (sample.cpu_mode != perf::CpuMode::unknown) return sample.cpu_mode;
    const bool narrow = machine_ == unwind::Arch::x86 || machine_ == unwind::Arch::arm;
    constexpr std::uint64_t kernel_64 = std::uint64_t{1} << 63, kernel_32 = 0xc000'0000;
    return sample.ip >= (narrow ? kernel_32 : kernel_64) ? perf::CpuMode::kernel : perf::CpuMode::user;
}

void Stacks::split_chain(const Sample& sample) {
    frames_.clear();
    end_ = End::open;
    const std::size_t stored = perf::split_callchain(
        sample.callchain, mode_of(sample), [&](std::uint64_t address, perf::CpuMode mode, bool return_address) {
            frames_.push_back({{address, return_address}, kind_of(mode)});
        });
    if (frames_.empty() && (sample.ip != 0 || header_.embedded.functions.empty()))
        frames_.push_back({{sample.ip, false}, kind_of(mode_of(sample))});
    using UserPart = Sample::UserPart;
    if (sample.user_part != UserPart::in_sample) {
        end_ = sample.user_part == UserPart::missing        ? End::incomplete
               : sample.user_part == UserPart::deferred_cut ? End::truncated
                                                            : End::open;
        return;
    }
    const std::uint32_t asked = header_.events[sample.event].sample_max_stack;
    // Stacks that Flamewire's export cut have a frame for it.
    if (header_.embedded.functions.empty() && stored >= (asked != 0 ? asked : usual_max_stack)) end_ = End::truncated;
}

void Stacks::drop_user_part() {
    std::erase_if(frames_, [](const Frame& frame) { return frame.kind == Kind::user; });
}

void Stacks::unwind_user_part(const Sample& sample, Process& process) {
    if (sample.register_abi == 0) return;  // a kernel thread
    const std::uint64_t mask = header_.events[sample.event].sample_regs_user;
    std::optional<unwind::Registers> start;
    if (machine_)
        start = unwind::registers_of_sample(*machine_, static_cast<unwind::RegisterAbi>(sample.register_abi), mask,
                                            sample.registers);
    ++counts_.unwound;
    if (!start) {
        ++counts_.foreign;
        ++counts_.incomplete;
        end_ = End::incomplete;
        return;
    }
    drop_user_part();
    const unwind::StackCopy copy{start->sp(), sample.stack, sample.stack_cut};
    ProcessCode code(process, modules_);
    const unwind::StopReason stop = unwinder_.walk(*start, copy, code, unwind::default_max_depth, walked_);
    for (const unwind::Frame& frame : walked_) frames_.push_back({frame.code_address(), Kind::user});
    const bool cut = stop == unwind::StopReason::max_depth || stop == unwind::StopReason::truncated_copy;
    end_ = stop == unwind::StopReason::root ? End::open : cut ? End::truncated : End::incomplete;
    if (end_ != End::open) ++counts_.incomplete;
}

void Stacks::take_branches(const Sample& sample) {
    std::vector<std::uint64_t> chain;
    for (const Frame& frame : frames_)
        if (frame.kind == Kind::user) chain.push_back(frame.address.value);
    // In kernel mode, only the call chain has the user's pc.
    if (mode_of(sample) == perf::CpuMode::user && chain.empty()) chain.push_back(sample.ip);
    if (chain.empty()) return;
    const std::uint64_t pc = mode_of(sample) == perf::CpuMode::user ? sample.ip : chain.front();
    // CPUs keep 8, 16 or 32 records. With exactly that many, older branches may be missing.
    const std::size_t count = sample.branches.size();
    const std::size_t depth = count == 8 || count == 16 || count == 32 ? count : 0;
    bool cut = false;
    branches_.clear();
    for (const perf::BranchEntry& entry : sample.branches) branches_.push_back({entry.from, entry.to});
    const std::vector<CodeAddress> found = unwind::frames_of_branches(pc, branches_, chain, depth, cut);
    drop_user_part();
    for (const CodeAddress& address : found) frames_.push_back({address, Kind::user});
    end_ = cut ? End::truncated : End::open;
}

std::optional<std::uint64_t> Stacks::deferred_cookie(const Sample& sample) const {
    const RecordedEvent& event = header_.events[sample.event];
    return has_copy(event) || has_branches(event, sample) ? std::nullopt : perf::deferred_cookie(sample.callchain);
}

wire::Id Stacks::stack_of(RecordingBuilder& builder, const Sample& sample, Process& process) {
    const RecordedEvent& event = header_.events[sample.event];
    const bool copied = has_copy(event);
    const bool branches = has_branches(event, sample);
    std::uint64_t place = hash_mix(process.space.generation(), kernel_.generation());
    // The pid selects the perf map: forked processes share an address space but have different pids.
    if (process.has_jit) place = hash_mix(place, process.pid);
    if (!copied && !branches) {
        const std::uint64_t hash = hash_of_chain(sample, place);
        Known& entry = known(hash);
        if (entry.stack == 0) {
            split_chain(sample);
            entry = {hash, fold(builder, process)};
        }
        return entry.stack;
    }
    split_chain(sample);
    if (copied)
        unwind_user_part(sample, process);
    else
        take_branches(sample);
    std::uint64_t hash = hash_mix(place, static_cast<std::uint64_t>(end_));
    for (const Frame& frame : frames_)
        hash = hash_mix(hash, frame.address.value ^ (frame.address.return_address ? std::uint64_t{1} << 62 : 0) ^
                                  static_cast<std::uint64_t>(frame.kind) << 60);
    Known& entry = known(hash);
    if (entry.stack == 0) entry = {hash, fold(builder, process)};
    return entry.stack;
}

// Hashes all inputs of split_chain(). It takes two numbers per step, because every sample of a large file has this
// cost.
std::uint64_t Stacks::hash_of_chain(const Sample& sample, std::uint64_t place) const {
    const std::span<const std::uint64_t> chain = sample.callchain;
    std::uint64_t hash =
        hash_mix(place ^ sample.ip, std::uint64_t{sample.event} << 16 | static_cast<std::uint64_t>(sample.cpu_mode) |
                                        static_cast<std::uint64_t>(sample.user_part) << 8);
    std::size_t i = 0;
    for (; i + 1 < chain.size(); i += 2) hash = hash_mix(hash ^ chain[i], chain[i + 1]);
    if (i < chain.size()) hash = hash_mix(hash, chain[i]);
    return hash_mix(hash, chain.size());
}

// The entry of `hash`, or the free entry for it.
Stacks::Known& Stacks::known(std::uint64_t hash) {
    if (known_count_ * 2 > known_.size()) {
        std::vector<Known> old = std::exchange(known_, {});
        known_count_ = 0;
        if (old.size() >= most_known) {
            known_.resize(first_known);  // clears the cache, which only costs time
        } else {
            known_.resize(old.size() * 2);
            for (const Known& one : old)
                if (one.stack != 0) known(one.hash) = one;
        }
    }
    for (std::size_t at = hash & (known_.size() - 1);; at = (at + 1) & (known_.size() - 1)) {
        if (known_[at].stack != 0 && known_[at].hash != hash) continue;
        if (known_[at].stack == 0) ++known_count_;
        return known_[at];
    }
}

// For files that Flamewire exported: the location of the address. 0: none.
wire::Id Stacks::embedded_location(RecordingBuilder& builder, std::uint64_t address) {
    const auto [function, index] = header_.embedded.find(address);
    if (function == nullptr) return 0;
    const EmbeddedPlace& place = function->places[index];
    if (place.kind == FrameKind::unknown && place.module_address != 0) {
        const wire::Id module = module_of_addresses(builder, module_of_name(function->module));
        return builder.location(module, place.module_address, place.flags);
    }
    return profile::location_of(builder, {.name = function->name,
                                          .module = function->module,
                                          .kind = place.kind,
                                          .file = place.file,
                                          .line = place.line});
}

wire::Id Stacks::location_of(RecordingBuilder& builder, const Frame& frame, Process& process) {
    if (frame.kind == Kind::kernel && !header_.embedded.functions.empty())
        if (const wire::Id embedded = embedded_location(builder, frame.address.value); embedded != 0) return embedded;
    if (frame.kind == Kind::kernel) return kernel_.location(builder, frame.address);
    if (frame.kind == Kind::guest) {
        ++counts_.guest;
        return builder.location({.function = "[virtual machine]"});
    }
    const std::uint32_t flags = frame.address.return_address ? wire::location_flag::return_address : 0;
    const process::Mapping* mapping = process.find(frame.address.value);
    if (mapping == nullptr) return builder.location(0, frame.address.value, flags);
    Module& module = modules_.at(mapping->module);
    if (module.wire_id == 0) module.wire_id = builder.module(module.kind, module.path, module.build_id);
    if (module.kind == wire::ModuleKind::jit) {
        const symbol::PerfMap* map = perf_maps_.of(process);
        const std::string_view name = map == nullptr ? std::string_view() : map->find(frame.address.lookup());
        if (!name.empty()) return builder.location({.function = name, .module = module.wire_id});
        return builder.location(module.wire_id, frame.address.value, flags);
    }
    return builder.location(module.wire_id, modules_.virtual_address(module, *mapping, frame.address.value), flags);
}

wire::Id Stacks::fold(RecordingBuilder& builder, Process& process) {
    locations_.clear();
    for (const Frame& frame : frames_) locations_.push_back(location_of(builder, frame, process));
    if (end_ == End::truncated) locations_.push_back(builder.location({.function = "[truncated]"}));
    if (end_ == End::incomplete) locations_.push_back(builder.location({.function = "[incomplete]"}));
    wire::Id stack = 0;
    for (auto location = locations_.rbegin(); location != locations_.rend(); ++location)
        stack = builder.stack(stack, *location);
    return stack;
}

}  // namespace flamewire::profile::perf_data
