#include "agent/process/perf_map.h"

#include <algorithm>

#include "base/system.h"
#include "elf/perf_map_line.h"

namespace flamewire::agent {
namespace {

constexpr std::size_t piece_bytes = 64 * 1024;
// Of a line: two numbers and the longest accepted name.
constexpr std::size_t longest_line = max_jit_name_bytes + 40;
constexpr std::size_t kept_bytes = 64;

}  // namespace

// False if the file was rewritten from the beginning: it is shorter, or has other bytes where the last line ended.
bool PerfMapFile::still_the_same() {
    if (!read_piece(file_.get(), position_ - before_.size(), before_.size(), buffer_)) return false;
    return buffer_ == before_;
}

JitProgress PerfMapFile::advance(std::size_t limit, const PollTimes& times, std::vector<JitEntry>& entries) {
    FileStatus file;
    if (System::current().status_of(file_.get(), file) != 0) return JitProgress::damaged;
    const std::uint64_t size = file.size_bytes;
    if (size < position_) return JitProgress::rewritten;
    if (!size_at_first_) size_at_first_ = size;
    if (size == end_size_ && file.modified_ns == end_modified_ns_) return JitProgress::at_end;
    if (!still_the_same()) return JitProgress::rewritten;
    const std::uint64_t written_ns = times.monotonic_of(file.modified_ns);
    for (std::size_t done = 0; position_ < size; done += piece_bytes) {
        if (done >= limit) return JitProgress::more;
        if (!read_piece(file_.get(), position_, piece_bytes, buffer_)) return JitProgress::damaged;
        const std::uint64_t before = position_;
        take_lines(written_ns, entries);
        if (position_ == before) break;  // the rest is a line that is still being written
    }
    end_size_ = size;
    end_modified_ns_ = file.modified_ns;
    return JitProgress::at_end;
}

void PerfMapFile::take_lines(std::uint64_t from_ns, std::vector<JitEntry>& entries) {
    const std::string_view text = buffer_;
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', begin)) {
        const std::uint64_t at = position_ + begin;
        const auto line = elf::parse_perf_map_line(text.substr(begin, end - begin));
        begin = end + 1;
        if (std::exchange(inside_long_line_, false) || !line) continue;
        entries.push_back({line->start, line->start + line->size, at < *size_at_first_ ? 0 : from_ns, at, 0, 0});
    }
    // A line that fills the buffer has no usable name.
    if (begin == 0 && text.size() == piece_bytes) {
        inside_long_line_ = true;
        begin = text.size();
    }
    if (begin == 0) return;
    position_ += begin;
    before_ = text.substr(begin - std::min(begin, kept_bytes), std::min(begin, kept_bytes));
}

std::optional<JitBody> PerfMapFile::body_of(std::uint64_t record) const {
    std::string text;
    if (!read_piece(file_.get(), record, longest_line, text)) return std::nullopt;
    const auto line = elf::parse_perf_map_line(std::string_view(text).substr(0, text.find('\n')));
    if (!line) return std::nullopt;
    return JitBody{line->start, std::string(line->name.substr(0, max_jit_name_bytes)), {}, {}, {}};
}

}  // namespace flamewire::agent
