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

Finding kernel_names() {
    if (auto problem = kernel_names_problem(read_kernel_base("/proc"), "/proc"))
        return {"kernel-names", {}, false, std::move(problem->text), std::move(problem->remedy)};
    return {"kernel-names", {}, true, "Kernel functions have names", {}};
}

// Opens the rings of a recording at 999 Hz.
Finding locked_memory(const Sysfs& sysfs, const Capabilities& capabilities) {
    constexpr std::string_view code = "locked-memory";
    const std::vector<std::uint32_t> cpus = online_cpus(sysfs);
    const Kernel& kernel = real_kernel();
    const RingPages wanted = ring_pages_for({.samples_per_second = 999, .cpus = cpus.size()}, kernel.page_size);
    const auto rings = RingSet::open(cpus, wanted, capabilities, kernel);
    if (!rings) {
        Finding finding{std::string(code), {}, false, rings.error().message, {}};
        // The remedy follows the message, as in all errors of opening events.
        if (const std::size_t at = finding.text.rfind(". Try: "); at != std::string::npos) {
            finding.remedy = finding.text.substr(at + 7);
            finding.text.resize(at);
        }
        return finding;
    }
    if (auto halved = rings_halved((*rings)->pages(), wanted, kernel.page_size)) {
        halved->text.pop_back();
        return {std::string(code), {}, false, std::move(halved->text), std::move(halved->remedy)};
    }
    return {std::string(code), {}, true, "The sample rings have the size that they need", {}};
}

Finding open_files() {
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

std::string without_name(const Finding& finding) {
    std::string text = finding.text;
    const std::size_t at = finding.name.empty() ? std::string::npos : text.find("event " + finding.name);
    if (at != std::string::npos) text.replace(at, 6 + finding.name.size(), "such event");
    return text;
}

}  // namespace

Capabilities examine_machine(const Sysfs& sysfs) {
    Capabilities found = probe_capabilities(sysfs);
    if (!found.perf_events) return found;
    found.findings.push_back(kernel_names());
    found.findings.push_back(locked_memory(sysfs, found));
    found.findings.push_back(open_files());
    return found;
}

Diagnosis diagnose(const Machine& machine, std::span<const Finding> findings) {
    Diagnosis diagnosis;
    diagnosis.text = fmt::format("flamewire-agent " FLAMEWIRE_VERSION " on {}: Linux {}, {}, {} CPUs\n", machine.host,
                                 machine.kernel_release, machine.arch, machine.cpus);
    std::vector<bool> told(findings.size());
    for (std::size_t i = 0; i < findings.size(); ++i) {
        if (told[i]) continue;
        const Finding& finding = findings[i];
        const std::string text = without_name(finding);
        std::string names = finding.name;
        for (std::size_t j = i + 1; j < findings.size() && !names.empty(); ++j)
            if (!findings[j].name.empty() && findings[j].remedy == finding.remedy &&
                without_name(findings[j]) == text) {
                names += ", " + findings[j].name;
                told[j] = true;
            }
        if (!names.empty()) names += ": ";
        const bool limited = !finding.works && !finding.remedy.empty();
        if (limited || (!finding.works && finding.code == "perf-events")) diagnosis.healthy = false;
        diagnosis.text += fmt::format("{:<9}{}{}", finding.works ? "ok" : limited ? "limited" : "missing", names, text);
        if (limited) diagnosis.text += fmt::format(". Try: {}", finding.remedy);
        diagnosis.text += '\n';
    }
    return diagnosis;
}

}  // namespace flamewire::agent
