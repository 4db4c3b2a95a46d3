// Replays the results of a capture. A program that makes the recorded calls gets the recorded results. A program that
// makes fewer, more or reordered calls, for example after a change of the agent, gets the result that the same call had
// in the same round, or else the closest one. Such results and calls without any result are counted.
// It has a function for each call of System, and for each of Kernel.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>

#include "agent/perf/kernel.h"
#include "base/system.h"
#include "replay/capture_file.h"

namespace flamewire::replay {

// How closely a replay follows its capture, in calls.
struct Fidelity {
    std::uint64_t in_order = 0;              // returned the next recorded result
    std::uint64_t out_of_order = 0;          // returned a result of another round, or one a second time
    std::uint64_t missing = 0;               // not in the capture: failed, as if the file or event did not exist
    std::vector<std::string> first_missing;  // descriptions of some
};

class ReplaySystem final : public System {
public:
    // `on_round` is called at the start of each round with its number, from 1; also after the last recorded one.
    ReplaySystem(const CaptureFile& capture, std::uint64_t page_bytes, std::function<void(std::uint32_t)> on_round);
    ~ReplaySystem() override = default;

    agent::Kernel kernel();
    [[nodiscard]] const Fidelity& fidelity() const { return fidelity_; }
    // The next value of an input in this round, if it has one.
    std::optional<std::string_view> next_input(std::string_view name);

    int open(const std::string& path, int flags) override;
    int open_same(const std::string& path, int flags, const FileStatus& file) override;
    int open_in_root(const std::string& root, const std::string& path, int flags) override;
    std::ptrdiff_t read(int fd, std::span<std::byte> bytes) override;
    std::ptrdiff_t read_at(int fd, std::uint64_t offset, std::span<std::byte> bytes) override;
    int status_of(int fd, FileStatus& status) override;
    int status(const std::string& path, bool follow_link, FileStatus& status) override;
    std::ptrdiff_t read_link(const std::string& path, std::span<char> target) override;
    int list(const std::string& path, std::size_t most, std::vector<std::string>& names) override;
    std::ptrdiff_t read_memory(std::uint32_t pid, std::size_t word_bytes, std::span<const std::uint64_t> addresses,
                               std::span<std::byte> bytes) override;
    std::int64_t now(Clock clock) override;
    std::uint64_t constant(Constant which) override;
    std::string input(std::string_view name, std::string value) override;
    [[nodiscard]] bool deterministic() const override { return true; }

private:
    // An open descriptor.
    struct File {
        std::uint64_t handle = 0;
        std::size_t next_read = 0;   // index of the recorded read to continue with
        std::size_t bytes_read = 0;  // how much of that read has been returned
    };
    struct Ring {
        std::uint32_t number = 0;
        std::byte* page = nullptr;
        std::uint64_t data_bytes = 0, head = 0;
    };
    struct Time {
        std::uint32_t round = 0;
        std::int64_t ns = 0;
    };
    struct TimeLine {
        std::vector<Time> times;
        std::size_t next = 0;
        std::int64_t last_ns = 0;
    };

    const CallResult* find_result(agent::Call call, std::string_view arguments, bool strict = false);
    void report_missing(agent::Call call, std::string_view arguments);
    int opened(const CallResult* found);
    [[nodiscard]] std::uint64_t handle_of(int fd) const;
    File* file_of(int fd);
    std::ptrdiff_t read_from_chunks(std::uint64_t handle, std::uint64_t offset, std::span<std::byte> bytes) const;
    int perf_open(const perf_event_attr& attr, pid_t pid, int cpu, int leader, int folder);
    void* map(int fd, std::size_t size, int& error);
    std::uint64_t head(const perf_event_mmap_page& page);
    int poll(std::span<pollfd> files);

    const CaptureFile& capture_;
    std::uint64_t page_bytes_;
    std::function<void(std::uint32_t)> on_round_;
    std::uint32_t round_ = 0;
    Fidelity fidelity_;
    std::unordered_map<const std::vector<CallResult>*, std::size_t> next_;  // index of the next result of each list
    std::vector<File> files_;
    std::map<const perf_event_mmap_page*, Ring> rings_;
    std::uint32_t next_ring_ = 0;
    std::map<Clock, TimeLine> clocks_;
};

}  // namespace flamewire::replay
