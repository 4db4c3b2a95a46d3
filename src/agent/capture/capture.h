// Writes a capture (format.h): a System and a Kernel that make the real calls and record their results. While the
// recording runs, only its sampler thread may use it. It has a function for each call of those two interfaces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/capture/format.h"
#include "agent/perf/kernel.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/system.h"

namespace flamewire::agent {

// Size of the file. When it is reached, the recording continues without capturing.
inline constexpr std::uint64_t max_capture_bytes = std::uint64_t{256} << 20;

class Capture final : public System {
public:
    // Creates the file with mode 0600. busy: the file exists.
    static Result<std::unique_ptr<Capture>> begin(const std::string& path,
                                                  std::uint64_t limit_bytes = max_capture_bytes);
    ~Capture() override;
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    // real_kernel() with its results recorded.
    [[nodiscard]] const Kernel& kernel() const { return kernel_; }
    // Writes buffered entries to the file.
    void flush();
    [[nodiscard]] std::uint64_t size_bytes() const { return written_bytes_; }
    // Why the capture ends before the recording, in one sentence.
    [[nodiscard]] const std::optional<std::string>& truncated() const { return truncated_; }

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
    struct Ring {
        std::uint32_t number = 0;
        std::uint64_t data_offset = 0, data_bytes = 0;
        std::uint64_t head = 0;  // as last recorded
    };

    Capture(UniqueFd file, std::uint64_t limit_bytes);
    void record(Call call, std::string_view arguments, std::string_view result);
    void truncate(std::string why);
    int opened(Call call, std::string_view arguments, int fd);
    [[nodiscard]] std::uint64_t handle_of(int fd) const;
    int perf_opened(const perf_event_attr& attr, pid_t pid, int cpu, int leader, int folder, int fd);
    int perf_read(int fd, std::span<std::uint64_t> values);
    std::uint64_t head(const perf_event_mmap_page& page);
    void* map(int fd, std::size_t size, int& error);
    int poll(std::span<pollfd> files, int timeout_ms);

    const Kernel& real_ = real_kernel();
    Kernel kernel_;
    UniqueFd file_;
    std::uint64_t limit_bytes_;
    std::string chunk_;  // entries that are not written yet
    std::uint64_t written_bytes_ = 0;
    std::optional<std::string> truncated_;
    std::unordered_map<int, std::uint64_t> handles_;
    std::uint64_t next_handle_ = 0;
    std::unordered_map<const perf_event_mmap_page*, Ring> rings_;
    std::uint32_t next_ring_ = 0;
    std::vector<std::int64_t> clocks_;      // last reading of each
    std::uint32_t recorded_constants_ = 0;  // bit set of Constant
};

}  // namespace flamewire::agent
