#include "server/session/file_damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/decimal.h"

namespace flamewire::server {
namespace {

// Further ranges are merged into the last one.
constexpr std::size_t max_times = 1'000;
constexpr const char *damaged_code = "file-damaged", *cut_code = "file-cut";
// Ranges that a notice lists.
constexpr std::size_t listed_times = 3;

std::string counted(std::uint64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", with_commas(count), noun, count == 1 ? "" : "s");
}

std::string seconds(std::uint64_t ns, std::uint64_t start_ns) {
    return fmt::format("{:.2f} s", static_cast<double>(ns - std::min(ns, start_ns)) / 1e9);
}

// Follows "Samples are missing". Times are relative to the first sample, so there must be one.
std::string range_text(const MissingTime& time, std::uint64_t start_ns) {
    if (start_ns == 0) return "from the whole recording";
    if (time.start_ns == 0) return "before the first one that is shown";
    if (time.end_ns == 0) return fmt::format("after {}", seconds(time.start_ns, start_ns));
    return fmt::format("from {} to {}", seconds(time.start_ns, start_ns), seconds(time.end_ns, start_ns));
}

}  // namespace

bool is_damage_notice(const wire::Notice& notice) { return notice.code == damaged_code || notice.code == cut_code; }

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

void FileDamage::clear_tail() { cut_bytes_ = 0; }

std::vector<wire::Notice> FileDamage::notices(std::uint64_t start_ns, std::uint64_t unusable) const {
    std::vector<wire::Notice> result;
    if (bytes_ != 0) {
        std::string text = fmt::format("The session file is damaged: {} of {} are unreadable", with_commas(bytes_),
                                       counted(file_bytes_, "byte"));
        if (places_ > 1) text += fmt::format(", in {}", counted(places_, "place"));
        text += '.';
        std::string ranges;
        for (std::size_t i = 0; i < times_.size() && i < listed_times; ++i) {
            if (i != 0) ranges += i + 1 == times_.size() ? " and " : ", ";
            ranges += range_text(times_[i], start_ns);
        }
        if (times_.size() > listed_times)
            ranges += fmt::format(" and in {}", counted(times_.size() - listed_times, "more range"));
        text += ranges.empty() ? " No samples were in that part." : fmt::format(" Samples are missing {}.", ranges);
        if (unusable != 0)
            text += fmt::format(" {} cannot be shown because the unreadable part defined their stacks or threads.",
                                counted(unusable, "later sample"));
        result.push_back(
            {damaged_code, text,
             "copy the file again from the machine that recorded it; if it was recorded here, check the disk"});
    }
    if (cut_bytes_ != 0) {
        std::string text = fmt::format("The session file ends in the middle of a frame: its last {} {} unreadable.",
                                       counted(cut_bytes_, "byte"), cut_bytes_ == 1 ? "is" : "are");
        if (!ended_) text += fmt::format(" Samples are missing {}.", range_text({cut_at_ns_, 0}, start_ns));
        result.push_back(
            {cut_code, text,
             "copy the file again if the copy was interrupted; if the server or agent was killed, the rest "
             "was never written"});
    }
    return result;
}

}  // namespace flamewire::server
