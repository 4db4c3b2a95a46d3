#include "replay/replay_system.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agent/capture/arguments.h"
#include "base/byte_reader.h"
#include "base/varint.h"

namespace flamewire::replay {

using agent::Call;
namespace arguments = agent::arguments;

namespace {

// Above all real descriptors, so that closing one has no effect.
constexpr int first_fd = 1 << 28;
constexpr std::size_t max_reported_missing = 20;
// How far a clock advances for a reading that was not recorded.
constexpr std::int64_t clock_step_ns = 1'000;

// Removes the return value from the front of a result.
std::int64_t take_result(ByteReader& in) {
    const std::int64_t result = from_zigzag(read_varint(in));
    return in.ok() ? result : -EIO;
}

std::ptrdiff_t copy_result(const CallResult* found, std::span<std::byte> bytes) {
    if (found == nullptr) return -ENOENT;
    ByteReader in(as_bytes_view(found->bytes));
    const std::int64_t result = take_result(in);
    if (result < 0) return static_cast<std::ptrdiff_t>(result);
    const Bytes given = in.bytes(in.remaining());
    const std::size_t size = std::min(given.size(), bytes.size());
    std::memcpy(bytes.data(), given.data(), size);
    return static_cast<std::ptrdiff_t>(size);
}

int take_status(const CallResult* found, FileStatus& status) {
    if (found == nullptr) return -ENOENT;
    ByteReader in(as_bytes_view(found->bytes));
    if (const std::int64_t result = take_result(in); result != 0) return static_cast<int>(result);
    status.device = read_varint(in);
    status.inode = read_varint(in);
    status.size_bytes = read_varint(in);
    status.modified_ns = from_zigzag(read_varint(in));
    status.changed_ns = from_zigzag(read_varint(in));
    status.user = static_cast<std::uint32_t>(read_varint(in));
    const std::uint64_t kind = read_varint(in);
    status.regular = (kind & 1) != 0;
    status.directory = (kind & 2) != 0;
    status.others_may_read = (kind & 4) == 0;
    return in.ok() ? 0 : -EIO;
}

int plain_result(const CallResult* found, int if_missing) {
    if (found == nullptr) return if_missing;
    ByteReader in(as_bytes_view(found->bytes));
    return static_cast<int>(take_result(in));
}

}  // namespace

ReplaySystem::ReplaySystem(const CaptureFile& capture, std::uint64_t page_bytes,
                           std::function<void(std::uint32_t)> on_round)
    : capture_(capture), page_bytes_(page_bytes), on_round_(std::move(on_round)) {
    for (const Clock clock :
         {Clock::monotonic, Clock::realtime, Clock::boottime, Clock::process_cpu, Clock::thread_cpu}) {
        TimeLine& line = clocks_[clock];
        std::int64_t ns = 0;
        for (const CallResult& result : capture_.results(Call::now, arguments::of_now(clock))) {
            ByteReader in(as_bytes_view(result.bytes));
            ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(ns) +
                                           static_cast<std::uint64_t>(from_zigzag(read_varint(in))));
            line.times.push_back({result.round, ns});
        }
        if (!line.times.empty()) line.last_ns = line.times.front().ns;
    }
}

void ReplaySystem::report_missing(Call call, std::string_view arguments) {
    ++fidelity_.missing;
    if (fidelity_.first_missing.size() >= max_reported_missing) return;
    std::string words;
    for (const char c : arguments) words += c >= ' ' && c <= '~' ? c : '.';
    fidelity_.first_missing.push_back(
        fmt::format("round {}: call {} with {}", round_, static_cast<unsigned>(call), words));
}

// `strict`: only a result of the current round.
const CallResult* ReplaySystem::find_result(Call call, std::string_view arguments, bool strict) {
    const std::vector<CallResult>& results = capture_.results(call, arguments);
    if (results.empty()) {
        if (!strict) report_missing(call, arguments);
        return nullptr;
    }
    std::size_t& next = next_[&results];
    // Skip results of earlier rounds that this program did not request.
    while (next < results.size() && results[next].round < round_ &&
           (strict || (next + 1 < results.size() && results[next + 1].round <= round_)))
        ++next;
    if (next < results.size() && results[next].round <= round_) {
        ++(results[next].round == round_ ? fidelity_.in_order : fidelity_.out_of_order);
        return &results[next++];
    }
    if (strict) return nullptr;
    ++fidelity_.out_of_order;
    return &results[next > 0 ? next - 1 : 0];
}

int ReplaySystem::opened(const CallResult* found) {
    const int result = plain_result(found, -ENOENT);
    if (result < 0) return result;
    files_.push_back({static_cast<std::uint64_t>(result), 0, 0});
    return first_fd + static_cast<int>(files_.size()) - 1;
}

ReplaySystem::File* ReplaySystem::file_of(int fd) {
    const auto index = static_cast<std::size_t>(fd) - static_cast<std::size_t>(first_fd);
    return fd >= first_fd && index < files_.size() ? &files_[index] : nullptr;
}

std::uint64_t ReplaySystem::handle_of(int fd) const {
    const File* file = const_cast<ReplaySystem*>(this)->file_of(fd);
    return file == nullptr ? UINT64_MAX : file->handle;
}

int ReplaySystem::open(const std::string& path, int flags) {
    return opened(find_result(Call::open, arguments::of_open(path, flags)));
}

int ReplaySystem::open_same(const std::string& path, int flags, const FileStatus&) { return open(path, flags); }

int ReplaySystem::open_in_root(const std::string& root, const std::string& path, int flags) {
    return opened(find_result(Call::open_in_root, arguments::of_open_in_root(root, path, flags)));
}

// Returns the recorded reads with their sizes, because callers treat a short read of /proc as the end of the file.
std::ptrdiff_t ReplaySystem::read(int fd, std::span<std::byte> bytes) {
    File* file = file_of(fd);
    if (file == nullptr) return -EBADF;
    const std::string key = arguments::of_handle(file->handle);
    const std::vector<CallResult>& results = capture_.results(Call::read, key);
    if (file->next_read >= results.size()) {
        if (results.empty()) report_missing(Call::read, key);
        return 0;
    }
    ++fidelity_.in_order;
    ByteReader in(as_bytes_view(results[file->next_read].bytes));
    const std::int64_t result = take_result(in);
    if (result <= 0) {
        ++file->next_read;
        return static_cast<std::ptrdiff_t>(result);
    }
    in.skip(file->bytes_read);
    const Bytes rest = in.bytes(std::min(in.remaining(), bytes.size()));
    std::memcpy(bytes.data(), rest.data(), rest.size());
    file->bytes_read += rest.size();
    if (in.remaining() == 0) {
        ++file->next_read;
        file->bytes_read = 0;
    }
    return static_cast<std::ptrdiff_t>(rest.size());
}

// Assembles bytes from recorded reads at other offsets.
std::ptrdiff_t ReplaySystem::read_from_chunks(std::uint64_t handle, std::uint64_t offset,
                                              std::span<std::byte> bytes) const {
    std::size_t done = 0;
    for (bool found = true; found && done < bytes.size();) {
        found = false;
        for (const auto& [begin, text] : capture_.file_chunks(handle)) {
            const std::uint64_t at = offset + done;
            if (at < begin || at - begin >= text.size()) continue;
            const std::string_view piece = text.substr(static_cast<std::size_t>(at - begin), bytes.size() - done);
            std::memcpy(bytes.data() + done, piece.data(), piece.size());
            done += piece.size();
            found = true;
            break;
        }
    }
    return static_cast<std::ptrdiff_t>(done);
}

std::ptrdiff_t ReplaySystem::read_at(int fd, std::uint64_t offset, std::span<std::byte> bytes) {
    const File* file = file_of(fd);
    if (file == nullptr) return -EBADF;
    const std::string key = arguments::of_read_at(file->handle, offset, bytes.size());
    if (capture_.results(Call::read_at, key).empty())
        if (const std::ptrdiff_t got = read_from_chunks(file->handle, offset, bytes); got > 0) {
            ++fidelity_.out_of_order;
            return got;
        }
    return copy_result(find_result(Call::read_at, key), bytes);
}

int ReplaySystem::status_of(int fd, FileStatus& status) {
    return take_status(find_result(Call::status_of, arguments::of_handle(handle_of(fd))), status);
}

int ReplaySystem::status(const std::string& path, bool follow_link, FileStatus& status) {
    return take_status(find_result(Call::status, arguments::of_status(path, follow_link)), status);
}

std::ptrdiff_t ReplaySystem::read_link(const std::string& path, std::span<char> target) {
    return copy_result(find_result(Call::read_link, path), std::as_writable_bytes(target));
}

int ReplaySystem::list(const std::string& path, std::size_t most, std::vector<std::string>& names) {
    const CallResult* found = find_result(Call::list, path);
    if (found == nullptr) return -ENOENT;
    ByteReader in(as_bytes_view(found->bytes));
    if (const std::int64_t result = take_result(in); result != 0) return static_cast<int>(result);
    while (in.remaining() != 0 && in.ok() && names.size() < most) {
        const std::uint64_t size = read_varint(in);
        names.emplace_back(as_text(in.bytes(static_cast<std::size_t>(size))));
    }
    return 0;
}

std::ptrdiff_t ReplaySystem::read_memory(std::uint32_t pid, std::size_t word_bytes,
                                         std::span<const std::uint64_t> addresses, std::span<std::byte> bytes) {
    const CallResult* found = find_result(Call::read_memory, arguments::of_read_memory(pid, word_bytes, addresses));
    return found == nullptr ? -ESRCH : copy_result(found, bytes);
}

std::int64_t ReplaySystem::now(Clock clock) {
    TimeLine& line = clocks_[clock];
    while (line.next < line.times.size() && line.times[line.next].round < round_) ++line.next;
    if (line.next < line.times.size() && line.times[line.next].round == round_) {
        ++fidelity_.in_order;
        line.last_ns = line.times[line.next++].ns;
    } else {
        ++fidelity_.out_of_order;
        line.last_ns += clock_step_ns;
    }
    return line.last_ns;
}

std::uint64_t ReplaySystem::constant(Constant which) {
    const std::vector<CallResult>& results = capture_.results(Call::constant, arguments::of_constant(which));
    if (results.empty()) return which == Constant::page_bytes ? page_bytes_ : System::constant(which);
    ByteReader in(as_bytes_view(results.front().bytes));
    const std::uint64_t value = read_varint(in);
    // Bounded, as it becomes the length of a list.
    if (which == Constant::online_cpus) return std::clamp<std::uint64_t>(value, 1, 65'536);
    // At least 1, as callers divide by it.
    return which == Constant::ticks_per_second || which == Constant::page_bytes ? std::max<std::uint64_t>(value, 1)
                                                                                : value;
}

std::optional<std::string_view> ReplaySystem::next_input(std::string_view name) {
    const CallResult* found = find_result(Call::input, name, true);
    return found == nullptr ? std::nullopt : std::optional(found->bytes);
}

std::string ReplaySystem::input(std::string_view name, std::string value) {
    // RoundDriver applies these at the start of their round.
    if (name == inputs::command || name == inputs::epoch || name == inputs::stop) return value;
    if (capture_.results(Call::input, name).empty()) return {};
    return std::string(find_result(Call::input, name)->bytes);
}

int ReplaySystem::perf_open(const perf_event_attr& attr, pid_t pid, int cpu, int leader, int folder) {
    return opened(
        find_result(Call::perf_open, arguments::of_perf_open(attr, pid, cpu, leader < 0 ? 0 : handle_of(leader) + 1,
                                                             folder < 0 ? 0 : handle_of(folder) + 1)));
}

void* ReplaySystem::map(int fd, std::size_t size, int& error) {
    error = plain_result(find_result(Call::perf_map, arguments::of_perf_map(handle_of(fd), size)), -ENOENT);
    if (error != 0) return nullptr;
    void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
        error = -errno;
        return nullptr;
    }
    rings_[static_cast<const perf_event_mmap_page*>(address)] = {next_ring_++, static_cast<std::byte*>(address),
                                                                 size - page_bytes_, 0};
    return address;
}

// Adds the bytes of the next recorded call. Also adds those of earlier rounds that were not requested.
std::uint64_t ReplaySystem::head(const perf_event_mmap_page& page) {
    const auto found = rings_.find(&page);
    if (found == rings_.end()) return 0;
    Ring& ring = found->second;
    const std::vector<CallResult>& results = capture_.results(Call::perf_head, arguments::of_perf_head(ring.number));
    std::size_t& next = next_[&results];
    const std::size_t before = next;
    while (next < results.size() && results[next].round <= round_ && (next == before || results[next].round < round_)) {
        ByteReader in(as_bytes_view(results[next++].bytes));
        const std::uint64_t head = read_varint(in);
        const Bytes fresh = in.bytes(std::min<std::size_t>(in.remaining(), ring.data_bytes));
        for (std::size_t done = 0; done < fresh.size();) {
            const std::uint64_t at = (head - fresh.size() + done) % ring.data_bytes;
            const std::size_t piece = std::min<std::size_t>(fresh.size() - done, ring.data_bytes - at);
            std::memcpy(ring.page + page_bytes_ + at, fresh.data() + done, piece);
            done += piece;
        }
        // Ignore the head of a damaged entry.
        if (head - ring.head == fresh.size()) ring.head = head;
    }
    ++(next == before + 1 ? fidelity_.in_order : fidelity_.out_of_order);
    return ring.head;
}

int ReplaySystem::poll(std::span<pollfd> files) {
    on_round_(++round_);
    for (pollfd& file : files) file.revents = 0;
    const std::vector<CallResult>& results = capture_.results(Call::perf_poll, {});
    if (round_ > results.size()) return 0;
    ByteReader in(as_bytes_view(results[round_ - 1].bytes));
    const auto ready = static_cast<int>(take_result(in));
    while (in.remaining() != 0 && in.ok()) {
        const std::uint64_t index = read_varint(in);
        const auto events = static_cast<short>(read_varint(in));
        if (index < files.size()) files[static_cast<std::size_t>(index)].revents = events;
    }
    return ready;
}

agent::Kernel ReplaySystem::kernel() {
    agent::Kernel kernel = agent::real_kernel();
    kernel.page_size = page_bytes_;
    kernel.open = [this](perf_event_attr& attr, pid_t pid, int cpu) { return perf_open(attr, pid, cpu, -1, -1); };
    kernel.open_in_group = [this](perf_event_attr& attr, pid_t pid, int cpu, int leader) {
        return perf_open(attr, pid, cpu, leader, -1);
    };
    kernel.open_in_cgroup = [this](perf_event_attr& attr, int folder, int cpu, int leader) {
        return perf_open(attr, -1, cpu, leader, folder);
    };
    kernel.ioctl = [this](int fd, unsigned long request, unsigned long) {
        return plain_result(find_result(Call::perf_ioctl, arguments::of_perf_ioctl(handle_of(fd), request)), 0);
    };
    kernel.id = [this](int fd, std::uint64_t& id) {
        const CallResult* found = find_result(Call::perf_id, arguments::of_handle(handle_of(fd)));
        if (found == nullptr) return -ENOENT;
        ByteReader in(as_bytes_view(found->bytes));
        const auto result = static_cast<int>(take_result(in));
        id = read_varint(in);
        return result;
    };
    kernel.read = [this](int fd, std::span<std::uint64_t> values) {
        const CallResult* found = find_result(Call::perf_read, arguments::of_handle(handle_of(fd)));
        if (found == nullptr) return -ENOENT;
        ByteReader in(as_bytes_view(found->bytes));
        const std::int64_t result = take_result(in);
        if (result < 0) return static_cast<int>(result);
        const std::size_t count = std::min(static_cast<std::size_t>(result), values.size());
        for (std::uint64_t& value : values.first(count)) value = read_varint(in);
        return static_cast<int>(count);
    };
    kernel.map = [this](int fd, std::size_t size, int& error) { return map(fd, size, error); };
    kernel.close = [](int) {};
    kernel.head = [this](const perf_event_mmap_page& page) { return head(page); };
    kernel.poll = [this](std::span<pollfd> files, int) { return poll(files); };
    return kernel;
}

}  // namespace flamewire::replay
