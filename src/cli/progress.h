// A progress bar on standard error for slow operations. Shows nothing if standard error is not a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace flamewire::cli {

class Progress {
public:
    Progress();
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // Shows the current operation and its progress. total 0: unknown.
    void show(std::string_view what, std::uint64_t done = 0, std::uint64_t total = 0);
    // Removes the bar.
    void clear();

private:
    const bool shown_;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point began_, last_{};
};

}  // namespace flamewire::cli
