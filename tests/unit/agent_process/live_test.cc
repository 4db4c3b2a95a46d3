// Tests with the real /proc and this test's own process. The dynamic loader and nm provide the expected values.
#include <catch2/catch.hpp>
#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "agent/process/maps.h"
#include "agent/process/named_processes.h"
#include "agent/process/proc_text.h"
#include "agent/process/process_info.h"
#include "agent/process/process_list.h"
#include "agent/process/process_table.h"
#include "agent/process/vdso.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

// Probes the first and the last byte of every executable segment, with its file address from the loader.
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

TEST_CASE("every executable segment of this process, compared with the loader") {
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
        WARN("NOT tested: this kernel maps no vDSO");
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

TEST_CASE("a child in its own directory is found in the list and by name") {
    const pid_t child = ::fork();
    if (child == 0) {
        ::execl("/bin/sleep", "sleep", "600", nullptr);
        ::_exit(127);
    }
    REQUIRE(child > 0);
    const auto pid = static_cast<std::uint32_t>(child);
    std::vector<std::uint32_t> found;
    for (int attempt = 0; attempt < 6000 && found.empty(); ++attempt) {
        ::usleep(10'000);
        for (const std::uint32_t one : NamedProcesses(std::vector<std::string>{"sleep"}).scan())
            if (one == pid) found.push_back(one);
    }
    CHECK(found.size() == 1);
    bool listed = false;
    for (const ProcessEntry& entry : list_processes(std::chrono::milliseconds(1), 100'000))
        if (entry.pid == pid) {
            listed = true;
            CHECK(entry.comm == "sleep");
            CHECK(entry.command_line == "sleep 600");
            CHECK(!entry.user.empty());
        }
    CHECK(listed);
    const auto identity = identify_process(pid);
    REQUIRE(identity);
    CHECK(identity->command_line == "sleep 600");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    CHECK_FALSE(identify_process(pid));
}

namespace {

// Copies itself to another folder, enters its own mount and pid namespaces and another root, runs there, and loses its
// file.
pid_t start_hidden_process(const std::string& directory) {
    ::mkdir((directory + "/bin").c_str(), 0755);
    const std::string copy = directory + "/bin/hidden";
    if (std::system(("cp /proc/" + std::to_string(::getpid()) + "/exe " + copy).c_str()) != 0) return -1;
    for (const char* below : {"/lib", "/lib64", "/usr"}) {
        struct stat status{};
        if (::stat(below, &status) == 0) ::mkdir((directory + below).c_str(), 0755);
    }
    const pid_t outer = ::fork();
    if (outer != 0) return outer;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) ::_exit(77);
    // Later mounts must stay inside of this namespace.
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(77);
    for (const char* below : {"/lib", "/lib64", "/usr"}) {
        struct stat status{};
        if (::stat(below, &status) == 0 &&
            ::mount(below, (directory + below).c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
            ::_exit(77);
    }
    const pid_t inner = ::fork();
    if (inner == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::chroot(directory.c_str()) != 0 || ::chdir("/") != 0) ::_exit(77);
        ::execl("/bin/hidden", "hidden", "[.wait]", nullptr);
        ::_exit(77);
    }
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(77);
}

// The process that start_hidden_process() started, found by its comm below `outer`.
std::uint32_t find_hidden(pid_t outer) {
    for (const std::uint32_t pid : NamedProcesses(std::vector<std::string>{"hidden"}).scan()) {
        const auto stat = read_stat("/proc", pid);
        if (stat && stat->parent_pid == static_cast<std::uint32_t>(outer)) return pid;
    }
    return 0;
}

}  // namespace

TEST_CASE("waits for inspection", "[.wait]") {
    ::mkdir("/running", 0755);  // signals that it is loaded, so its file may be deleted
    ::sleep(600);
}

TEST_CASE("a process with its own mounts, pids and root, and a deleted binary") {
    std::string directory = "/tmp/flamewire-hidden-XXXXXX";
    REQUIRE(::mkdtemp(directory.data()) != nullptr);
    const pid_t outer = start_hidden_process(directory);
    REQUIRE(outer > 0);
    // An emulator's process has the name for a moment, before it fails to load the program there.
    std::uint32_t pid = 0;
    struct stat status{};
    const auto runs = [&] { return pid != 0 && ::stat((directory + "/running").c_str(), &status) == 0; };
    bool ended = false;
    for (int attempt = 0; attempt < 6000 && !runs() && !ended; ++attempt) {
        ::usleep(10'000);
        pid = find_hidden(outer);
        ended = ::waitpid(outer, nullptr, WNOHANG) != 0;
    }
    if (!runs()) {
        REQUIRE(ended);
        WARN("NOT tested: this user may not create namespaces here");
    } else {
        REQUIRE(::unlink((directory + "/bin/hidden").c_str()) == 0);
        ProcessTable table;
        table.attach(pid);
        const ProcessHandle process = table.thread(table.thread_of(pid, pid, monotonic_ns())).process;
        CHECK(table.process(process).comm == "hidden");
        CHECK(table.process(process).ns_pid == 1);
        CHECK(table.process(process).command_line == "hidden [.wait]");
        // It runs the same program as this test: each address of the test, moved by the difference of the two load
        // addresses.
        ProcessTable own;
        const auto own_pid = static_cast<std::uint32_t>(::getpid());
        own.attach(own_pid);
        const ProcessHandle self = own.thread(own.thread_of(own_pid, own_pid, monotonic_ns())).process;
        const auto code = reinterpret_cast<std::uintptr_t>(&find_hidden);
        const ResolvedAddress expected = own.resolve(self, code);
        std::uint64_t begin = 0;
        auto lines = LineReader::open("/proc/" + std::to_string(pid) + "/maps", 16384);
        for (std::string_view line; lines && lines->next(line);) {
            const auto entry = parse_maps_line(line);
            if (entry && entry->executable && entry->path.ends_with("/bin/hidden")) {
                CHECK(entry->deleted);
                begin = entry->start - entry->file_offset;
                break;
            }
        }
        REQUIRE(begin != 0);
        std::uint64_t own_begin = 0;
        auto own_lines = LineReader::open("/proc/self/maps", 16384);
        for (std::string_view line; own_lines && own_lines->next(line) && own_begin == 0;)
            if (const auto entry = parse_maps_line(line);
                entry && entry->executable && entry->start <= code && code < entry->end)
                own_begin = entry->start - entry->file_offset;
        const ResolvedAddress resolved = table.resolve(process, begin + (code - own_begin));
        CHECK(resolved.module != 0);
        CHECK(resolved.address == expected.address);
        CHECK(table.module(resolved.module).build_id == own.module(expected.module).build_id);
        CHECK(table.module(resolved.module).path.ends_with("/bin/hidden"));
        CHECK(table.take_notices().empty());
    }
    if (!ended) {
        ::kill(outer, SIGKILL);
        ::waitpid(outer, nullptr, 0);
        if (pid != 0) ::kill(static_cast<pid_t>(pid), SIGKILL);
    }
    (void)!std::system(("rm -rf --one-file-system " + directory).c_str());
}
