// Events of whole CPUs on the running kernel: what is sampled, what is not, and the messages of refusals.
#include <catch2/catch.hpp>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <thread>

#include "agent/perf/pmu.h"
#include "agent/perf/threads.h"
#include "live_target.h"

using namespace flamewire;
using namespace flamewire::agent;
using std::chrono::milliseconds;

namespace {

struct Seen final : RecordSink {
    std::map<std::uint32_t, std::uint64_t> samples_of;  // process
    std::set<std::uint32_t> cpus, named, started, ended;
    std::uint64_t samples = 0;
    void on_record(const Record& record, std::optional<std::uint32_t>) override {
        if (const auto* sample = std::get_if<SampleRecord>(&record)) {
            ++samples;
            ++samples_of[sample->pid];
            cpus.insert(sample->cpu);
        } else if (const auto* comm = std::get_if<CommRecord>(&record)) {
            named.insert(comm->pid);
        } else if (const auto* task = std::get_if<TaskRecord>(&record)) {
            (task->exit ? ended : started).insert(task->pid);
        }
    }
};

bool may_sample_cpus() {
    const bool may = perf_works() && ::geteuid() == 0;
    if (!may) WARN("NOT tested: events of whole CPUs require root here");
    return may;
}

Result<std::unique_ptr<EventSet>> try_open(EventSetOptions options, const Kernel& kernel = real_kernel()) {
    const Capabilities capabilities = read_capabilities(real_sysfs());
    options.choice = *choose_events(*parse_events("cpu-clock", real_sysfs()), 999, 0, true, capabilities);
    return EventSet::open(options, capabilities, kernel);
}

void burn() { burn_thread_cpu(60'000'000'000); }

// Simulates a refusal of all events of other threads or of whole CPUs.
Kernel refusing(bool threads, bool cpus) {
    Kernel kernel = real_kernel();
    kernel.open = [=](perf_event_attr& attr, pid_t pid, int cpu) {
        if ((pid > 0 && threads) || (pid < 0 && cpus)) return -EACCES;
        return real_kernel().open(attr, pid, cpu);
    };
    return kernel;
}

// Simulates a limit of open files that leaves `for_threads` descriptors for events of threads. Events of CPUs can be
// opened or not.
Kernel with_few_files(std::size_t for_threads, bool cpus) {
    Kernel kernel = real_kernel();
    const auto open = std::make_shared<std::set<int>>();
    kernel.open = [=](perf_event_attr& attr, pid_t pid, int cpu) {
        if (pid > 0 && open->size() >= for_threads) return -EMFILE;
        if (pid < 0 && !cpus) return -EACCES;
        const int fd = real_kernel().open(attr, pid, cpu);
        if (pid > 0 && fd >= 0) open->insert(fd);
        return fd;
    };
    kernel.close = [=](int fd) {
        open->erase(fd);
        real_kernel().close(fd);
    };
    return kernel;
}

wire::Notice notice_of(EventSet& set, std::string_view code) {
    for (const wire::Notice& notice : set.take_notices())
        if (notice.code == code) return notice;
    return {};
}

// Unlike cpu-clock, all events of this clock in a thread start and stop at the same moments, with its context switches.
class TaskClock {
public:
    explicit TaskClock(std::uint32_t pid) {
        perf_event_attr attr{};
        attr.size = sizeof attr;
        attr.type = PERF_TYPE_SOFTWARE;
        attr.config = PERF_COUNT_SW_TASK_CLOCK;
        attr.inherit = 1;
        fd_ = static_cast<int>(::syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC));
        REQUIRE(fd_ >= 0);
    }
    ~TaskClock() { ::close(fd_); }
    TaskClock(const TaskClock&) = delete;
    TaskClock& operator=(const TaskClock&) = delete;

    [[nodiscard]] std::uint64_t read_ns() const {
        std::uint64_t value = 0;
        REQUIRE(::read(fd_, &value, sizeof value) == sizeof value);
        return value;
    }

private:
    int fd_ = -1;
};

// Context switches of the main thread since its start.
double switches_of(std::uint32_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    double switches = 0;
    for (std::string line; std::getline(status, line);)
        if (const std::size_t name = line.find("ctxt_switches:"); name != std::string::npos)
            switches += std::stod(line.substr(line.find(':') + 1));
    return switches;
}

// Waits until it exists.
std::uint32_t second_thread_of(std::uint32_t pid) {
    for (;; ::usleep(1'000))
        for (const std::uint32_t tid : list_threads(pid))
            if (tid != pid) return tid;
}

}  // namespace

TEST_CASE("the whole system: everything that runs, in proportion, except idle tasks and this process") {
    if (!may_sample_cpus()) return;
    Child first(burn), second(burn);
    auto set = open_set({.scope = {.wide = true}});
    Seen seen;
    const double before = first.cpu_seconds(), switches_before = switches_of(first.pid());
    first.go();
    second.go();
    std::thread ours([] { burn_thread_cpu(300'000'000); });
    run_cpu(*set, seen, first, 0.8);
    ours.join();
    finish(*set, seen);
    const double used = first.cpu_seconds() - before;
    const auto of_first = static_cast<double>(seen.samples_of[first.pid()]);
    // The CPUs' timers give each stretch between two switches at most one sample more than its length contains.
    CHECK(of_first < used * 999 + switches_of(first.pid()) - switches_before + 2);
    CHECK(of_first > 0.4 * used * 999);
    CHECK(seen.samples_of[second.pid()] > 0);
    CHECK_FALSE(seen.samples_of.contains(0));
    CHECK_FALSE(seen.samples_of.contains(static_cast<std::uint32_t>(::getpid())));
    const EventSetCounts counts = set->counts();
    CHECK(counts.samples_read == seen.samples);
    CHECK(counts.samples_duplicate == 0);
    CHECK_FALSE(set->targets_gone());
}

TEST_CASE("some CPUs: samples of these alone; the error names a missing CPU") {
    if (!may_sample_cpus()) return;
    const std::uint32_t last = online_cpus(real_sysfs()).back();
    Child child([&] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(last, &one);
        ::sched_setaffinity(0, sizeof one, &one);
        burn();
    });
    auto set = open_set({.scope = {.wide = true, .cpus = {last}}});
    Seen seen;
    child.go();
    run_cpu(*set, seen, child, 0.3);
    finish(*set, seen);
    CHECK(seen.cpus == std::set<std::uint32_t>{last});
    CHECK(seen.samples_of[child.pid()] > 50);
    const auto none = try_open({.scope = {.wide = true, .cpus = {4'000}}});
    REQUIRE_FALSE(none);
    CHECK(none.error().code == ErrorCode::not_found);
    CHECK(none.error().message.starts_with("CPU 4000 is not online (there are 0"));
}

TEST_CASE("CPUs as a list") {
    CHECK(cpu_list_text({}).empty());
    CHECK(cpu_list_text({3}) == "3");
    CHECK(cpu_list_text({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
    CHECK(*parse_cpu_list(cpu_list_text({0, 1, 2, 5, 7, 8})) == std::vector<std::uint32_t>{0, 1, 2, 5, 7, 8});
}

TEST_CASE("a process with protected threads is sampled by events of CPUs, with its children and nothing else") {
    if (!may_sample_cpus()) return;
    Child target([] {
        for (int i = 0; i < 1'000; ++i) {
            const pid_t child = ::fork();
            if (child == 0) {
                burn_thread_cpu(20'000'000);
                ::_exit(0);
            }
            burn_thread_cpu(20'000'000);
            ::waitpid(child, nullptr, 0);
        }
    });
    Child other(burn);
    auto opened = try_open({.targets = {{target.pid()}}}, refusing(true, false));
    REQUIRE(opened);
    EventSet& set = **opened;
    Seen seen;
    target.go();
    other.go();
    run_cpu(set, seen, target, 0.4);
    CHECK_FALSE(set.targets_gone());
    target.kill();
    other.kill();
    finish(set, seen);
    CHECK(seen.samples_of[target.pid()] > 50);
    CHECK(seen.started.size() > 5);
    std::uint64_t of_children = 0;
    for (const auto& [pid, samples] : seen.samples_of) {
        CHECK((pid == target.pid() || seen.started.contains(pid)));
        if (pid != target.pid()) of_children += samples;
    }
    CHECK(of_children > 50);
    CHECK(seen.ended.contains(target.pid()));
    CHECK_FALSE(seen.ended.contains(other.pid()));
}

TEST_CASE("events of whole CPUs if preferred and permitted, including children that started before opening") {
    if (!may_sample_cpus()) return;
    Child target(burn), earlier(burn), other(burn);
    auto refused = try_open({.targets = {{target.pid()}}, .prefer_whole_cpus = true}, refusing(false, true));
    REQUIRE(refused);
    CHECK_FALSE((*refused)->samples_whole_cpus());
    auto opened = try_open({.targets = {{target.pid()}}, .prefer_whole_cpus = true});
    REQUIRE(opened);
    EventSet& set = **opened;
    CHECK(set.samples_whole_cpus());
    set.follow({target.pid(), earlier.pid()});
    Seen seen;
    target.go();
    earlier.go();
    other.go();
    run_cpu(set, seen, target, 0.2);
    run_cpu(set, seen, earlier, 0.2);
    finish(set, seen);
    CHECK(seen.samples_of[target.pid()] > 50);
    CHECK(seen.samples_of[earlier.pid()] > 50);
    CHECK_FALSE(seen.samples_of.contains(other.pid()));
    CHECK(set.take_unsampled(monotonic_ns()).empty());
}

TEST_CASE("threads that exit before their first sample are counted as not sampled") {
    if (!perf_works()) return;
    const SharedMemory<std::atomic<bool>> may_end;
    Child target([&] {
        std::thread([&] {
            while (!*may_end) ::usleep(1'000);
        }).join();
        for (int i = 0; i < 100; ++i) std::thread([] { burn_thread_cpu(3'000'000); }).join();
        burn();
    });
    const TaskClock clock(target.pid());
    auto set = open_set({.targets = {{target.pid()}}}, "task-clock", 99);
    const std::uint64_t opened_ns = clock.read_ns();  // CPU time of the target before it waits
    Seen seen;
    CHECK(set->take_unsampled(monotonic_ns()).empty());
    target.go();
    // The first thread is opened although it inherited events (owners.h), so it is counted twice.
    const TaskClock counted_twice(second_thread_of(target.pid()));
    run(*set, seen, milliseconds(50), milliseconds(10));
    *may_end = true;
    run_cpu(*set, seen, target, 0.6);
    const std::uint64_t before_ns = clock.read_ns();
    REQUIRE(set->disable());
    const std::uint64_t after_ns = clock.read_ns();
    set->drain_rest(seen);
    const std::vector<Unsampled> reports = set->take_unsampled(monotonic_ns());
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].pid == target.pid());
    CHECK(reports[0].exited_threads == 101);
    CHECK(reports[0].counted >= before_ns - opened_ns);
    CHECK(reports[0].counted <= after_ns + counted_twice.read_ns());
    // Everything that is not in a sample.
    const double sampled = static_cast<double>(seen.samples) * 1e9 / 99;
    CHECK(static_cast<double>(reports[0].missing) ==
          Approx(static_cast<double>(reports[0].counted) - sampled).margin(1e6));
    CHECK(set->take_unsampled(monotonic_ns()).empty());
}

TEST_CASE("too few files for events of threads: events of CPUs if permitted, else skipped threads are counted") {
    if (!may_sample_cpus()) return;
    Child first(burn), second(burn);
    const std::vector<Target> both{{first.pid()}, {second.pid()}};
    const std::size_t of_one = 2 * online_cpus(real_sysfs()).size();
    for (const std::size_t files : {of_one, std::size_t{0}}) {
        auto by_cpu = try_open({.targets = both}, with_few_files(files, true));
        REQUIRE(by_cpu);
        const wire::Notice found = notice_of(**by_cpu, "whole-cpus");
        CHECK(found.text.starts_with("The limit of open files is too low for events of each thread, so whole CPUs"));
        CHECK(found.remedy.starts_with("ulimit -n"));
        Seen seen;
        if (files == of_one) {
            first.go();
            second.go();
        }
        run_cpu(**by_cpu, seen, second, 0.1);
        finish(**by_cpu, seen);
        CHECK(seen.samples_of[second.pid()] > 20);
    }
    auto some = try_open({.targets = both}, with_few_files(2 * of_one + 1, false));
    REQUIRE(some);
    CHECK(notice_of(**some, "threads-skipped").text.empty());
    some = try_open({.targets = both}, with_few_files(of_one, false));
    REQUIRE(some);
    CHECK(
        notice_of(**some, "threads-skipped").text ==
        "Threads that are not sampled: 1, because the limit of open files is too low for this many threads and CPUs.");
    some = try_open({.targets = both}, with_few_files(of_one - 1, false));
    REQUIRE_FALSE(some);
    CHECK(some.error().errno_value == EMFILE);
}

TEST_CASE("of several processes, the refused ones are named, in either order") {
    if (!perf_works()) return;
    Child own(burn), foreign(burn);
    Kernel kernel = real_kernel();
    kernel.open = [&](perf_event_attr& attr, pid_t pid, int cpu) {
        if (pid < 0 || pid == static_cast<pid_t>(foreign.pid())) return -EACCES;
        return real_kernel().open(attr, pid, cpu);
    };
    for (const auto& targets : {std::vector<Target>{{own.pid()}, {foreign.pid()}}, {{foreign.pid()}, {own.pid()}}}) {
        auto set = try_open({.targets = targets}, kernel);
        REQUIRE(set);
        const wire::Notice found = notice_of(**set, "threads-refused");
        CHECK(found.text.starts_with("Threads that are not sampled: 1, because this user may not profile process " +
                                     std::to_string(foreign.pid())));
        CHECK(found.remedy.find("cap_sys_ptrace") != std::string::npos);
    }
}

TEST_CASE("refusals: the requested target, and both remedies") {
    if (!perf_works()) return;
    const auto system = try_open({.scope = {.wide = true}}, refusing(false, true));
    REQUIRE_FALSE(system);
    CHECK(system.error().code == ErrorCode::permission);
    CHECK(system.error().message.starts_with("this user may not sample the whole system: "));
    CHECK(system.error().message.find("cap_perfmon,cap_sys_ptrace+ep") != std::string::npos);
    CHECK(system.error().message.find("kernel.perf_event_paranoid=0") != std::string::npos);

    // If neither works, the error is that of the process.
    Child child(burn);
    const auto process = try_open({.targets = {{child.pid()}}}, refusing(true, true));
    REQUIRE_FALSE(process);
    CHECK(process.error().message.starts_with("this user may not profile process " + std::to_string(child.pid())));

    // A folder that is not a control group.
    const auto group = try_open({.scope = {.wide = true, .cgroups = {"/proc"}}});
    REQUIRE_FALSE(group);
    if (::geteuid() == 0)
        CHECK(group.error().message.find("does not accept event cpu-clock for this control group") !=
              std::string::npos);
    const auto gone = try_open({.scope = {.wide = true, .cgroups = {"/proc/none"}}});
    REQUIRE_FALSE(gone);
    CHECK(gone.error().message.find("/proc/none") != std::string::npos);
}
