#include "agent/capture/capture.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "agent/capture/arguments.h"
#include "base/file.h"
#include "base/varint.h"
#include "wire/frame.h"

namespace flamewire::agent {
namespace {

// Compressing and writing a chunk takes about a millisecond. A single entry may be larger than this.
constexpr std::size_t chunk_bytes = std::size_t{256} << 10;

std::string result_text(std::int64_t result) { return varints({zigzag(result)}); }

std::string result_with_bytes(std::ptrdiff_t result, std::string_view bytes) {
    std::string text = result_text(result);
    if (result > 0) text += bytes.substr(0, static_cast<std::size_t>(result));
    return text;
}

std::string text_of(int result, const FileStatus& status) {
    std::string text = result_text(result);
    if (result == 0)
        text += varints({status.device, status.inode, status.size_bytes, zigzag(status.modified_ns),
                         zigzag(status.changed_ns), status.user,
                         (status.regular ? std::uint64_t{1} : 0) | (status.directory ? std::uint64_t{2} : 0) |
                             (status.others_may_read ? 0 : std::uint64_t{4})});
    return text;
}

}  // namespace

Result<std::unique_ptr<Capture>> Capture::begin(const std::string& path, std::uint64_t limit_bytes) {
    UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file && errno == EEXIST)
        return fail(ErrorCode::busy,
                    fmt::format("cannot capture to {}: the file exists. Remove it or give another name.", path));
    if (!file) return fail_errno("cannot capture to " + path, errno);
    std::unique_ptr<Capture> capture(new Capture(std::move(file), limit_bytes));
    if (const auto put = write_all(capture->file_.get(), as_bytes_view(capture_magic)); !put)
        return fail_errno("cannot capture to " + path, put.error().errno_value);
    capture->written_bytes_ = capture_magic.size();
    return capture;
}

Capture::Capture(UniqueFd file, std::uint64_t limit_bytes)
    : kernel_(real_), file_(std::move(file)), limit_bytes_(limit_bytes) {
    kernel_.open = [this](perf_event_attr& attr, pid_t pid, int cpu) {
        return perf_opened(attr, pid, cpu, -1, -1, real_.open(attr, pid, cpu));
    };
    kernel_.open_in_group = [this](perf_event_attr& attr, pid_t pid, int cpu, int leader) {
        return perf_opened(attr, pid, cpu, leader, -1, real_.open_in_group(attr, pid, cpu, leader));
    };
    kernel_.open_in_cgroup = [this](perf_event_attr& attr, int folder, int cpu, int leader) {
        return perf_opened(attr, -1, cpu, leader, folder, real_.open_in_cgroup(attr, folder, cpu, leader));
    };
    kernel_.ioctl = [this](int fd, unsigned long request, unsigned long argument) {
        const int result = real_.ioctl(fd, request, argument);
        record(Call::perf_ioctl, arguments::of_perf_ioctl(handle_of(fd), request), result_text(result));
        return result;
    };
    kernel_.id = [this](int fd, std::uint64_t& id) {
        const int result = real_.id(fd, id);
        record(Call::perf_id, arguments::of_handle(handle_of(fd)), result_text(result) + varints({id}));
        return result;
    };
    kernel_.read = [this](int fd, std::span<std::uint64_t> values) { return perf_read(fd, values); };
    kernel_.map = [this](int fd, std::size_t size, int& error) { return map(fd, size, error); };
    kernel_.head = [this](const perf_event_mmap_page& page) { return head(page); };
    kernel_.poll = [this](std::span<pollfd> files, int timeout_ms) { return poll(files, timeout_ms); };
}

Capture::~Capture() { flush(); }

void Capture::record(Call call, std::string_view arguments, std::string_view result) {
    if (truncated_) return;
    chunk_.push_back(static_cast<char>(call));
    append_varint(chunk_, arguments.size());
    chunk_ += arguments;
    append_varint(chunk_, result.size());
    chunk_ += result;
    if (chunk_.size() >= chunk_bytes) flush();
}

void Capture::flush() {
    if (chunk_.empty() || !file_) return;
    const std::string compressed = wire::compress(chunk_);
    chunk_.clear();
    std::string out;
    for (const unsigned shift : {0U, 8U, 16U, 24U})
        out.push_back(static_cast<char>(compressed.size() >> shift & 0xFFU));
    out += compressed;
    if (written_bytes_ + out.size() > limit_bytes_ && !truncated_)
        return truncate(fmt::format("it reached its limit of {} MiB", limit_bytes_ >> 20));
    if (const auto put = write_all(file_.get(), as_bytes_view(out)); !put) {
        file_.reset();
        return truncate(fail_errno("cannot write to the file", put.error().errno_value).error().message);
    }
    written_bytes_ += out.size();
}

void Capture::truncate(std::string why) {
    record(Call::truncated, {}, why);
    truncated_ = std::move(why);
    flush();
    file_.reset();
}

std::uint64_t Capture::handle_of(int fd) const {
    const auto known = handles_.find(fd);
    // A descriptor that was not opened through this class.
    return known == handles_.end() ? UINT64_MAX : known->second;
}

int Capture::opened(Call call, std::string_view arguments, int fd) {
    if (fd >= 0) handles_[fd] = next_handle_;
    record(call, arguments, result_text(fd < 0 ? fd : static_cast<std::int64_t>(next_handle_++)));
    return fd;
}

int Capture::open(const std::string& path, int flags) {
    return opened(Call::open, arguments::of_open(path, flags), System::open(path, flags));
}

// Recorded as a plain open: only the opened file matters.
int Capture::open_same(const std::string& path, int flags, const FileStatus& file) {
    return opened(Call::open, arguments::of_open(path, flags), System::open_same(path, flags, file));
}

int Capture::open_in_root(const std::string& root, const std::string& path, int flags) {
    return opened(Call::open_in_root, arguments::of_open_in_root(root, path, flags),
                  System::open_in_root(root, path, flags));
}

std::ptrdiff_t Capture::read(int fd, std::span<std::byte> bytes) {
    const std::ptrdiff_t got = System::read(fd, bytes);
    record(Call::read, arguments::of_handle(handle_of(fd)), result_with_bytes(got, as_text(bytes)));
    return got;
}

std::ptrdiff_t Capture::read_at(int fd, std::uint64_t offset, std::span<std::byte> bytes) {
    const std::ptrdiff_t got = System::read_at(fd, offset, bytes);
    record(Call::read_at, arguments::of_read_at(handle_of(fd), offset, bytes.size()),
           result_with_bytes(got, as_text(bytes)));
    return got;
}

int Capture::status_of(int fd, FileStatus& status) {
    const int result = System::status_of(fd, status);
    record(Call::status_of, arguments::of_handle(handle_of(fd)), text_of(result, status));
    return result;
}

int Capture::status(const std::string& path, bool follow_link, FileStatus& status) {
    const int result = System::status(path, follow_link, status);
    record(Call::status, arguments::of_status(path, follow_link), text_of(result, status));
    return result;
}

std::ptrdiff_t Capture::read_link(const std::string& path, std::span<char> target) {
    const std::ptrdiff_t got = System::read_link(path, target);
    record(Call::read_link, path, result_with_bytes(got, {target.data(), target.size()}));
    return got;
}

int Capture::list(const std::string& path, std::size_t most, std::vector<std::string>& names) {
    const std::size_t before = names.size();
    const int result = System::list(path, most, names);
    std::string text = result_text(result);
    for (std::size_t i = before; i < names.size(); ++i) {
        append_varint(text, names[i].size());
        text += names[i];
    }
    record(Call::list, path, text);
    return result;
}

std::ptrdiff_t Capture::read_memory(std::uint32_t pid, std::size_t word_bytes, std::span<const std::uint64_t> addresses,
                                    std::span<std::byte> bytes) {
    const std::ptrdiff_t got = System::read_memory(pid, word_bytes, addresses, bytes);
    record(Call::read_memory, arguments::of_read_memory(pid, word_bytes, addresses),
           result_with_bytes(got, as_text(bytes)));
    return got;
}

std::int64_t Capture::now(Clock clock) {
    const std::int64_t now = System::now(clock);
    const auto which = static_cast<std::size_t>(clock);
    if (clocks_.size() <= which) clocks_.resize(which + 1);
    record(Call::now, arguments::of_now(clock), varints({zigzag(now - clocks_[which])}));
    clocks_[which] = now;
    return now;
}

std::uint64_t Capture::constant(Constant which) {
    const std::uint64_t value = System::constant(which);
    const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(which);
    if ((recorded_constants_ & bit) == 0) record(Call::constant, arguments::of_constant(which), varints({value}));
    recorded_constants_ |= bit;
    return value;
}

std::string Capture::input(std::string_view name, std::string value) {
    if (!value.empty()) record(Call::input, name, value);
    return value;
}

int Capture::perf_opened(const perf_event_attr& attr, pid_t pid, int cpu, int leader, int folder, int fd) {
    return opened(Call::perf_open,
                  arguments::of_perf_open(attr, pid, cpu, leader < 0 ? 0 : handle_of(leader) + 1,
                                          folder < 0 ? 0 : handle_of(folder) + 1),
                  fd);
}

void* Capture::map(int fd, std::size_t size, int& error) {
    void* const address = real_.map(fd, size, error);
    record(Call::perf_map, arguments::of_perf_map(handle_of(fd), size), result_text(address != nullptr ? 0 : error));
    if (address != nullptr)
        rings_[static_cast<const perf_event_mmap_page*>(address)] = {next_ring_++, real_.page_size,
                                                                     size - real_.page_size, 0};
    return address;
}

std::uint64_t Capture::head(const perf_event_mmap_page& page) {
    const std::uint64_t now = real_.head(page);
    const auto found = rings_.find(&page);
    if (found == rings_.end()) return now;
    Ring& ring = found->second;
    const auto* data = static_cast<const char*>(static_cast<const void*>(&page)) + ring.data_offset;
    std::string result = varints({now});
    const std::uint64_t fresh = std::min(now - ring.head, ring.data_bytes);
    for (std::uint64_t done = 0; done < fresh;) {
        const std::uint64_t at = (now - fresh + done) % ring.data_bytes;
        const std::uint64_t piece = std::min(fresh - done, ring.data_bytes - at);
        result.append(data + at, static_cast<std::size_t>(piece));
        done += piece;
    }
    ring.head = now;
    record(Call::perf_head, arguments::of_perf_head(ring.number), result);
    return now;
}

int Capture::poll(std::span<pollfd> files, int timeout_ms) {
    const int ready = real_.poll(files, timeout_ms);
    std::string result = result_text(ready);
    for (std::size_t i = 0; ready > 0 && i < files.size(); ++i)
        if (files[i].revents != 0) result += varints({i, static_cast<std::uint16_t>(files[i].revents)});
    record(Call::perf_poll, {}, result);
    return ready;
}

int Capture::perf_read(int fd, std::span<std::uint64_t> values) {
    const int result = real_.read(fd, values);
    std::string text = result_text(result);
    for (int i = 0; i < result; ++i) append_varint(text, values[static_cast<std::size_t>(i)]);
    record(Call::perf_read, arguments::of_handle(handle_of(fd)), text);
    return result;
}

}  // namespace flamewire::agent
