#include "samples.h"

#include "unwind/frame/linux_registers.h"

namespace flamewire::perf_data {

namespace {

// linux/perf_event.h, enum perf_callchain_context
constexpr std::uint64_t context_kernel = static_cast<std::uint64_t>(-128);
constexpr std::uint64_t context_user = static_cast<std::uint64_t>(-512);
constexpr std::uint64_t context_max = static_cast<std::uint64_t>(-4095);

std::vector<std::uint64_t> part_of_chain(const Sample& sample, std::uint64_t wanted) {
    std::vector<std::uint64_t> chain;
    std::uint64_t context = 0;
    for (const std::uint64_t address : sample.callchain) {
        if (address >= context_max)
            context = address;
        else if (context == wanted)
            chain.push_back(address);
    }
    return chain;
}

}  // namespace

unwind::Arch arch_of(const std::string& machine) {
    if (machine == "aarch64") return unwind::Arch::aarch64;
    if (machine.starts_with("arm")) return unwind::Arch::arm;
    if (machine.starts_with("i") && machine.ends_with("86")) return unwind::Arch::x86;
    return unwind::Arch::x86_64;
}

std::optional<Start> start_of(const Recording& recording, const Sample& sample) {
    const Attribute& attribute = recording.attributes[sample.attribute];
    const std::optional<unwind::Registers> registers =
        unwind::registers_of_sample(arch_of(recording.machine), unwind::RegisterAbi{sample.registers_abi},
                                    attribute.sample_regs_user, sample.registers);
    if (!registers || sample.stack.empty()) return std::nullopt;
    return Start{
        *registers,
        {.address = registers->sp(), .bytes = sample.stack, .cut = sample.stack.size() >= attribute.sample_stack_user}};
}

std::vector<std::uint64_t> kernel_chain(const Sample& sample) { return part_of_chain(sample, context_kernel); }
std::vector<std::uint64_t> user_chain(const Sample& sample) { return part_of_chain(sample, context_user); }

void replay(const Recording& recording, Processes& processes, const std::function<void(const Sample&)>& visit) {
    for (const Record& record : recording.records) {
        std::visit([&](const auto& any) { processes.apply(any); }, record);
        if (const Sample* sample = std::get_if<Sample>(&record)) visit(*sample);
    }
}

}  // namespace flamewire::perf_data
