// The terminal as a screen of its own: drawn whole, keys read one by one. Put back as it was at the end, also by SIGINT,
// SIGTERM and SIGHUP.
#pragma once

#include <termios.h>

#include <chrono>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace flamewire::cli {

class Screen {
public:
    // unsupported: standard input or output is no terminal.
    static Result<Screen> open();
    Screen(Screen&& other) noexcept;
    Screen& operator=(Screen&&) = delete;
    ~Screen();

    // Lines beyond the screen's height are left out; `text` has escapes for colours only.
    void draw(std::string_view text);
    // The next key, or nothing after this time; 'q' once the program was told to end.
    std::optional<char> key(std::chrono::milliseconds wait);

private:
    explicit Screen(const termios& before) : before_(before), open_(true) {}
    termios before_{};
    bool open_ = false;
};

}  // namespace flamewire::cli
