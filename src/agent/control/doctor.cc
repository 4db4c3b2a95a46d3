#include "agent/control/doctor.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <vector>

#include "agent/perf/pmu.h"
#include "agent/perf/ring_set.h"
#include "agent/process/kallsyms.h"

namespace flamewire::agent {
namespace {

// With a lower limit, the rings of a few threads on a board's CPUs use most of the files.
constexpr std::uint64_t few_files = 1'024;

Diagnostic kernel_names() {
    if (auto problem = kernel_names_problem(read_kernel_base("/proc"), "/proc"))
        return {"kernel-names", {}, false, std::move(problem->text), std::move(problem->remedy)};
    return {"kernel-names", {}, true, "Kernel functions have names", {}};
}

// Opens the rings of a recording at 999 Hz.
Diagnostic locked_memory(const Sysfs& sysfs, const Capabilities& capabilities) {
    constexpr std::string_view code = "locked-memory";
    const std::vector<std::uint32_t> cpus = online_cpus(sysfs);
    const Kernel& kernel = real_kernel();
    const RingPages wanted = ring_pages_for({.samples_per_second = 999, .cpus = cpus.size()}, kernel.page_size);
    const auto rings = RingSet::open(cpus, wanted, capabilities, kernel);
    if (!rings) {
        Diagnostic diagnostic{std::string(code), {}, false, rings.error().message, {}};
        // The remedy follows the message, as in all errors of opening events.
        if (const std::size_t at = diagnostic.text.rfind(". Try: "); at != std::string::npos) {
            diagnostic.remedy = diagnostic.text.substr(at + 7);
            diagnostic.text.resize(at);
        }
        return diagnostic;
    }
    if (auto halved = rings_halved((*rings)->pages(), wanted, kernel.page_size)) {
        halved->text.pop_back();
        return {std::string(code), {}, false, std::move(halved->text), std::move(halved->remedy)};
    }
    return {std::string(code), {}, true, "The sample rings have the size that they need", {}};
}

Diagnostic open_files() {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max < few_files)
        return {"open-files",
                {},
                false,
                fmt::format("At most {} files can be open, one for each event, thread and CPU",
                            static_cast<std::uint64_t>(files.rlim_max)),
                "ulimit -n 65536 before starting the agent"};
    return {"open-files", {}, true, "Enough files can be open for programs with many threads", {}};
}

std::string without_name(const Diagnostic& diagnostic) {
    std::string text = diagnostic.text;
    const std::size_t at = diagnostic.name.empty() ? std::string::npos : text.find("event " + diagnostic.name);
    if (at != std::string::npos) text.replace(at, 6 + diagnostic.name.size(), "such event");
    return text;
}

}  // namespace

Capabilities examine_machine(const Sysfs& sysfs) {
    Capabilities found = probe_capabilities(sysfs);
    if (!found.perf_events) return found;
    found.diagnostics.push_back(kernel_names());
    found.diagnostics.push_back(locked_memory(sysfs, found));
    found.diagnostics.push_back(open_files());
    return found;
}

Diagnosis diagnose(const Machine& machine, std::span<const Diagnostic> diagnostics) {
    Diagnosis diagnosis;
    diagnosis.text = fmt::format("flamewire-agent " FLAMEWIRE_VERSION " on {}: Linux {}, {}, {} CPUs\n", machine.host,
                                 machine.kernel_release, machine.arch, machine.cpus);
    std::vector<bool> grouped(diagnostics.size());
    for (std::size_t i = 0; i < diagnostics.size(); ++i) {
        if (grouped[i]) continue;
        const Diagnostic& diagnostic = diagnostics[i];
        const std::string text = without_name(diagnostic);
        std::string names = diagnostic.name;
        for (std::size_t j = i + 1; j < diagnostics.size() && !names.empty(); ++j)
            if (!diagnostics[j].name.empty() && diagnostics[j].remedy == diagnostic.remedy &&
                without_name(diagnostics[j]) == text) {
                names += ", " + diagnostics[j].name;
                grouped[j] = true;
            }
        if (!names.empty()) names += ": ";
        const bool limited = !diagnostic.works && !diagnostic.remedy.empty();
        if (limited || (!diagnostic.works && diagnostic.code == "perf-events")) diagnosis.healthy = false;
        diagnosis.text += fmt::format("{:<9}{}{}",
                                      diagnostic.works ? "ok"
                                      : limited        ? "limited"
                                                       : "missing",
                                      names, text);
        if (limited) diagnosis.text += fmt::format(". Try: {}", diagnostic.remedy);
        diagnosis.text += '\n';
    }
    return diagnosis;
}

}  // namespace flamewire::agent
