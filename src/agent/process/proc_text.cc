#include "agent/process/proc_text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>

#include "base/file.h"
#include "base/system.h"

namespace flamewire::agent {

Result<LineReader> LineReader::open(const std::string& path, std::size_t buffer_bytes) {
    return LineReader(TRY(open_read(path)), buffer_bytes);
}

// Moves the unread bytes to the front and reads after them. False if nothing was read.
bool LineReader::fill() {
    if (at_end_) return false;
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    std::ptrdiff_t got = 0;
    do got = System::current().read(fd_.get(), std::as_writable_bytes(std::span(buffer_).subspan(end_)));
    while (got == -EINTR);
    if (got <= 0) {
        at_end_ = true;
        if (got < 0) errno_value_ = static_cast<int>(-got);
        return false;
    }
    end_ += static_cast<std::size_t>(got);
    return true;
}

bool LineReader::skip_rest_of_line() {
    for (;;) {
        const std::string_view held(buffer_.data() + begin_, end_ - begin_);
        const std::size_t newline = held.find('\n');
        if (newline != std::string_view::npos) {
            begin_ += newline + 1;
            return true;
        }
        begin_ = end_;
        if (!fill()) return false;
    }
}

bool LineReader::next(std::string_view& line) {
    if (cut_) {
        cut_ = false;
        if (!skip_rest_of_line()) return false;
    }
    std::size_t searched = 0;
    for (;;) {
        const std::string_view held(buffer_.data() + begin_, end_ - begin_);
        const std::size_t newline = held.find('\n', searched);
        if (newline != std::string_view::npos) {
            line = held.substr(0, newline);
            begin_ += newline + 1;
            return true;
        }
        searched = held.size();
        if (held.size() == buffer_.size()) {  // begin_ is 0 here
            line = held;
            cut_ = true;
            begin_ = end_;
            return true;
        }
        if (!fill()) {
            if (begin_ == end_) return false;
            line = std::string_view(buffer_.data() + begin_, end_ - begin_);
            begin_ = end_;
            return true;
        }
    }
}

std::optional<std::uint64_t> take_number(std::string_view& text, int base) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

std::string_view take_field(std::string_view& text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) {
        text = {};
        return {};
    }
    text.remove_prefix(begin);
    const std::string_view field = text.substr(0, text.find_first_of(" \t"));
    text.remove_prefix(field.size());
    return field;
}

bool take_char(std::string_view& text, char expected) {
    if (text.empty() || text.front() != expected) return false;
    text.remove_prefix(1);
    return true;
}

namespace {

Result<std::string> read_start(const std::string& path, std::size_t limit, bool one_record) {
    const UniqueFd fd = TRY(open_read(path));
    std::string start;
    std::array<char, 2048> part;
    while (start.size() < limit) {
        const std::size_t asked = std::min(part.size(), limit - start.size());
        const std::ptrdiff_t got =
            System::current().read(fd.get(), std::as_writable_bytes(std::span(part).first(asked)));
        if (got == -EINTR) continue;
        if (got < 0) return fail_errno("read " + path, static_cast<int>(-got));
        start.append(part.data(), static_cast<std::size_t>(got));
        if (got == 0 || (one_record && static_cast<std::size_t>(got) < asked)) break;
    }
    return start;
}

}  // namespace

Result<std::string> read_head(const std::string& path, std::size_t limit) { return read_start(path, limit, false); }

Result<std::string> read_record(const std::string& path, std::size_t limit) { return read_start(path, limit, true); }

Result<std::string> read_link(const std::string& path) {
    std::array<char, 4096> target;
    const std::ptrdiff_t got = System::current().read_link(path, target);
    if (got < 0) return fail_errno("readlink " + path, static_cast<int>(-got));
    return std::string(target.data(), static_cast<std::size_t>(got));
}

std::vector<std::uint32_t> list_numbers(const std::string& path, std::size_t most) {
    // Some names in /proc are words.
    constexpr std::size_t most_words = 256;
    std::vector<std::string> names;
    std::vector<std::uint32_t> numbers;
    if (System::current().list(path, most + most_words, names) != 0) return numbers;
    for (std::string_view name : names) {
        const auto number = take_number(name, 10);
        if (number && name.empty() && numbers.size() < most) numbers.push_back(static_cast<std::uint32_t>(*number));
    }
    return numbers;
}

std::string proc_path(const std::string& root, std::uint32_t pid, std::string_view name) {
    std::string path = root;
    path += '/';
    path += std::to_string(pid);
    if (!name.empty()) path += '/';
    path += name;
    return path;
}

}  // namespace flamewire::agent
