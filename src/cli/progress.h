// A bar on standard error for what takes long; nothing where that is no terminal.
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

    // What is being done, and how far; total 0: nobody knows.
    void show(std::string_view what, std::uint64_t done = 0, std::uint64_t total = 0);
    // Takes the bar away.
    void clear();

private:
    const bool shown_;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point began_, last_{};
};

}  // namespace flamewire::cli
