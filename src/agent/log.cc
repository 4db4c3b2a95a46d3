// One write(2) per line.
#include "agent/log.h"

#include <unistd.h>

#include <atomic>

#include "base/file.h"
#include "base/utf8.h"

namespace flamewire::agent {

namespace {
std::atomic<bool> verbose{false};
}  // namespace

void set_verbose(bool on) { verbose = on; }
bool is_verbose() { return verbose; }

void log_line(std::string_view text) {
    std::string line = "flamewire-agent: ";
    line += printable(text);  // process names can contain terminal escape sequences
    line += '\n';
    (void)write_all(STDERR_FILENO, as_bytes_view(line));
}

}  // namespace flamewire::agent
