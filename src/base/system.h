// System calls for files, clocks and the memory of other processes, as virtual functions. A thread can install another
// System: one that records the results (agent/capture), or one that replays them (replay). perf_event_open and its ring
// buffers have their own interface, agent/perf/kernel.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flamewire {

// The fields of stat(2) that Flamewire uses.
struct FileStatus {
    std::uint64_t device = 0, inode = 0, size_bytes = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;  // st_mtim and st_ctim, since 1970
    std::uint32_t user = 0;
    bool regular = false, directory = false;
    bool others_may_read = true;  // S_IROTH
};

enum class Clock : std::uint8_t {
    monotonic,  // the kernel's CLOCK_MONOTONIC, without the offset of our time namespace
    realtime,
    boottime,
    process_cpu,
    thread_cpu,
};

// Values that do not change during the life of the process.
enum class Constant : std::uint8_t {
    page_bytes,
    word_bytes,  // size of a pointer in this program
    ticks_per_second,
    memory_pages,
    online_cpus,
    own_pid,
    effective_user,
};

// Names of System::input.
namespace inputs {
inline constexpr std::string_view plan = "plan", capabilities = "capabilities", machine = "machine",
                                  kernel_names_at_end = "kernel-names-at-end", follows_name = "follows-name",
                                  recording_id = "recording-id", command = "command", epoch = "epoch", stop = "stop",
                                  resident_bytes = "resident-bytes", own_vdso = "own-vdso", pushed = "pushed",
                                  backlog = "backlog";
}  // namespace inputs

// Functions return what the system call returns, or -errno. The base class makes the real calls.
class System {
public:
    // The System of the calling thread: the real one unless UseSystem installed another.
    static System& current();
    virtual ~System() = default;

    // open(2) with O_RDONLY | O_CLOEXEC | flags.
    virtual int open(const std::string& path, int flags);
    // As open(), but only if `path` still names the file that `file` describes; otherwise -ESTALE. Another file that
    // took the name is never opened, because opening it may have side effects.
    virtual int open_same(const std::string& path, int flags, const FileStatus& file);
    // openat2(2): resolves `path` in the root directory `root`. Links stay inside. A link as last component is not
    // followed.
    virtual int open_in_root(const std::string& root, const std::string& path, int flags);
    virtual std::ptrdiff_t read(int fd, std::span<std::byte> bytes);
    virtual std::ptrdiff_t read_at(int fd, std::uint64_t offset, std::span<std::byte> bytes);  // pread(2)
    virtual int status_of(int fd, FileStatus& facts);                                          // fstat(2)
    virtual int status(const std::string& path, bool follow_link, FileStatus& facts);
    virtual std::ptrdiff_t read_link(const std::string& path, std::span<char> target);
    // Appends up to `most` names of a directory in the order of readdir(3), including "." and "..".
    virtual int list(const std::string& path, std::size_t most, std::vector<std::string>& names);
    // process_vm_readv(2): reads a word of `word_bytes` at each address into `bytes`, packed.
    virtual std::ptrdiff_t read_memory(std::uint32_t pid, std::size_t word_bytes,
                                       std::span<const std::uint64_t> addresses, std::span<std::byte> bytes);
    virtual std::int64_t now(Clock clock);
    virtual std::uint64_t constant(Constant which);

    // An input that is not a system call. Returns `value`; during a replay, the recorded value, or an empty string if
    // none.
    virtual std::string input(std::string_view name, std::string value);
    // Whether all work must happen on the calling thread in a reproducible order.
    [[nodiscard]] virtual bool deterministic() const { return false; }
};

// Installs a System on the calling thread for its lifetime; null installs the real one.
class UseSystem {
public:
    explicit UseSystem(System* used);
    ~UseSystem();
    UseSystem(const UseSystem&) = delete;
    UseSystem& operator=(const UseSystem&) = delete;

private:
    System* before_;
};

}  // namespace flamewire
