#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace flamewire::cli {
namespace {

constexpr std::chrono::milliseconds first_after{200}, redraw_after{100};
constexpr unsigned bar_width = 30;

}  // namespace

Progress::Progress() : shown_(::isatty(STDERR_FILENO) == 1), began_(std::chrono::steady_clock::now()) {}

void Progress::show(std::string_view what, std::uint64_t done, std::uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - began_ < first_after || now - last_ < redraw_after) return;
    last_ = now;
    drawn_ = true;
    if (total == 0) {
        fmt::print(stderr, "\r\x1b[K{} …", what);
    } else {
        const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
        const auto full = static_cast<unsigned>(share * bar_width);
        fmt::print(stderr, "\r\x1b[K{} [{:#<{}}{:.<{}}] {:3.0f} %", what, "", full, "", bar_width - full, share * 100);
    }
    std::fflush(stderr);
}

void Progress::clear() {
    if (!drawn_) return;
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
    drawn_ = false;
}

}  // namespace flamewire::cli
