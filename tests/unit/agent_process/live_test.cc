// Against the real /proc: our own process, where the dynamic loader and nm know the right answers.
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "agent/process/process_list.h"
#include "agent/process/process_table.h"
#include "agent/process/vdso.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

// Probes of every executable segment: first and last byte, with what the loader says is its address in the file.
struct Probe {
    std::uint64_t address = 0, expected = 0;
    std::string name;
};

int collect(dl_phdr_info* info, std::size_t /*size*/, void* data) {
    auto& probes = *static_cast<std::vector<Probe>*>(data);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
        for (const std::uint64_t vaddr : {segment.p_vaddr, segment.p_vaddr + segment.p_filesz - 1})
            probes.push_back({info->dlpi_addr + vaddr, vaddr, info->dlpi_name});
    }
    return 0;
}

}  // namespace

TEST_CASE("every executable segment of our own process, as the loader put it") {
    ProcessTable table;
    const auto pid = static_cast<std::uint32_t>(::getpid());
    table.attach(pid);
    const ThreadHandle thread = table.thread_of(pid, pid, monotonic_ns());
    const ProcessHandle process = table.thread(thread).process;
    CHECK(table.process(process).pid == pid);
    CHECK(table.maps_known(process));
    std::vector<Probe> probes;
    ::dl_iterate_phdr(collect, &probes);
    REQUIRE(probes.size() >= 6);
    for (const Probe& probe : probes) {
        INFO(probe.name);
        const ResolvedAddress resolved = table.resolve(process, probe.address);
        CHECK(resolved.module != 0);
        CHECK(resolved.address == probe.expected);
    }
}

TEST_CASE("the vDSO and its symbols") {
    if (::getauxval(AT_SYSINFO_EHDR) == 0) {
        WARN("this kernel maps no vDSO: nothing to test");
        return;
    }
    ProcessTable table;
    const auto pid = static_cast<std::uint32_t>(::getpid());
    table.attach(pid);
    const ProcessHandle process = table.thread(table.thread_of(pid, pid, monotonic_ns())).process;
    const std::uint64_t base = ::getauxval(AT_SYSINFO_EHDR);
    const ResolvedAddress resolved = table.resolve(process, base + 0x900);
    REQUIRE(resolved.module != 0);
    CHECK(table.module(resolved.module).kind == wire::ModuleKind::vdso);
    CHECK(table.module(resolved.module).path == "[vdso]");
    CHECK(table.module(resolved.module).build_id.size() >= 8);
    CHECK(resolved.address == 0x900);  // a vDSO is linked at 0

    void* loaded = ::dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (loaded == nullptr) return;
    const char* name = "__vdso_clock_gettime";
    const void* expected = ::dlsym(loaded, name);
    bool found = false;
    for (const TargetSymbol& symbol : table.vdso_symbols(resolved.module))
        if (symbol.name == name) {
            found = true;
            CHECK(symbol.address + base == reinterpret_cast<std::uintptr_t>(expected));
            CHECK(symbol.size > 0);
        }
    CHECK(found == (expected != nullptr));
    CHECK(table.vdso_symbols(0).empty());
    CHECK_FALSE(vdso_functions(as_bytes_view("no ELF")));
}

TEST_CASE("a child in its own directory shows up in the list and by name") {
    const pid_t child = ::fork();
    if (child == 0) {
        ::execl("/bin/sleep", "sleep", "30", nullptr);
        ::_exit(127);
    }
    REQUIRE(child > 0);
    const auto pid = static_cast<std::uint32_t>(child);
    std::vector<std::uint32_t> found;
    for (int attempt = 0; attempt < 200 && found.empty(); ++attempt) {
        ::usleep(10'000);
        for (const std::uint32_t one : find_by_name("sleep"))
            if (one == pid) found.push_back(one);
    }
    CHECK(found.size() == 1);
    bool listed = false;
    for (const ProcessEntry& entry : list_processes(std::chrono::milliseconds(1), 100'000))
        if (entry.pid == pid) {
            listed = true;
            CHECK(entry.comm == "sleep");
            CHECK(entry.command_line == "sleep 30");
            CHECK(!entry.user.empty());
        }
    CHECK(listed);
    const auto identity = identify_process(pid);
    REQUIRE(identity);
    CHECK(identity->command_line == "sleep 30");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    CHECK_FALSE(identify_process(pid));
}
