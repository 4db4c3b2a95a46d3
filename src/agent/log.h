// Messages for the user who started the agent: one line each on stderr. Each line is a single write, so that lines of
// different threads never mix.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace flamewire::agent {

// With --verbose, detail() lines appear, too. Set once at start.
void set_verbose(bool on);
[[nodiscard]] bool is_verbose();

void log_line(std::string_view text);

template <class... Args>
void log(fmt::format_string<Args...> format, Args&&... args) {
    log_line(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void detail(fmt::format_string<Args...> format, Args&&... args) {
    if (is_verbose()) log_line(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace flamewire::agent
