#include "server/session/file_damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace flamewire::server {
namespace {

// A file that is damaged all over has no use for more; those behind it become one.
constexpr std::size_t max_times = 1'000;
constexpr const char *damaged_code = "file-damaged", *cut_code = "file-cut";
// In a sentence.
constexpr std::size_t named_times = 3;

std::string counted(std::uint64_t count, std::string_view one, std::string_view several) {
    std::string digits = fmt::format("{}", count);
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
    return fmt::format("{} {}", digits, count == 1 ? one : several);
}

std::string seconds(std::uint64_t ns, std::uint64_t start_ns) {
    return fmt::format("{:.2f} s", static_cast<double>(ns - std::min(ns, start_ns)) / 1e9);
}

std::string words(const MissingTime& time, std::uint64_t start_ns) {
    // Without any sample nobody knows when the recording began, and without its first batches what came before them.
    if (start_ns == 0) return "what was recorded";
    if (time.start_ns == 0) return "the time before what is shown";
    if (time.end_ns == 0) return fmt::format("the time after {}", seconds(time.start_ns, start_ns));
    return fmt::format("{} to {}", seconds(time.start_ns, start_ns), seconds(time.end_ns, start_ns));
}

}  // namespace

bool is_of_damage(const wire::Notice& notice) { return notice.code == damaged_code || notice.code == cut_code; }

void FileDamage::add(MissingTime time) {
    if (times_.size() < max_times)
        times_.push_back(time);
    else
        times_.back().end_ns = time.end_ns;
}

void FileDamage::skip(std::uint64_t bytes, std::uint64_t known_until_ns) {
    bytes_ += bytes;
    ++places_;
    if (!std::exchange(open_, true)) open_from_ns_ = known_until_ns;
}

std::optional<MissingTime> FileDamage::close(std::uint64_t first_ns, std::uint64_t missing) {
    if (!std::exchange(open_, false) || missing == 0) return std::nullopt;
    batches_ += missing;
    const MissingTime time{open_from_ns_, std::max(first_ns, open_from_ns_)};
    add(time);
    return time;
}

void FileDamage::finish(const wire::SessionTail& tail, std::uint64_t file_bytes, std::uint64_t known_until_ns,
                        bool ended) {
    file_bytes_ = file_bytes;
    ended_ = ended;
    if (tail.kind == wire::SessionTail::Kind::damaged) skip(tail.bytes, known_until_ns);
    if (tail.kind == wire::SessionTail::Kind::cut) {
        cut_bytes_ = tail.bytes;
        cut_at_ns_ = known_until_ns;
    }
    if (std::exchange(open_, false) && !ended) add({open_from_ns_, 0});
}

void FileDamage::forget_tail() { cut_bytes_ = 0; }

std::vector<wire::Notice> FileDamage::notices(std::uint64_t start_ns, std::uint64_t unusable) const {
    std::vector<wire::Notice> result;
    if (bytes_ != 0) {
        std::string text = fmt::format("The session file is damaged: {} of its {} cannot be read",
                                       counted(bytes_, "byte", "bytes"), counted(file_bytes_, "byte", "bytes"));
        if (places_ > 1) text += fmt::format(", in {}", counted(places_, "place", "places"));
        text += '.';
        std::string left;
        for (std::size_t i = 0; i < times_.size() && i < named_times; ++i) {
            if (i != 0) left += i + 1 == times_.size() ? " and " : ", ";
            left += words(times_[i], start_ns);
        }
        if (times_.size() > named_times)
            left += fmt::format(" and {}", counted(times_.size() - named_times, "more stretch", "more stretches"));
        text += left.empty() ? " They held no samples." : fmt::format(" Nothing is left of {}.", left);
        if (unusable != 0)
            text += fmt::format(" {} after that cannot be shown, as their stacks or threads were described there.",
                                counted(unusable, "sample", "samples"));
        result.push_back({damaged_code, text,
                          "copy the file again from where it was recorded; if it was written here, check this disk"});
    }
    if (cut_bytes_ != 0) {
        std::string text =
            fmt::format("The session file is cut off in the middle of a frame: its last {} cannot be read.",
                        counted(cut_bytes_, "byte", "bytes"));
        if (!ended_) text += fmt::format(" Nothing is left of {}.", words({cut_at_ns_, 0}, start_ns));
        result.push_back({cut_code, text,
                          "copy the file again if it was cut on its way; where its server or agent was killed, "
                          "that is all there is"});
    }
    return result;
}

}  // namespace flamewire::server
