// Full-screen mode of the terminal: draws whole screens and reads single keys. The terminal is restored at the end,
// also after SIGINT, SIGTERM and SIGHUP.
#pragma once

#include <termios.h>

#include <chrono>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace flamewire::cli {

class Screen {
public:
    // unsupported: standard input or output is not a terminal.
    static Result<Screen> open();
    Screen(Screen&& other) noexcept;
    Screen& operator=(Screen&&) = delete;
    ~Screen();

    // Draws the screen and drops lines beyond its height. `text` may only have escape sequences for colors.
    void draw(std::string_view text);
    // Returns the next key, or nothing after this time. Returns 'q' after a signal to end.
    std::optional<char> key(std::chrono::milliseconds wait);

private:
    explicit Screen(const termios& before) : before_(before), open_(true) {}
    termios before_{};
    bool open_ = false;
};

}  // namespace flamewire::cli
