// Rate limit for lines that a remote peer can trigger as often as it likes: the first lines of each minute are written,
// the others counted. Pure: the caller passes the time (monotonic). One thread.
#pragma once

#include <cstdint>
#include <utility>

namespace flamewire {

class LineRateLimit {
public:
    static constexpr std::uint64_t window_ns = 60'000'000'000;

    explicit LineRateLimit(unsigned lines = 20) : lines_(lines) {}

    // Whether to write a line now. Call take_omitted() first.
    bool admits(std::uint64_t now_ns) {
        if (written_ == 0) since_ns_ = now_ns;
        if (written_ < lines_) return ++written_ > 0;
        ++left_out_;
        return false;
    }
    // The number of lines left out of a minute that is over, once.
    std::uint64_t take_omitted(std::uint64_t now_ns) {
        if (written_ == 0 || now_ns - since_ns_ < window_ns) return 0;
        written_ = 0;
        return std::exchange(left_out_, 0);
    }

private:
    unsigned lines_, written_ = 0;
    std::uint64_t left_out_ = 0, since_ns_ = 0;
};

}  // namespace flamewire
