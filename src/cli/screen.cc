#include "cli/screen.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "base/file.h"
#include "cli/terminal.h"

namespace flamewire::cli {
namespace {

volatile std::sig_atomic_t end_requested = 0;

void end(int) { end_requested = 1; }

void put(std::string_view text) { (void)write_all(STDOUT_FILENO, as_bytes_view(text)); }

// Enters the alternate screen, without cursor and line wrap, and leaves it.
constexpr std::string_view enter = "\x1b[?1049h\x1b[?25l\x1b[?7l", leave = "\x1b[?7h\x1b[?25h\x1b[?1049l";

}  // namespace

Result<Screen> Screen::open() {
    termios before{};
    if (::isatty(STDOUT_FILENO) != 1 || ::tcgetattr(STDIN_FILENO, &before) != 0)
        return fail(ErrorCode::unsupported, "this is not a terminal");
    termios raw = before;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (::tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) return fail_errno("cannot set up the terminal", errno);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, end);
    put(enter);
    return Screen(before);
}

Screen::Screen(Screen&& other) noexcept : before_(other.before_), open_(std::exchange(other.open_, false)) {}

Screen::~Screen() {
    if (!open_) return;
    put(leave);
    (void)::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
}

void Screen::draw(std::string_view text) {
    const unsigned rows = terminal_size().rows;
    std::string out = "\x1b[H";
    for (unsigned row = 0; row < rows && !text.empty(); ++row) {
        const std::size_t end_of_line = text.find('\n');
        out += text.substr(0, end_of_line);
        out += "\x1b[K";
        if (row + 1 < rows) out += "\r\n";
        text = end_of_line == std::string_view::npos ? std::string_view{} : text.substr(end_of_line + 1);
    }
    put(out + "\x1b[J");
}

std::optional<char> Screen::key(std::chrono::milliseconds wait) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&input, 1, static_cast<int>(wait.count()));
    if (end_requested != 0 || (ready > 0 && (input.revents & (POLLHUP | POLLERR)) != 0)) return 'q';
    char key = 0;
    if (ready <= 0 || ::read(STDIN_FILENO, &key, 1) != 1) return {};
    return key;
}

}  // namespace flamewire::cli
